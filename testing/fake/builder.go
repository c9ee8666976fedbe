package fake

import (
	"errors"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clientgotesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/testing/internal/objects"
	"github.com/espalier-dev/espalier/testing/internal/registry"
	"github.com/espalier-dev/espalier/testing/internal/store"
)

// ClientBuilder builds a client. Each of its methods changes it and returns it.
type ClientBuilder struct {
	scheme              *runtime.Scheme
	mapper              meta.RESTMapper
	given               []runtime.Object
	withStatus          []client.Object
	indexes             []index
	funcs               *interceptor.Funcs
	returnManagedFields bool
	noNamespaces        bool
	asAPIServer         bool
	// tracker and converters report what was set and cannot be had.
	tracker, converters bool
}

// index is what is added by WithIndex.
type index struct {
	obj     runtime.Object
	field   string
	extract client.IndexerFunc
}

// NewClientBuilder returns a builder of a client with the scheme of client-go and no objects but the namespaces that
// each cluster has, see [ClientBuilder.WithoutNamespaces].
func NewClientBuilder() *ClientBuilder { return &ClientBuilder{} }

// NewFakeClient returns a client with the objects, and with the scheme of client-go.
func NewFakeClient(initObjs ...runtime.Object) client.WithWatch {
	return NewClientBuilder().WithRuntimeObjects(initObjs...).Build()
}

// WithScheme sets the scheme, which is not changed. Its types are served, besides the built-in ones. The default is the
// scheme of client-go.
func (b *ClientBuilder) WithScheme(scheme *runtime.Scheme) *ClientBuilder {
	b.scheme = scheme
	return b
}

// WithRESTMapper sets the REST mapper of the client, and the scope of the types that it knows. Types that it alone
// knows are served too. The default is a mapper that knows what is served at the time.
func (b *ClientBuilder) WithRESTMapper(restMapper meta.RESTMapper) *ClientBuilder {
	b.mapper = restMapper
	return b
}

// WithObjects adds objects as if they had always been there: they are neither completed nor validated, but get what
// they lack of the metadata that an API server sets. Their namespaces are made. An owner reference without a UID gets
// that of the owner, if it is added too. A CustomResourceDefinition without conditions counts as established.
func (b *ClientBuilder) WithObjects(initObjs ...client.Object) *ClientBuilder {
	for _, obj := range initObjs {
		b.given = append(b.given, obj)
	}
	return b
}

// WithLists is [ClientBuilder.WithObjects] for the items of lists.
func (b *ClientBuilder) WithLists(initLists ...client.ObjectList) *ClientBuilder {
	for _, list := range initLists {
		b.given = append(b.given, list)
	}
	return b
}

// WithRuntimeObjects is [ClientBuilder.WithObjects] for objects and lists of any Go type.
func (b *ClientBuilder) WithRuntimeObjects(initRuntimeObjs ...runtime.Object) *ClientBuilder {
	b.given = append(b.given, initRuntimeObjs...)
	return b
}

// WithObjectTracker makes all calls of the client fail: it has no tracker.
func (b *ClientBuilder) WithObjectTracker(clientgotesting.ObjectTracker) *ClientBuilder {
	b.tracker = true
	return b
}

// WithTypeConverters makes all calls of the client fail: it has converters of its own.
func (b *ClientBuilder) WithTypeConverters(...managedfields.TypeConverter) *ClientBuilder {
	b.converters = true
	return b
}

// WithGlobalResourceVersionCounter changes nothing: all objects always share one counter, as in an API server.
func (b *ClientBuilder) WithGlobalResourceVersionCounter() *ClientBuilder { return b }

// WithIndex adds an index, as a field indexer does: lists select by the field. All calls of the client fail if the
// type of the object is not in the scheme, or if the field is indexed already.
func (b *ClientBuilder) WithIndex(obj runtime.Object, field string, extractValue client.IndexerFunc) *ClientBuilder {
	b.indexes = append(b.indexes, index{obj, field, extractValue})
	return b
}

// WithoutNamespaces leaves out the namespaces that each cluster has: default, kube-system, kube-public and
// kube-node-lease. Those of the objects are made.
func (b *ClientBuilder) WithoutNamespaces() *ClientBuilder {
	b.noNamespaces = true
	return b
}

// WithStatusSubresource says that types have a status subresource. This is the default for each type that has a status,
// unless a CustomResourceDefinition says otherwise. All calls of the client fail if one of the types is not known.
func (b *ClientBuilder) WithStatusSubresource(o ...client.Object) *ClientBuilder {
	b.withStatus = append(b.withStatus, o...)
	return b
}

// WithInterceptorFuncs sets functions that are called in the place of the methods of the client.
func (b *ClientBuilder) WithInterceptorFuncs(interceptorFuncs interceptor.Funcs) *ClientBuilder {
	b.funcs = &interceptorFuncs
	return b
}

