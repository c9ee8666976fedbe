package server

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apiextensions-apiserver/pkg/controller/finalizer"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	apistorage "k8s.io/apiserver/pkg/storage"
	"k8s.io/kube-openapi/pkg/builder3"
	openapiutil "k8s.io/kube-openapi/pkg/util"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/utils/lru"

	"github.com/espalier-dev/espalier/testing/internal/registry"
	"github.com/espalier-dev/espalier/testing/internal/storage"
)

// maxHandlers is how many handlers of custom resources are kept for definitions that no storage has any more. One takes
// 50 KiB to 5 MiB. It is more than a package of tests has, and limits the memory of one that makes definitions up.
const maxHandlers = 128

// customResources serves the custom resources of worlds. There is a handler for each distinct definition, whatever
// world has it: what is costly is to compile a definition.
type customResources struct {
	base      *storage.Storage
	decorator generic.StorageDecorator
	// definitions is where the CustomResourceDefinitions are.
	definitions definitionStorage
	admission   admission.Interface
	authorizer  authorizer.UnconditionalAuthorizer
	// next has what is no custom resource.
	next http.Handler

	mu sync.Mutex
	// handlers are those that were made last, by what they depend on.
	handlers *lru.Cache
}

func newCustomResources(
	base *storage.Storage, decorator generic.StorageDecorator, plugins admission.Interface,
	authorizer authorizer.UnconditionalAuthorizer,
) *customResources {
	return &customResources{
		base: base, decorator: decorator, admission: plugins, authorizer: authorizer, handlers: lru.New(maxHandlers),
	}
}

// decorateDefinitions has definitions get their status when they are stored.
func (c *customResources) decorateDefinitions(decorator generic.StorageDecorator) generic.StorageDecorator {
	return wrapped(decorator, func(i apistorage.Interface) apistorage.Interface {
		c.definitions = definitionStorage{i, c}
		return c.definitions
	})
}

// customHandler serves the objects of one definition.
type customHandler interface {
	http.Handler
	GetCustomResourceListerCollectionDeleter(
		definition *apiextensionsv1.CustomResourceDefinition) (finalizer.ListerCollectionDeleter, error)
}

// definition is what is made of the entry of a CustomResourceDefinition.
type definition struct {
	*apiextensionsv1.CustomResourceDefinition
	kind Kind
	// served is the definition as its handler reads it, nil if the definition is not established.
	served *apiextensionsv1.CustomResourceDefinition
	// digest is that of served.
	digest string
	err    error
	// handled is the handler that was asked for last.
	handled atomic.Pointer[handled]
}

type handled struct {
	by      *customResources
	handler customHandler
}

// DefinitionsPrefix is what the keys of definitions begin with in the storage.
const DefinitionsPrefix = "/apiextensions.k8s.io/customresourcedefinitions/"

// definitionIn returns the definition of a name in a storage, nil if there is none.
func definitionIn(kept *storage.Storage, name string) *definition {
	e := kept.Entry(DefinitionsPrefix + name)
	if e == nil {
		return nil
	}
	return readDefinition(e)
}

// definitionsIn returns the definitions in a storage, ordered by name.
func definitionsIn(kept *storage.Storage) []*definition {
	var found []*definition
	for _, e := range kept.Entries(DefinitionsPrefix) {
		if d := readDefinition(e); d.err == nil {
			found = append(found, d)
		}
	}
	return found
}

type definitionOwner struct{}

// readDefinition returns the definition that an entry holds.
func readDefinition(e *storage.Entry) *definition {
	return e.Derived(definitionOwner{}, func() any {
		d := &definition{CustomResourceDefinition: &apiextensionsv1.CustomResourceDefinition{}}
		if d.err = json.Unmarshal(e.Value, d.CustomResourceDefinition); d.err != nil {
			d.err = fmt.Errorf("read the CustomResourceDefinition %s: %w", e.Key, d.err)
			return d
		}
		d.kind = kindOfDefinition(d.CustomResourceDefinition)
		if !registry.Established(d.CustomResourceDefinition) {
			return d
		}
		d.served = servedDefinition(d.CustomResourceDefinition)
		var encoded []byte
		if encoded, d.err = json.Marshal(d.served); d.err == nil {
			sum := sha256.Sum256(encoded)
			d.digest = string(sum[:])
		}
		return d
	}).(*definition)
}

// handlerOf returns the handler of the objects of a definition, nil if the definition is not established.
func (c *customResources) handlerOf(d *definition) (customHandler, error) {
	if d.err != nil || d.served == nil {
		return nil, d.err
	}
	if h := d.handled.Load(); h != nil && h.by == c {
		return h.handler, nil
	}
	handler, err := c.handler(d.digest, d.served)
	if err != nil {
		return nil, err
	}
	d.handled.Store(&handled{c, handler})
	return handler, nil
}

// servedDefinition returns a definition with nothing but what its handler depends on. Its conditions are so old that
// the handler does not let the first request wait, as that of an API server does for two seconds. No conversion webhook
// is called, see [WithoutEffect].
func servedDefinition(d *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	served := &apiextensionsv1.CustomResourceDefinition{Spec: *d.Spec.DeepCopy()}
	served.Name, served.UID = d.Name, "any"
	served.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(served)
	served.Status.AcceptedNames = *d.Status.AcceptedNames.DeepCopy()
	if served.Status.AcceptedNames.Plural == "" {
		served.Status.AcceptedNames = served.Spec.Names // Somebody gave it without a status.
	}
	for _, accepted := range []apiextensionsv1.CustomResourceDefinitionConditionType{
		apiextensionsv1.NamesAccepted, apiextensionsv1.Established,
	} {
		served.Status.Conditions = append(served.Status.Conditions, apiextensionsv1.CustomResourceDefinitionCondition{
			Type: accepted, Status: apiextensionsv1.ConditionTrue,
		})
	}
	if d.DeletionTimestamp != nil {
		served.DeletionTimestamp = &metav1.Time{Time: time.Unix(0, 0)}
	}
	return served
}

