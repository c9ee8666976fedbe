package duck

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Programs written for reconciler.io/runtime may compare these texts.
var (
	errCreate = errors.New("Create is not supported for the duck typed objects")
	errUpdate = errors.New("Update is not supported for the duck typed objects, use Patch instead")
	errWatch  = errors.New("unable to call Watch with wrapped client that does not implement client.WithWatch")
	errNoKind = errors.New("object must directly define APIVersion and Kind")
)

var _ client.WithWatch = (*duckClient)(nil)

// SchemeAccessor gives access to a scheme. Every client.Client is one.
type SchemeAccessor interface {
	// Scheme returns the scheme. A Go type that is registered in it is no duck.
	Scheme() *runtime.Scheme
}

// NewDuckAwareAPIReaderWrapper returns a reader that reads ducks as unstructured objects through reader, and passes
// everything else on to it.
func NewDuckAwareAPIReaderWrapper(reader client.Reader, scheme SchemeAccessor) client.Reader {
	return &duckReader{inner: reader, scheme: scheme}
}

// NewDuckAwareClientWrapper returns a client that passes ducks on to client as unstructured objects, and everything
// else as it is. Create and Update of a duck are refused, because they would write only the fields that the duck knows,
// and so remove all others: use Patch.
//
// The client also implements client.WithWatch. If client does not, Watch returns an error.
func NewDuckAwareClientWrapper(client client.Client) client.Client {
	return newDuckClient(client, false)
}

// NewDangerousDuckAwareClientWrapper is [NewDuckAwareClientWrapper] with Create and Update of ducks allowed. An Update
// removes every field that the duck does not know. Create and Update of their sub-resources stay refused.
func NewDangerousDuckAwareClientWrapper(client client.Client) client.Client {
	return newDuckClient(client, true)
}

func newDuckClient(inner client.Client, dangerous bool) *duckClient {
	return &duckClient{
		duckReader: duckReader{inner: inner, scheme: inner},
		inner:      inner,
		dangerous:  dangerous,
	}
}

type duckReader struct {
	inner  client.Reader
	scheme SchemeAccessor
}

func (r *duckReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if !IsDuck(obj, r.scheme.Scheme()) {
		return r.inner.Get(ctx, key, obj, opts...)
	}
	u := blank(obj)
	if err := r.inner.Get(ctx, key, u, opts...); err != nil {
		return err
	}
	return fill(obj, u)
}

func (r *duckReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if !IsDuck(list, r.scheme.Scheme()) {
		return r.inner.List(ctx, list, opts...)
	}
	u := &unstructured.UnstructuredList{}
	u.SetGroupVersionKind(list.GetObjectKind().GroupVersionKind())
	if err := r.inner.List(ctx, u, opts...); err != nil {
		return err
	}
	return fill(list, u)
}

type duckClient struct {
	duckReader

	inner     client.Client
	dangerous bool
}

func (c *duckClient) isDuck(obj runtime.Object) bool {
	return IsDuck(obj, c.inner.Scheme())
}

// Apply passes obj on unchanged, because an apply configuration has exactly the fields that its author wants to own.
func (c *duckClient) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	return c.inner.Apply(ctx, obj, opts...)
}

func (c *duckClient) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	if !c.dangerous && c.isDuck(obj) {
		return errCreate
	}
	return c.forward(obj, func(obj client.Object) error { return c.inner.Create(ctx, obj, opts...) })
}

func (c *duckClient) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	if !c.dangerous && c.isDuck(obj) {
		return errUpdate
	}
	return c.forward(obj, func(obj client.Object) error { return c.inner.Update(ctx, obj, opts...) })
}

func (c *duckClient) Patch(
	ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption,
) error {
	if !c.isDuck(obj) {
		return c.inner.Patch(ctx, obj, patch, opts...)
	}
	patch, err := precompute(patch, obj)
	if err != nil {
		return err
	}
	return asUnstructured(obj, func(u client.Object) error {
		return c.inner.Patch(ctx, u, patch, opts...)
	})
}

func (c *duckClient) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	return c.forward(obj, func(obj client.Object) error { return c.inner.Delete(ctx, obj, opts...) })
}

func (c *duckClient) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	return c.forward(obj, func(obj client.Object) error { return c.inner.DeleteAllOf(ctx, obj, opts...) })
}

// forward makes call with obj, in its unstructured form if it is a duck.
func (c *duckClient) forward(obj client.Object, call func(client.Object) error) error {
	if !c.isDuck(obj) {
		return call(obj)
	}
	return asUnstructured(obj, call)
}

// Watch watches ducks as unstructured objects; the events bring objects of the list's item type.
func (c *duckClient) Watch(
	ctx context.Context, list client.ObjectList, opts ...client.ListOption,
) (watch.Interface, error) {
	inner, ok := c.inner.(client.WithWatch)
	if !ok {
		return nil, errWatch
	}
	if !c.isDuck(list) {
		return inner.Watch(ctx, list, opts...)
	}
	newItem, err := itemsOf(list)
	if err != nil {
		return nil, err
	}
	u := &unstructured.UnstructuredList{}
	u.SetGroupVersionKind(list.GetObjectKind().GroupVersionKind())
	events, err := inner.Watch(ctx, u, opts...)
	if err != nil {
		return nil, err
	}
	return convertEvents(ctx, events, newItem), nil
}

func (c *duckClient) Status() client.SubResourceWriter {
	return &duckSubResourceWriter{inner: c.inner.Status(), scheme: c.inner}
}

func (c *duckClient) SubResource(subResource string) client.SubResourceClient {
	inner := c.inner.SubResource(subResource)
	return &duckSubResourceClient{
		duckSubResourceWriter: duckSubResourceWriter{inner: inner, scheme: c.inner},
		inner:                 inner,
	}
}

func (c *duckClient) Scheme() *runtime.Scheme {
	return c.inner.Scheme()
}

func (c *duckClient) RESTMapper() meta.RESTMapper {
	return c.inner.RESTMapper()
}

func (c *duckClient) GroupVersionKindFor(obj runtime.Object) (schema.GroupVersionKind, error) {
	if !c.isDuck(obj) {
		return c.inner.GroupVersionKindFor(obj)
	}
	gvk := obj.GetObjectKind().GroupVersionKind()
	if gvk.Version == "" || gvk.Kind == "" {
		return schema.GroupVersionKind{}, errNoKind
	}
	return gvk, nil
}

func (c *duckClient) IsObjectNamespaced(obj runtime.Object) (bool, error) {
	if !c.isDuck(obj) {
		return c.inner.IsObjectNamespaced(obj)
	}
	return c.inner.IsObjectNamespaced(blank(obj))
}
