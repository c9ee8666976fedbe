package clusters

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/espalier-dev/espalier/internal/served"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// typeInfo is what was learned about the types of a cluster. The client keeps what the mapper once answered.
type typeInfo struct {
	client client.Client
	// catalog has what the API server said last. It is nil as long as it was not asked.
	catalog *catalog
	// learned are mappers of one type each, from definitions that are newer than the catalog.
	learned map[schema.GroupKind]meta.RESTMapper
}

// find returns where a type is served; ok is false if that is not known.
func (t *typeInfo) find(gk schema.GroupKind, versions ...string) (mapping *meta.RESTMapping, ok bool) {
	if learned := t.learned[gk]; learned != nil {
		if mapping, err := learned.RESTMapping(gk, versions...); err == nil {
			return mapping, true
		}
	}
	if t.catalog == nil || t.catalog.asks {
		return nil, false
	}
	mapping, err := t.catalog.RESTMapping(gk, versions...)
	return mapping, err == nil
}

// catalog is a mapper of all types that the API server said that it serves.
type catalog struct {
	meta.RESTMapper
	// asks reports whether the mapper itself asks the API server for types that it does not know, because the API
	// server does not tell all types at once.
	asks bool
}

// resettable holds type information that can be dropped. Mappers of client-go and controller-runtime do not forget a
// type that is not served any more or is served elsewhere, and neither does a client.
type resettable struct {
	config    *rest.Config
	http      *http.Client
	scheme    *runtime.Scheme
	discovery *discovery.DiscoveryClient
	current   atomic.Pointer[typeInfo]
	// lock is held to replace current.
	lock    sync.Mutex
	loading singleflight.Group
}

// reset drops what was learned. It makes no request.
func (r *resettable) reset() error {
	c, err := client.New(r.config, client.Options{HTTPClient: r.http, Scheme: r.scheme, Mapper: resettableMapper{r}})
	if err != nil {
		return fmt.Errorf("could not make a client: %w", err)
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	r.current.Store(&typeInfo{client: c})
	return nil
}

// change replaces what was learned by a changed copy.
func (r *resettable) change(change func(info *typeInfo)) {
	r.lock.Lock()
	defer r.lock.Unlock()
	changed := *r.current.Load()
	change(&changed)
	r.current.Store(&changed)
}

// refresh asks the API server for all types.
func (r *resettable) refresh(ctx context.Context) (*catalog, error) {
	loaded, err, _ := r.loading.Do("", func() (any, error) {
		// The answer is for others, too, that wait for it.
		loaded, err := r.load(context.WithoutCancel(ctx))
		if err == nil {
			r.change(func(info *typeInfo) { info.catalog = loaded })
		}
		return loaded, err
	})
	return loaded.(*catalog), err
}

// load asks for all types with two requests. An older API server tells only the groups.
func (r *resettable) load(ctx context.Context) (*catalog, error) {
	groups, resources, _, err := r.discovery.GroupsAndMaybeResourcesWithContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("could not find out which types the API server serves: %w", err)
	}
	if len(resources) == 0 {
		mapper, err := apiutil.NewDynamicRESTMapper(r.config, r.http)
		if err != nil {
			return nil, fmt.Errorf("could not make a REST mapper: %w", err)
		}
		return &catalog{mapper, true}, nil
	}
	all := make([]*restmapper.APIGroupResources, len(groups.Groups))
	for i, group := range groups.Groups {
		all[i] = &restmapper.APIGroupResources{Group: group, VersionedResources: map[string][]metav1.APIResource{}}
		for _, version := range group.Versions {
			if list := resources[schema.GroupVersion{Group: group.Name, Version: version.Version}]; list != nil {
				all[i].VersionedResources[version.Version] = list.APIResources
			}
		}
	}
	return &catalog{restmapper.NewDiscoveryRESTMapper(all), false}, nil
}

// resettableMapper is a REST mapper that asks the API server for types it does not know, and that can be reset.
type resettableMapper struct{ *resettable }

var (
	_ meta.ResettableRESTMapper = resettableMapper{}
	_ served.Discoverer         = resettableMapper{}
)