// handler returns the handler of an accepted definition, which is the same for all definitions of a key.
func (c *customResources) handler(
	key string, served *apiextensionsv1.CustomResourceDefinition,
) (customHandler, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if found, ok := c.handlers.Get(key); ok {
		return found.(customHandler), nil
	}
	models, err := definitionModels()
	if err != nil {
		return nil, err
	}
	hooks := webhooks{nil}
	decorator := wrapped(c.decorator, func(i apistorage.Interface) apistorage.Interface {
		return objectStorage{i, c, served.Name}
	})
	made, err := apiextensions.NewCustomResourceDefinitionHandler(nil, nil, oneDefinition{definition: served}, c.next,
		optionsGetter(func(resource schema.GroupResource) generic.RESTOptions {
			options := restOptions(resource, codecOf(resource.Group), nil, decorator)
			options.ResourcePrefix = strings.TrimPrefix(options.ResourcePrefix, noGroup+"/")
			return options
		}),
		c.admission, nil, hooks, hooks.wrap, 1, c.authorizer, time.Minute, 30*time.Minute, models, maxBody)
	if err != nil {
		return nil, fmt.Errorf("make the handler of CustomResourceDefinition %s: %w", served.Name, err)
	}
	c.handlers.Add(key, made)
	return made, nil
}

// maxBody is how large a request may be, which is the default of an API server.
const maxBody = 3 << 20

// definitionModels returns the schemas of what all kinds have, for server-side apply.
var definitionModels = sync.OnceValues(func() (map[string]*spec.Schema, error) {
	return builder3.BuildOpenAPIDefinitionsForResources(definitionsOpenAPI(),
		openapiutil.GetCanonicalTypeName(&apiextensionsv1.CustomResourceDefinition{}),
		openapiutil.GetCanonicalTypeName(&apiextensionsv1.CustomResourceDefinitionList{}))
})

// find returns the handler of a request, nil if it does not concern a custom resource of its world.
func (c *customResources) find(ctx context.Context, info *request.RequestInfo) (customHandler, error) {
	resource := schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}
	if d := definitionIn(storage.Of(ctx, c.base), resource.String()); d != nil {
		return c.handlerOf(d)
	}
	t, ok := typeOf(ctx, resource)
	if !ok {
		return nil, nil
	}
	namespaced := info.Namespace != "" || info.Verb == "list" || info.Verb == "watch"
	key := fmt.Sprintf("%v %s %s", namespaced, resource, t.Kind)
	for _, v := range t.Versions {
		key += fmt.Sprintf(" %s %v", v.Name, v.HasStatus)
	}
	return c.handler(key, servedDefinition(definitionOfType(t, namespaced)))
}

// definitionOfType makes up a definition that lets objects have any fields. No validation would accept it: the group
// may have any name.
func definitionOfType(t registry.Type, namespaced bool) *apiextensionsv1.CustomResourceDefinition {
	d := &apiextensionsv1.CustomResourceDefinition{}
	group := groupOf(t.Kind.Group)
	d.Name = t.Resource + "." + group
	d.Spec.Group, d.Spec.Scope = group, apiextensionsv1.ClusterScoped
	if namespaced {
		d.Spec.Scope = apiextensionsv1.NamespaceScoped
	}
	d.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{
		Plural: t.Resource, Singular: strings.ToLower(t.Kind.Kind), Kind: t.Kind.Kind, ListKind: t.Kind.Kind + "List",
	}
	keep := true
	for i, v := range t.Versions {
		version := apiextensionsv1.CustomResourceDefinitionVersion{
			Name: v.Name, Served: true, Storage: i == 0,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", XPreserveUnknownFields: &keep,
			}},
		}
		if v.HasStatus {
			version.Subresources = &apiextensionsv1.CustomResourceSubresources{
				Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
			}
		}
		d.Spec.Versions = append(d.Spec.Versions, version)
	}
	return d
}

// ServeHTTP implements [http.Handler].
func (c *customResources) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	info, ok := request.RequestInfoFrom(r.Context())
	if !ok || !info.IsResourceRequest {
		c.next.ServeHTTP(w, r)
		return
	}
	handler, err := c.find(r.Context(), info)
	switch {
	case err != nil:
		gv := schema.GroupVersion{Group: info.APIGroup, Version: info.APIVersion}
		responsewriters.ErrorNegotiated(apierrors.NewInternalError(err), codecs(), gv, w, r)
	case handler != nil && info.APIGroup == "":
		serveWithGroup(uncountedHandler{handler}, w, r)
	case handler != nil:
		uncountedHandler{handler}.ServeHTTP(w, r)
	default:
		c.next.ServeHTTP(w, r)
	}
}

type uncountedHandler struct{ http.Handler }

// ServeHTTP implements [http.Handler].
func (h uncountedHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.Handler.ServeHTTP(w, r.WithContext(&uncounted{Context: r.Context()}))
}

// uncounted is the context of a request that the handler of a definition does not count. It would count it in a
// [sync.WaitGroup], which belongs to the bubble of the first request: a second bubble would end the process. The
// handler asks for the information of the request first, and what counts asks for it next. It gets that of a watch,
// which is not counted.
type uncounted struct {
	context.Context
	asked atomic.Int32
}

// Value implements [context.Context].
func (u *uncounted) Value(key any) any {
	value := u.Context.Value(key)
	if info, ok := value.(*request.RequestInfo); ok && u.asked.Add(1) == 2 {
		watch := *info
		watch.Verb = "watch"
		return &watch
	}
	return value
}