// WithReturnManagedFields makes the client return the managed fields of all objects. By default it returns those of
// objects to which something was applied, or with which managed fields were sent or given.
func (b *ClientBuilder) WithReturnManagedFields() *ClientBuilder {
	b.returnManagedFields = true
	return b
}

// AsAPIServer makes an update or a patch that changes nothing but a status of a type with a status subresource succeed
// without an effect, as it does with an API server. By default it fails with a hint.
func (b *ClientBuilder) AsAPIServer() *ClientBuilder {
	b.asAPIServer = true
	return b
}

// Build returns a client. If the client cannot be built, or an object cannot be stored, each call of the client returns
// the reason. Each call of Build returns a client with objects of its own.
func (b *ClientBuilder) Build() client.WithWatch {
	built, err := b.build()
	if err != nil {
		return newUnbuilt(store.New(store.Options{Scheme: b.schemeOrDefault()}), err)
	}
	if b.funcs != nil {
		return interceptor.NewClient(built, *b.funcs)
	}
	return built
}

var (
	errTracker = errors.New("WithObjectTracker: a tracker has objects but none of the rules of an API server, which " +
		"this client is for; give the objects WithObjects, and react to calls WithInterceptorFuncs")
	errConverters = errors.New("WithTypeConverters: the merge schemas come from the built-in types and from the " +
		"CustomResourceDefinitions that are given or created, as in an API server; give the definition of the type")
)

func (b *ClientBuilder) build() (client.WithWatch, error) {
	switch {
	case b.tracker:
		return nil, errTracker
	case b.converters:
		return nil, errConverters
	}
	scheme := b.schemeOrDefault()
	for _, obj := range b.withStatus {
		if _, err := apiutil.GVKForObject(obj, scheme); err != nil {
			return nil, fmt.Errorf("WithStatusSubresource: %w", err)
		}
	}
	s := store.New(store.Options{
		Scheme: scheme, Mapper: b.mapper, ManagedFields: b.returnManagedFields, NoNamespaces: b.noNamespaces,
	})
	given, err := objectsOf(b.given)
	if err != nil {
		return nil, err
	}
	if given, err = established(given); err != nil {
		return nil, err
	}
	if err := s.Give(given...); err != nil {
		return nil, fmt.Errorf("the given objects cannot be stored: %w", err)
	}
	c := s.Client(store.ClientOptions{RefuseDropped: !b.asAPIServer})
	for _, i := range b.indexes {
		if err := c.AddIndex(i.obj, i.field, i.extract); err != nil {
			return nil, fmt.Errorf("WithIndex: %w", err)
		}
	}
	return c, nil
}

func (b *ClientBuilder) schemeOrDefault() *runtime.Scheme {
	if b.scheme == nil {
		return clientgoscheme.Scheme
	}
	return b.scheme
}

// objectsOf returns copies of what was given, with the items of lists in their place.
func objectsOf(given []runtime.Object) ([]client.Object, error) {
	var all []client.Object
	for _, obj := range given {
		if gotype.IsNil(obj) {
			return nil, errors.New("one of the given objects is nil")
		}
		items := []runtime.Object{obj}
		if meta.IsListType(obj) {
			var err error
			if items, err = meta.ExtractList(obj); err != nil {
				return nil, fmt.Errorf("a given %T: %w", obj, err)
			}
		}
		for _, item := range items {
			c, ok := item.DeepCopyObject().(client.Object)
			if !ok {
				return nil, fmt.Errorf("a given %T is no object", item)
			}
			if c.GetDeletionTimestamp() != nil && len(c.GetFinalizers()) == 0 {
				return nil, fmt.Errorf("%T %q is given with a deletion timestamp and no finalizer: "+
					"an API server has no such object", c, objects.Path(c.GetNamespace(), c.GetName()))
			}
			all = append(all, c)
		}
	}
	return all, nil
}

// established returns the objects with each CustomResourceDefinition that has no conditions as an established one.
func established(given []client.Object) ([]client.Object, error) {
	var definitions []*apiextensionsv1.CustomResourceDefinition
	for i, obj := range given {
		d, ok := obj.(*apiextensionsv1.CustomResourceDefinition)
		if u, isUnstructured := obj.(*unstructured.Unstructured); isUnstructured && isDefinition(u) {
			d, ok = &apiextensionsv1.CustomResourceDefinition{}, true
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, d); err != nil {
				return nil, fmt.Errorf("CustomResourceDefinition %s: %w", u.GetName(), err)
			}
		}
		if !ok {
			continue
		}
		if len(d.Status.Conditions) == 0 {
			apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(d)
			registry.AcceptNames(d, slices.Clone(definitions), metav1.Now())
		}
		d.SetGroupVersionKind(definitionKind)
		definitions, given[i] = append(definitions, d), d
	}
	return given, nil
}

var definitionKind = apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition")

func isDefinition(u *unstructured.Unstructured) bool { return u.GroupVersionKind() == definitionKind }
