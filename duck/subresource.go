package duck

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var (
	_ client.SubResourceWriter = (*duckSubResourceWriter)(nil)
	_ client.SubResourceClient = (*duckSubResourceClient)(nil)
)

// duckSubResourceWriter refuses Create and Update of ducks even where they are allowed for whole objects. The status
// belongs to another writer than the rest of the object.
type duckSubResourceWriter struct {
	inner  client.SubResourceWriter
	scheme SchemeAccessor
}

func (w *duckSubResourceWriter) isDuck(obj runtime.Object) bool {
	return IsDuck(obj, w.scheme.Scheme())
}

func (w *duckSubResourceWriter) Create(
	ctx context.Context, obj client.Object, subResource client.Object, opts ...client.SubResourceCreateOption,
) error {
	if w.isDuck(obj) {
		return errCreate
	}
	return w.inner.Create(ctx, obj, subResource, opts...)
}

func (w *duckSubResourceWriter) Update(
	ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption,
) error {
	if w.isDuck(obj) {
		return errUpdate
	}
	return w.inner.Update(ctx, obj, opts...)
}

func (w *duckSubResourceWriter) Patch(
	ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption,
) error {
	if !w.isDuck(obj) {
		return w.inner.Patch(ctx, obj, patch, opts...)
	}
	options := (&client.SubResourcePatchOptions{}).ApplyOptions(opts)
	if options.SubResourceBody != nil {
		return w.patchBody(ctx, obj, options.SubResourceBody, patch, opts)
	}
	patch, err := precompute(patch, obj)
	if err != nil {
		return err
	}
	return asUnstructured(obj, func(u client.Object) error {
		return w.inner.Patch(ctx, u, patch, opts...)
	})
}

// patchBody patches a sub-resource whose body is not the object itself. The inner client needs both in unstructured
// form. The response is stored in the body.
func (w *duckSubResourceWriter) patchBody(
	ctx context.Context, obj, body client.Object, patch client.Patch, opts []client.SubResourcePatchOption,
) error {
	patch, err := precompute(patch, body)
	if err != nil {
		return err
	}
	u, err := unstructuredOf(body, w.scheme.Scheme())
	if err != nil {
		return err
	}
	opts = append(opts[:len(opts):len(opts)], client.WithSubResourceBody(u))
	if err := w.inner.Patch(ctx, blankNamed(obj), patch, opts...); err != nil {
		return err
	}
	return fill(body, u)
}

func (w *duckSubResourceWriter) Apply(
	ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption,
) error {
	return w.inner.Apply(ctx, obj, opts...)
}

type duckSubResourceClient struct {
	duckSubResourceWriter

	inner client.SubResourceClient
}

// Get converts both objects if either of the two is a duck, because an inner client needs both or neither in
// unstructured form.
func (c *duckSubResourceClient) Get(
	ctx context.Context, obj client.Object, subResource client.Object, opts ...client.SubResourceGetOption,
) error {
	if !c.isDuck(obj) && !c.isDuck(subResource) {
		return c.inner.Get(ctx, obj, subResource, opts...)
	}
	u, err := unstructuredOf(obj, c.scheme.Scheme())
	if err != nil {
		return err
	}
	sub, err := unstructuredOf(subResource, c.scheme.Scheme())
	if err != nil {
		return err
	}
	if err := c.inner.Get(ctx, u, sub, opts...); err != nil {
		return err
	}
	return fill(subResource, sub)
}

// blankNamed is [blank] with the namespace and name of the duck.
func blankNamed(duck client.Object) *unstructured.Unstructured {
	u := blank(duck)
	u.SetNamespace(duck.GetNamespace())
	u.SetName(duck.GetName())
	return u
}
