package store

import (
	"cmp"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// memoryClient is a client of a store in memory.
type memoryClient struct {
	store   *memory
	options ClientOptions
	indexes indexes
}

var _ client.WithWatch = (*memoryClient)(nil)

// Scheme implements [client.Client].
func (c *memoryClient) Scheme() *runtime.Scheme { return c.options.Scheme }

// RESTMapper implements [client.Client].
func (c *memoryClient) RESTMapper() meta.RESTMapper { return c.store.RESTMapper() }

// GroupVersionKindFor implements [client.Client].
func (c *memoryClient) GroupVersionKindFor(obj runtime.Object) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(obj, c.options.Scheme)
}

// IsObjectNamespaced implements [client.Client].
func (c *memoryClient) IsObjectNamespaced(obj runtime.Object) (bool, error) {
	return apiutil.IsObjectNamespaced(obj, c.options.Scheme, c.RESTMapper())
}

// Create implements [client.Client].
func (c *memoryClient) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	if _, ok := obj.(*metav1.PartialObjectMetadata); ok {
		return errCreatePartial
	}
	w, err := c.creates((&client.CreateOptions{}).ApplyOptions(opts).AsCreateOptions(), "")
	if err != nil {
		return err
	}
	return c.answer(ctx, Create, obj, obj, w, func(gvk schema.GroupVersionKind) (*record, error) {
		return c.store.create(gvk, obj, w)
	})
}

// Update implements [client.Client].
func (c *memoryClient) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	if _, ok := obj.(*metav1.PartialObjectMetadata); ok {
		return errUpdatePartial
	}
	w, err := c.updates((&client.UpdateOptions{}).ApplyOptions(opts).AsUpdateOptions(), "")
	if err != nil {
		return err
	}
	return c.answer(ctx, Update, obj, obj, w, func(gvk schema.GroupVersionKind) (*record, error) {
		return c.store.update(gvk, obj, w)
	})
}

// Patch implements [client.Client].
func (c *memoryClient) Patch(
	ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption,
) error {
	options := (&client.PatchOptions{}).ApplyOptions(opts)
	return c.patch(ctx, obj, obj, patch, options.AsPatchOptions(), "")
}

// creates returns how a create with the options writes.
func (c *memoryClient) creates(options *metav1.CreateOptions, subresource string) (memoryWrite, error) {
	return c.write(options.FieldManager, options.FieldValidation, options.DryRun, subresource),
		invalidOptions("CreateOptions", validation.ValidateCreateOptions(options))
}

// updates returns how an update with the options writes.
func (c *memoryClient) updates(options *metav1.UpdateOptions, subresource string) (memoryWrite, error) {
	return c.write(options.FieldManager, options.FieldValidation, options.DryRun, subresource),
		invalidOptions("UpdateOptions", validation.ValidateUpdateOptions(options))
}

func (c *memoryClient) write(manager, fieldValidation string, dryRun []string, subresource string) memoryWrite {
	return memoryWrite{
		manager: c.manager(manager), subresource: subresource, dryRun: isDryRun(dryRun),
		strict: fieldValidation == metav1.FieldValidationStrict, refuseDropped: c.options.RefuseDropped,
	}
}

// patch patches the object with the name of obj. Body is what the patch is computed from, and what is filled.
func (c *memoryClient) patch(
	ctx context.Context, obj, body client.Object, p client.Patch, options *metav1.PatchOptions, subresource string,
) error {
	data, err := p.Data(body)
	if err != nil {
		return err
	}
	request, verb := patchRequest{patchType: p.Type(), data: data, force: ptr.Deref(options.Force, false)}, Patch
	if request.isApply() {
		verb = Apply
	}
	options.FieldManager = cmp.Or(options.FieldManager, c.options.FieldManager)
	if err := invalidOptions("PatchOptions", validation.ValidatePatchOptions(options, p.Type())); err != nil {
		return err
	}
	w := c.write(options.FieldManager, options.FieldValidation, options.DryRun, subresource)
	key := client.ObjectKeyFromObject(obj)
	return c.answer(ctx, verb, obj, body, w, func(gvk schema.GroupVersionKind) (*record, error) {
		return c.store.patch(gvk, key, request, w)
	})
}

// answer makes a call with an object, and fills body with the answer.
func (c *memoryClient) answer(
	ctx context.Context, verb Verb, obj, body client.Object, w memoryWrite,
	do func(schema.GroupVersionKind) (*record, error),
) error {
	gvk, err := c.GroupVersionKindFor(obj)
	if err != nil {
		return err
	}
	call := c.call(verb, gvk, client.ObjectKeyFromObject(obj))
	call.Subresource, call.DryRun = w.subresource, w.dryRun
	call.Live = verb == Get // Caches have no subresources.
	if call.Name == "" && obj.GetGenerateName() != "" {
		call.Name = obj.GetGenerateName() + "*"
	}
	var answer *record
	err = c.run(ctx, call, func() (err error) {
		answer, err = do(gvk)
		return err
	})
	if err != nil {
		return err
	}
	kept := body.GetObjectKind().GroupVersionKind()
	if _, ok := body.(runtime.Unstructured); !ok && verb == Create {
		kept = schema.GroupVersionKind{}
	}
	version := gvk.GroupVersion()
	if answer.gvk.Kind != gvk.Kind { // It is that of a subresource.
		version = answer.gvk.GroupVersion()
	}
	if err := answer.copyTo(body, version); err != nil {
		return err
	}
	body.GetObjectKind().SetGroupVersionKind(kept)
	return nil
}

// call returns a call for an object.
func (c *memoryClient) call(verb Verb, gvk schema.GroupVersionKind, key client.ObjectKey) Call {
	call := Call{Verb: verb, Kind: gvk, Namespace: key.Namespace, Name: key.Name}
	c.store.mu.RLock()
	defer c.store.mu.RUnlock()
	if r, err := c.store.resource(gvk); err == nil {
		call.Namespace = r.namespace(call.Namespace)
	}
	return call
}

// run makes a call, or leaves it to Intercept.
func (c *memoryClient) run(ctx context.Context, call Call, do func() error) error {
	made := false
	request := func() error {
		err := ctx.Err()
		if err != nil {
			return fmt.Errorf("%s: %w", call, err)
		}
		err = do()
		made = err == nil
		return err
	}
	if c.options.Intercept == nil {
		return request()
	}
	if err := c.options.Intercept(ctx, call, request); err != nil {
		return err
	}
	if !made {
		return fmt.Errorf("%s: it was intercepted without an error, but not made", call)
	}
	return nil
}

func (c *memoryClient) manager(given string) string {
	return cmp.Or(given, c.options.FieldManager, DefaultManager)
}
