package clusters

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// liveClient makes each request with the client of what is known now.
type liveClient struct{ *knowledge }

var _ client.Client = liveClient{}

func (c liveClient) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	return c.current().client.Get(ctx, key, object, opts...)
}

func (c liveClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.current().client.List(ctx, list, opts...)
}

func (c liveClient) Apply(ctx context.Context, object runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	return c.current().client.Apply(ctx, object, opts...)
}

func (c liveClient) Create(ctx context.Context, object client.Object, opts ...client.CreateOption) error {
	return c.current().client.Create(ctx, object, opts...)
}

func (c liveClient) Delete(ctx context.Context, object client.Object, opts ...client.DeleteOption) error {
	return c.current().client.Delete(ctx, object, opts...)
}

func (c liveClient) Update(ctx context.Context, object client.Object, opts ...client.UpdateOption) error {
	return c.current().client.Update(ctx, object, opts...)
}

func (c liveClient) Patch(ctx context.Context, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return c.current().client.Patch(ctx, object, patch, opts...)
}

func (c liveClient) DeleteAllOf(ctx context.Context, object client.Object, opts ...client.DeleteAllOfOption) error {
	return c.current().client.DeleteAllOf(ctx, object, opts...)
}

func (c liveClient) Status() client.SubResourceWriter { return c.current().client.Status() }

func (c liveClient) SubResource(name string) client.SubResourceClient {
	return c.current().client.SubResource(name)
}

func (c liveClient) Scheme() *runtime.Scheme { return c.scheme }

func (c liveClient) RESTMapper() meta.RESTMapper { return mapper(c) }

func (c liveClient) GroupVersionKindFor(object runtime.Object) (schema.GroupVersionKind, error) {
	return c.current().client.GroupVersionKindFor(object)
}

func (c liveClient) IsObjectNamespaced(object runtime.Object) (bool, error) {
	return c.current().client.IsObjectNamespaced(object)
}
