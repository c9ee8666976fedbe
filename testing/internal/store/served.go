package store

import (
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
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
	defined map[schema.GroupKind]*server.Kind

	mu      sync.Mutex
	remotes map[remoteKey]client.WithWatch
}

// with returns what is served with the definitions in a storage, after it was k.
func (k *kinds) with(kept *storage.Storage) *kinds {
	defined := map[schema.GroupKind]*server.Kind{}
	for of := range k.defined {
		defined[of] = nil
	}
	for _, e := range kept.Entries(server.DefinitionsPrefix) {
		found := server.DefinedIn(e)
		if found != nil && defined[found.GroupKind] == nil {
			defined[found.GroupKind] = found
		}
	}
	return &kinds{catalog: k.catalog, defined: defined}
}

// find returns a kind, nil if it is not served.
func (k *kinds) find(of schema.GroupKind) *server.Kind {
	if found, ok := k.defined[of]; ok {
		return found
	}
	return k.catalog.kind(of)
}

// custom returns a kind that is neither built in nor defined, nil if it is not served.
func (k *kinds) custom(of schema.GroupKind) *server.Kind {
	if _, defined := k.defined[of]; defined || isBuiltIn(of) {
		return nil
	}
	return k.catalog.kind(of)
}

// all are the kinds that are served.
func (k *kinds) all() []*server.Kind {
	known := k.catalog.all()
	for of := range k.defined {
		known[of] = true
	}
	var all []*server.Kind
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
	shared := e.Object()
	if obj, ok := k.stripped(shared); ok {
		return obj
	}
	var gvk schema.GroupVersionKind
	if u, ok := shared.(*unstructured.Unstructured); ok {
		gvk = u.GroupVersionKind()
	} else {
		var is metav1.TypeMeta
		_ = json.Unmarshal(e.Value, &is) // An API server has encoded it.
		gvk = is.GroupVersionKind()
	}
	var obj client.Object = &unstructured.Unstructured{}
	if v := k.find(gvk.GroupKind()).Version(gvk.Version); v != nil {
		obj = v.New()
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

// stripped returns an object of a built-in kind that was decoded already, with its kind and without managed fields. It
// shares what it has with the other one.
func (k *kinds) stripped(shared runtime.Object) (client.Object, bool) {
	if shared == nil {
		return nil, false
	}
	gvk := builtInKind(shared)
	if v := k.find(gvk.GroupKind()).Version(gvk.Version); v == nil ||
		reflect.TypeOf(v.New()) != reflect.TypeOf(shared) {
		return nil, false
	}
	obj := reflect.New(reflect.TypeOf(shared).Elem())
	obj.Elem().Set(reflect.ValueOf(shared).Elem())
	found := obj.Interface().(client.Object)
	found.GetObjectKind().SetGroupVersionKind(gvk)
	found.SetManagedFields(nil)
	return found, true
}

// builtInKinds has the kinds of Go types, to save looking for them.
var builtInKinds sync.Map

// builtInKind returns the kind of an object that has the Go type of a built-in one, and no kind for another.
func builtInKind(obj runtime.Object) schema.GroupVersionKind {
	goType := reflect.TypeOf(obj)
	if known, ok := builtInKinds.Load(goType); ok {
		return known.(schema.GroupVersionKind)
	}
	var gvk schema.GroupVersionKind
	if _, isUnstructured := obj.(runtime.Unstructured); !isUnstructured {
		if all, _, err := clientgoscheme.Scheme.ObjectKinds(obj); err == nil {
			gvk = all[0]
		}
	}
	builtInKinds.Store(goType, gvk)
	return gvk
}

// keyOf names the object that an entry has.
func keyOf(obj client.Object) Key {
	return newKey(obj.GetObjectKind().GroupVersionKind().GroupKind(), obj.GetNamespace(), obj.GetName())
}

// remote returns the client for calls about a kind. Empty says that the objects are in no namespace, or in any.
func (k *kinds) remote(scheme *runtime.Scheme, gvk schema.GroupVersionKind, empty bool) (client.WithWatch, error) {
	of := k.find(gvk.GroupKind())
	way := remoteKey{scheme: scheme, cluster: of != nil && of.Scope == registry.AnyScope && empty}
	// Most schemes have the options of calls in each group and version.
	way.completes = !scheme.Recognizes(gvk.GroupVersion().WithKind("CreateOptions"))
	k.mu.Lock()
	defer k.mu.Unlock()
	if made, ok := k.remotes[way]; ok {
		return made, nil
	}
	made, err := k.newRemote(way)
	if err != nil {
		return nil, err
	}
	if k.remotes == nil {
		k.remotes = map[remoteKey]client.WithWatch{}
	}
	k.remotes[way] = made
	return made, nil
}

// remoteKey says what a remote client is like. What it reads and writes says the context of a call.
type remoteKey struct {
	scheme *runtime.Scheme
	// completes says that the scheme lacks the options of calls.
	completes bool
	// cluster takes objects for such in no namespace if nothing says that they are in one.
	cluster bool
}

func (k *kinds) newRemote(way remoteKey) (client.WithWatch, error) {
	s, err := server.Shared()
	if err != nil {
		return nil, err
	}
	scheme := way.scheme
	if way.completes {
		scheme = completed(scheme)
	}
	return client.NewWithWatch(
		&rest.Config{Host: server.Host, QPS: -1, WarningHandler: rest.NoWarnings{}},
		client.Options{
			HTTPClient: &http.Client{Transport: s.Transport()}, Scheme: scheme,
			Mapper: mapper{
				func() *kinds { return k }, func(of *server.Kind) meta.RESTScope { return scopeOf(of, way.cluster) },
			},
		})
}

// completed returns a copy of a scheme that has the options of calls in each group and version. The client would make
// no call without them, which is no concern of a test.
func completed(scheme *runtime.Scheme) *runtime.Scheme {
	all := runtime.NewScheme()
	lacking := map[schema.GroupVersion]bool{}
	for gvk, goType := range scheme.AllKnownTypes() {
		if obj, ok := reflect.New(goType).Interface().(runtime.Object); ok {
			all.AddKnownTypeWithName(gvk, obj)
		}
		gv := gvk.GroupVersion()
		lacking[gv] = gv.Version != runtime.APIVersionInternal && !scheme.Recognizes(gv.WithKind("CreateOptions"))
	}
	for gv, lacks := range lacking {
		if lacks {
			metav1.AddToGroupVersion(all, gv)
		}
	}
	return all
}

// scopeOf returns the scope of a kind. Cluster says what it is if nothing else says it.
func scopeOf(of *server.Kind, cluster bool) meta.RESTScope {
	if of.Scope == registry.Cluster || of.Scope == registry.AnyScope && cluster {
		return meta.RESTScopeRoot
	}
	return meta.RESTScopeNamespace
}

// isDefinitionKey reports whether a key of the storage is that of a definition.
func isDefinitionKey(key string) bool { return strings.HasPrefix(key, server.DefinitionsPrefix) }
