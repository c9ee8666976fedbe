package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"

	restful "github.com/emicklei/go-restful/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/kube-openapi/pkg/builder3"
	"k8s.io/kube-openapi/pkg/cached"
	openapicommon "k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/common/restfuladapter"
	"k8s.io/kube-openapi/pkg/handler3"
	"k8s.io/kube-openapi/pkg/spec3"
)

// openAPIRoot is the path of the index of OpenAPI documents. There is one for each version of a group below it.
const openAPIRoot = "/openapi/v3"

// openAPI serves the documents of the built-in kinds, each of which is made at the first request for it. Those of
// definitions and of custom resources it leaves to next.
type openAPI struct {
	documents *handler3.OpenAPIService
	// builtIn are the versions of groups of the built-in kinds by their paths, such as "apis/apps/v1".
	builtIn map[string]bool
	next    http.Handler
}

// newOpenAPI returns what serves the documents of versions of groups, by their paths. What makes the handlers of a
// version has its routes.
func newOpenAPI(versions map[string]func() *restful.Container, next http.Handler) *openAPI {
	o := &openAPI{documents: handler3.NewOpenAPIService(), builtIn: map[string]bool{}, next: next}
	for path, routes := range versions {
		o.builtIn[path] = true
		o.documents.UpdateGroupVersionLazy(path, cached.Once(cached.Func(func() (*spec3.OpenAPI, string, error) {
			services := restfuladapter.AdaptWebServices(routes().RegisteredWebServices())
			document, err := builder3.BuildOpenAPISpecFromRoutes(services, builtInOpenAPI())
			if err != nil {
				err = fmt.Errorf("make the OpenAPI document of %s: %w", path, err)
			}
			return document, path, err
		})))
	}
	return o
}

// builtInOpenAPI says how documents of the built-in kinds are made. It is the same for all servers.
var builtInOpenAPI = sync.OnceValue(func() *openapicommon.OpenAPIV3Config {
	config := genericapiserver.DefaultOpenAPIV3Config(typeDefinitions, openapi.NewDefinitionNamer(published()))
	config.Info.Title, config.Info.Version = "Kubernetes", "unversioned"
	return config
})

// install has a server serve the documents.
func (o *openAPI) install(s *genericapiserver.GenericAPIServer) {
	s.Handler.NonGoRestfulMux.Handle(openAPIRoot, o)
	s.Handler.NonGoRestfulMux.HandlePrefix(openAPIRoot+"/", o)
}

// ServeHTTP implements [http.Handler].
func (o *openAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.Trim(strings.TrimPrefix(r.URL.Path, openAPIRoot), "/")
	switch {
	case path == "":
		index, err := o.index(r)
		if err != nil {
			responsewriters.ErrorNegotiated(apierrors.NewInternalError(err), codecs(), schema.GroupVersion{}, w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(index)
	case o.builtIn[path]:
		o.documents.HandleGroupVersion(w, r)
	default:
		o.next.ServeHTTP(w, r)
	}
}

// index returns that of next, with the built-in kinds.
func (o *openAPI) index(r *http.Request) ([]byte, error) {
	asked := r.Clone(r.Context())
	asked.Header = http.Header{"Accept": {"application/json"}}
	response, err := RoundTripper(o.next).RoundTrip(asked)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	index := handler3.OpenAPIV3Discovery{}
	if err := json.NewDecoder(response.Body).Decode(&index); err != nil {
		return nil, fmt.Errorf("read the index of definitions: %w", err)
	}
	if index.Paths == nil {
		index.Paths = map[string]handler3.OpenAPIV3DiscoveryGroupVersion{}
	}
	for path := range o.builtIn {
		url := openAPIRoot + "/" + path
		index.Paths[path] = handler3.OpenAPIV3DiscoveryGroupVersion{ServerRelativeURL: url}
	}
	return json.Marshal(index)
}
