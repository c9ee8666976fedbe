package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// ClientOptions configure a [Client].
type ClientOptions struct {
	// Scheme converts objects; nil is that of the store.
	Scheme *runtime.Scheme
	// FieldManager is the field manager of calls that name none. Empty is "espalier.test", except for an apply: an API
	// server refuses one without a field manager.
	FieldManager string
	// View is what reads see; nil sees everything at once, as an APIReader does.
	View *View
	// Indexes are the fields that the cache has indexed, by kind and name. With a View a list is selected by them
	// alone, as by the cache of controller-runtime. Without one an API server answers, but for a selection by indexed
	// fields alone, which it would not know.
	Indexes map[schema.GroupKind]map[string]client.IndexerFunc
	// RefuseDropped refuses an update, and a patch other than an apply, of an object that changes nothing but a status
	// that is a subresource. An API server makes it, and drops the status.
	RefuseDropped bool
	// Intercept is called with each call in the place of making it; nil makes it. It may be called by several
	// goroutines at once.
	Intercept Intercept
}

// DefaultManager is the field manager of writes if neither the call nor the client says another.
const DefaultManager = "espalier.test"

// Client is a client of a [Store]. It answers with copies. As with the clients of controller-runtime, objects of Go
// types are answered without their kind, unless the caller had set it or the answer comes from a cache.
type Client struct {
	store   *Store
	options ClientOptions
	indexes indexes
}

var _ client.WithWatch = (*Client)(nil)

// Client returns a client.
func (s *Store) Client(options ClientOptions) *Client {
	if options.Scheme == nil {
		options.Scheme = s.options.Scheme
	}
	return &Client{store: s, options: options, indexes: newIndexes(options.Indexes)}
}

// Store returns the store of the client.
func (c *Client) Store() *Store { return c.store }

// Scheme implements [client.Client].
func (c *Client) Scheme() *runtime.Scheme { return c.options.Scheme }

// RESTMapper implements [client.Client].
func (c *Client) RESTMapper() meta.RESTMapper { return c.store.RESTMapper() }

// GroupVersionKindFor implements [client.Client].
func (c *Client) GroupVersionKindFor(obj runtime.Object) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(obj, c.options.Scheme)
}

// IsObjectNamespaced implements [client.Client].
func (c *Client) IsObjectNamespaced(obj runtime.Object) (bool, error) {
	return apiutil.IsObjectNamespaced(obj, c.options.Scheme, c.RESTMapper())
}

// Create implements [client.Client].
func (c *Client) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
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
func (c *Client) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
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
func (c *Client) Patch(
	ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption,
) error {
	options := (&client.PatchOptions{}).ApplyOptions(opts)
	return c.patch(ctx, obj, obj, patch, options.AsPatchOptions(), "")
}

// creates returns how a create with the options writes.
func (c *Client) creates(options *metav1.CreateOptions, subresource string) (write, error) {
	return c.write(options.FieldManager, options.FieldValidation, options.DryRun, subresource),
		invalidOptions("CreateOptions", validation.ValidateCreateOptions(options))
}

// updates returns how an update with the options writes.
func (c *Client) updates(options *metav1.UpdateOptions, subresource string) (write, error) {
	return c.write(options.FieldManager, options.FieldValidation, options.DryRun, subresource),
		invalidOptions("UpdateOptions", validation.ValidateUpdateOptions(options))
}

func (c *Client) write(manager, fieldValidation string, dryRun []string, subresource string) write {
	return write{
		manager: c.manager(manager), subresource: subresource, dryRun: isDryRun(dryRun),
		strict: fieldValidation == metav1.FieldValidationStrict, refuseDropped: c.options.RefuseDropped,
	}
}

// patch patches the object with the name of obj. Body is what the patch is computed from, and what is filled.
func (c *Client) patch(
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
func (c *Client) answer(
	ctx context.Context, verb Verb, obj, body client.Object, w write,
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
func (c *Client) call(verb Verb, gvk schema.GroupVersionKind, key client.ObjectKey) Call {
	call := Call{Verb: verb, Kind: gvk, Namespace: key.Namespace, Name: key.Name}
	c.store.mu.RLock()
	defer c.store.mu.RUnlock()
	if r, err := c.store.resource(gvk); err == nil {
		call.Namespace = r.namespace(call.Namespace)
	}
	return call
}

// run makes a call, or leaves it to Intercept.
func (c *Client) run(ctx context.Context, call Call, do func() error) error {
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

func (c *Client) manager(given string) string {
	return cmp.Or(given, c.options.FieldManager, DefaultManager)
}

func isDryRun(values []string) bool { return slices.Contains(values, metav1.DryRunAll) }