// Discover implements [served.Discoverer]. It asks the API server each time.
func (m resettableMapper) Discover(ctx context.Context, gk schema.GroupKind) (schema.GroupVersionResource, error) {
	return served.Discover(ctx, m.discovery.RESTClient(), gk)
}

// Known implements [served.Discoverer].
func (m resettableMapper) Known(gk schema.GroupKind) (*meta.RESTMapping, bool) {
	if m.current.Load().catalog == nil {
		_, _ = m.refresh(context.Background()) // After an error, the type is not known.
	}
	return m.current.Load().find(gk)
}

// Learn implements [served.Discoverer].
func (m resettableMapper) Learn(d *served.Definition) {
	scope := meta.RESTScope(meta.RESTScopeRoot)
	if d.Namespaced {
		scope = meta.RESTScopeNamespace
	}
	versions := make([]schema.GroupVersion, len(d.Versions))
	for i, version := range d.Versions {
		versions[i] = schema.GroupVersion{Group: d.Group, Version: version}
	}
	learned := meta.NewDefaultRESTMapper(versions)
	for _, v := range versions {
		learned.AddSpecific(v.WithKind(d.Kind), v.WithResource(d.Plural), v.WithResource(d.Singular), scope)
	}
	m.change(func(info *typeInfo) {
		info.learned = maps.Clone(info.learned)
		if info.learned == nil {
			info.learned = map[schema.GroupKind]meta.RESTMapper{}
		}
		info.learned[d.GroupKind] = learned
	})
}

// Reset implements [meta.ResettableRESTMapper]. It also resets the client of the cluster, and makes no request. The
// error cannot happen, since the same client was made before; what was learned then stays.
func (m resettableMapper) Reset() { _ = m.reset() }

// RESTMapping implements [meta.RESTMapper].
func (m resettableMapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if mapping, ok := m.current.Load().find(gk, versions...); ok {
		return mapping, nil
	}
	return ask(m, func(mapper meta.RESTMapper) (*meta.RESTMapping, error) {
		return mapper.RESTMapping(gk, versions...)
	})
}

// RESTMappings implements [meta.RESTMapper].
func (m resettableMapper) RESTMappings(gk schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	return ask(m, func(mapper meta.RESTMapper) ([]*meta.RESTMapping, error) {
		return mapper.RESTMappings(gk, versions...)
	})
}

// KindFor implements [meta.RESTMapper].
func (m resettableMapper) KindFor(resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return ask(m, func(mapper meta.RESTMapper) (schema.GroupVersionKind, error) { return mapper.KindFor(resource) })
}

// KindsFor implements [meta.RESTMapper].
func (m resettableMapper) KindsFor(resource schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return ask(m, func(mapper meta.RESTMapper) ([]schema.GroupVersionKind, error) { return mapper.KindsFor(resource) })
}

// ResourceFor implements [meta.RESTMapper].
func (m resettableMapper) ResourceFor(input schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return ask(m, func(mapper meta.RESTMapper) (schema.GroupVersionResource, error) {
		return mapper.ResourceFor(input)
	})
}

// ResourcesFor implements [meta.RESTMapper].
func (m resettableMapper) ResourcesFor(input schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	return ask(m, func(mapper meta.RESTMapper) ([]schema.GroupVersionResource, error) {
		return mapper.ResourcesFor(input)
	})
}

// ResourceSingularizer implements [meta.RESTMapper].
func (m resettableMapper) ResourceSingularizer(resource string) (string, error) {
	return ask(m, func(mapper meta.RESTMapper) (string, error) { return mapper.ResourceSingularizer(resource) })
}

// ask asks the catalog, and once more with what the API server says now if the catalog does not know.
func ask[T any](m resettableMapper, question func(mapper meta.RESTMapper) (T, error)) (answer T, err error) {
	known := m.current.Load().catalog
	if known != nil {
		if answer, err = question(known); known.asks || !meta.IsNoMatchError(err) {
			return answer, err
		}
	}
	if known, err = m.refresh(context.Background()); err != nil {
		return answer, err
	}
	return question(known)
}

// liveClient makes each request with the client of the current type information. What needs no type information is
// asked of the first client.
type liveClient struct {
	client.Client
	*resettable
}

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
