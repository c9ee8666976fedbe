package clusters

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"github.com/espalier-dev/espalier/internal/component/served"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// known is what was learned of the types of a cluster: a mapper, and a client, which keeps of each type where the mapper once
// found it.
type known struct {
	mapper meta.RESTMapper
	client client.Client
}

// knowledge makes what is known, which can be forgotten: a mapper of controller-runtime learns of new types by itself, but
// goes on to believe in those that are served no more, or elsewhere.
type knowledge struct {
	config     *rest.Config
	httpClient *http.Client
	scheme     *runtime.Scheme
	discovery  rest.Interface

	mu  sync.RWMutex
	now known
}

func newKnowledge(config *rest.Config, httpClient *http.Client, scheme *runtime.Scheme, discovery rest.Interface) (*knowledge, error) {
	k := &knowledge{config: config, httpClient: httpClient, scheme: scheme, discovery: discovery}
	now, err := k.begin()
	if err != nil {
		return nil, err
	}
	k.now = now
	return k, nil
}

// begin returns knowledge of nothing. It makes no request.
func (k *knowledge) begin() (known, error) {
	mapper, err := apiutil.NewDynamicRESTMapper(k.config, k.httpClient)
	if err != nil {
		return known{}, fmt.Errorf("could not make a REST mapper: %w", err)
	}
	c, err := client.New(k.config, client.Options{HTTPClient: k.httpClient, Scheme: k.scheme, Mapper: mapper})
	if err != nil {
		return known{}, fmt.Errorf("could not make a client: %w", err)
	}
	return known{mapper: mapper, client: c}, nil
}

// forget begins anew.
func (k *knowledge) forget() {
	now, err := k.begin()
	if err != nil {
		// It was made from the same once, so this cannot be. Old knowledge is better than none.
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.now = now
}

func (k *knowledge) current() known {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.now
}

// mapper is a REST mapper that asks the API server for what it does not know, and can be told to ask again for what it does.
type mapper struct{ *knowledge }

var (
	_ meta.ResettableRESTMapper = mapper{}
	_ served.Discoverer         = mapper{}
)

// Discover implements [served.Discoverer]. It asks the API server each time.
func (m mapper) Discover(ctx context.Context, gk schema.GroupKind) (at schema.GroupVersionResource, ok bool, err error) {
	return served.Discover(ctx, m.discovery, gk)
}

// Reset implements [meta.ResettableRESTMapper]. The client of the cluster forgets as well. No request is made.
func (m mapper) Reset() { m.forget() }

func (m mapper) KindFor(resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return m.current().mapper.KindFor(resource)
}

func (m mapper) KindsFor(resource schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return m.current().mapper.KindsFor(resource)
}

func (m mapper) ResourceFor(input schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return m.current().mapper.ResourceFor(input)
}

func (m mapper) ResourcesFor(input schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	return m.current().mapper.ResourcesFor(input)
}

func (m mapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return m.current().mapper.RESTMapping(gk, versions...)
}

func (m mapper) RESTMappings(gk schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	return m.current().mapper.RESTMappings(gk, versions...)
}

func (m mapper) ResourceSingularizer(resource string) (string, error) {
	return m.current().mapper.ResourceSingularizer(resource)
}
