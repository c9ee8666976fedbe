package clusters

import (
	"context"
	"sync/atomic"

	"github.com/espalier-dev/espalier/internal/component/served"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// typeInfo is what was learned about the types of a cluster. The mapper keeps where types are served, and the client
// keeps what the mapper once answered.
type typeInfo struct {
	mapper meta.RESTMapper
	client client.Client
}

// resettable holds type information that can be dropped. A mapper of controller-runtime finds new types by itself, but
// never forgets a type that is not served any more or is served elsewhere; it has no Reset, and neither has a client.
type resettable struct {
	// empty returns type information of no type. It makes no request.
	empty     func() (*typeInfo, error)
	discovery rest.Interface
	current   atomic.Pointer[typeInfo]
}

// reset drops what was learned.
func (r *resettable) reset() error {
	info, err := r.empty()
	if err == nil {
		r.current.Store(info)
	}
	return err
}

// resettableMapper is a REST mapper that asks the API server for types it does not know, and that can be reset.
type resettableMapper struct{ *resettable }

var (
	_ meta.ResettableRESTMapper = resettableMapper{}
	_ served.Discoverer         = resettableMapper{}
)

// Discover implements [served.Discoverer]. It asks the API server each time.
func (m resettableMapper) Discover(ctx context.Context, gk schema.GroupKind) (schema.GroupVersionResource, error) {
	return served.Discover(ctx, m.discovery, gk)
}

// Reset implements [meta.ResettableRESTMapper]. It also resets the client of the cluster, and makes no request. The
// error cannot happen, since the same information was made before; what was learned then stays.
func (m resettableMapper) Reset() { _ = m.reset() }

func (m resettableMapper) mapper() meta.RESTMapper { return m.current.Load().mapper }

func (m resettableMapper) KindFor(resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return m.mapper().KindFor(resource)
}

func (m resettableMapper) KindsFor(resource schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return m.mapper().KindsFor(resource)
}

func (m resettableMapper) ResourceFor(input schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return m.mapper().ResourceFor(input)
}

func (m resettableMapper) ResourcesFor(input schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	return m.mapper().ResourcesFor(input)
}

func (m resettableMapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return m.mapper().RESTMapping(gk, versions...)
}

func (m resettableMapper) RESTMappings(gk schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	return m.mapper().RESTMappings(gk, versions...)
}

func (m resettableMapper) ResourceSingularizer(resource string) (string, error) {
	return m.mapper().ResourceSingularizer(resource)
}

// liveClient makes each request with the client of the current type information.
type liveClient struct{ *resettable }

var _ client.Client = liveClient{}

func (c liveClient) client() client.Client { return c.current.Load().client }

func (c liveClient) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	return c.client().Get(ctx, key, o, opts...)
}

func (c liveClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.client().List(ctx, list, opts...)
}

func (c liveClient) Apply(ctx context.Context, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	return c.client().Apply(ctx, o, opts...)
}

func (c liveClient) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	return c.client().Create(ctx, o, opts...)
}

func (c liveClient) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	return c.client().Delete(ctx, o, opts...)
}

func (c liveClient) Update(ctx context.Context, o client.Object, opts ...client.UpdateOption) error {
	return c.client().Update(ctx, o, opts...)
}

func (c liveClient) Patch(ctx context.Context, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return c.client().Patch(ctx, o, patch, opts...)
}

func (c liveClient) DeleteAllOf(ctx context.Context, o client.Object, opts ...client.DeleteAllOfOption) error {
	return c.client().DeleteAllOf(ctx, o, opts...)
}

func (c liveClient) Status() client.SubResourceWriter { return c.client().Status() }

func (c liveClient) SubResource(name string) client.SubResourceClient {
	return c.client().SubResource(name)
}

func (c liveClient) Scheme() *runtime.Scheme { return c.client().Scheme() }

func (c liveClient) RESTMapper() meta.RESTMapper { return resettableMapper(c) }

func (c liveClient) GroupVersionKindFor(object runtime.Object) (schema.GroupVersionKind, error) {
	return c.client().GroupVersionKindFor(object)
}

func (c liveClient) IsObjectNamespaced(object runtime.Object) (bool, error) {
	return c.client().IsObjectNamespaced(object)
}
