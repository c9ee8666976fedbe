package store

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/registry"
	"github.com/espalier-dev/espalier/testing/internal/server"
	"github.com/espalier-dev/espalier/testing/internal/storage"
)

// kinds are what is served with a set of definitions. They do not change, so forks share them.
type kinds struct {
	catalog *catalog
	// defined are those that are, or were, defined; nil if they are not any more.
	defined map[schema.GroupKind]*kind

	mu      sync.Mutex
	remotes map[*runtime.Scheme]remotes
}

// definitionsPrefix is what the keys of definitions begin with in the storage.
const definitionsPrefix = "/apiextensions.k8s.io/customresourcedefinitions/"

// with returns what is served with the definitions in a storage, after it was k.
func (k *kinds) with(kept *storage.Storage) *kinds {
	defined := map[schema.GroupKind]*kind{}
	for of := range k.defined {
		defined[of] = nil
	}
	for _, e := range kept.Entries(definitionsPrefix) {
		found := definedIn(e)
		if found != nil && defined[found.GroupKind] == nil {
			defined[found.GroupKind] = found
		}
	}
	return &kinds{catalog: k.catalog, defined: defined}
}

type ofDefinition struct{}

// definedIn returns the kind that the definition in an entry defines, nil if that is not served.
func definedIn(e *storage.Entry) *kind {
	return e.Derived(ofDefinition{}, func() any {
		d := &apiextensionsv1.CustomResourceDefinition{}
		if err := json.Unmarshal(e.Value, d); err != nil || !registry.Established(d) {
			return (*kind)(nil)
		}
		return definedKind(d)
	}).(*kind)
}

// find returns a kind, nil if it is not served.
func (k *kinds) find(of schema.GroupKind) *kind {
	if found, ok := k.defined[of]; ok {
		return found
	}
	return k.catalog.kind(of)
}

// all are the kinds that are served.
func (k *kinds) all() []*kind {
	known := k.catalog.all()
	for of := range k.defined {
		known[of] = true
	}
	var all []*kind
	for of := range maps.Keys(known) {
		if found := k.find(of); found != nil {
			all = append(all, found)
		}
	}
	return all
}

// object returns the object that an entry of the storage has, in the Go type of its kind, without managed fields. It
// must not be changed.
func (k *kinds) object(e *storage.Entry) client.Object {
	if e == nil {
		return nil
	}
	return e.Derived(k.catalog, func() any { return k.decode(e) }).(client.Object)
}

func (k *kinds) decode(e *storage.Entry) client.Object {
	var is metav1.TypeMeta
	_ = json.Unmarshal(e.Value, &is) // An API server has encoded it.
	gvk := is.GroupVersionKind()
	var obj client.Object = &unstructured.Unstructured{}
	if v := k.find(gvk.GroupKind()).version(gvk.Version); v != nil {
		obj = v.object()
	}
	if _, ok := obj.(runtime.Unstructured); !ok && json.Unmarshal(e.Value, obj) != nil {
		obj = &unstructured.Unstructured{}
	}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		_ = u.UnmarshalJSON(e.Value)
	}
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	setVersion(obj, e.Revision)
	obj.SetManagedFields(nil)
	return obj
}

// keyOf names the object that an entry has.
func keyOf(obj client.Object) Key {
	return newKey(obj.GetObjectKind().GroupVersionKind().GroupKind(), obj.GetNamespace(), obj.GetName())
}

// remotes are clients of the API server with the Go types of a scheme. What they read and write says the context of a
// call. Nothing says whether objects of a Go type without a definition are in namespaces: the first takes them for such
// that are, the second for such that are not.
type remotes struct{ namespaced, cluster client.WithWatch }

// remote returns the client for objects of a kind. Empty says that they are in no namespace, or in any.
func (k *kinds) remote(scheme *runtime.Scheme, of *kind, empty bool) (client.WithWatch, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	found, ok := k.remotes[scheme]
	if !ok {
		var err error
		if found, err = k.newRemotes(scheme); err != nil {
			return nil, err
		}
		if k.remotes == nil {
			k.remotes = map[*runtime.Scheme]remotes{}
		}
		k.remotes[scheme] = found
	}
	if of != nil && of.scope == registry.AnyScope && empty {
		return found.cluster, nil
	}
	return found.namespaced, nil
}

func (k *kinds) newRemotes(scheme *runtime.Scheme) (made remotes, err error) {
	s, err := server.Shared()
	if err != nil {
		return made, err
	}
	config := &rest.Config{Host: server.Host, QPS: -1, WarningHandler: rest.NoWarnings{}}
	over := &http.Client{Transport: s.Transport()}
	scope := func(of *kind) meta.RESTScope { return scopeOf(of, false) }
	made.namespaced, err = client.NewWithWatch(config, client.Options{
		HTTPClient: over, Scheme: scheme, Mapper: mapper{func() *kinds { return k }, scope},
	})
	if err != nil {
		return made, err
	}
	scope = func(of *kind) meta.RESTScope { return scopeOf(of, true) }
	made.cluster, err = client.NewWithWatch(config, client.Options{
		HTTPClient: over, Scheme: scheme, Mapper: mapper{func() *kinds { return k }, scope},
	})
	return made, err
}

// scopeOf returns the scope of a kind. Cluster says what it is if nothing else says it.
func scopeOf(of *kind, cluster bool) meta.RESTScope {
	if of.scope == registry.Cluster || of.scope == registry.AnyScope && cluster {
		return meta.RESTScopeRoot
	}
	return meta.RESTScopeNamespace
}

// isDefinitionKey reports whether a key of the storage is that of a definition.
func isDefinitionKey(key string) bool { return strings.HasPrefix(key, definitionsPrefix) }
