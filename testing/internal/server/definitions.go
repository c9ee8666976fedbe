package server

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apiserver"
	generatedopenapi "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/registry/generic"
	genericapiserver "k8s.io/apiserver/pkg/server"
	openapicommon "k8s.io/kube-openapi/pkg/common"
)

// newDefinitions returns the server of CustomResourceDefinitions and custom resources. The configuration becomes part
// of it. It serves OpenAPI documents if it is to: to keep them up to date takes goroutines with timers.
func newDefinitions(
	config *genericapiserver.Config, decorator generic.StorageDecorator, hooks hookCaller,
	documented bool,
) (*genericapiserver.GenericAPIServer, error) {
	config.RESTOptionsGetter = optionsGetter(func(resource schema.GroupResource) generic.RESTOptions {
		v1 := apiextensionsv1.SchemeGroupVersion
		return restOptions(resource, apiextensions.Codecs.LegacyCodec(v1), v1, decorator)
	})
	config.MergedResourceConfig = apiextensions.DefaultAPIResourceConfigSource()
	config.OpenAPIV3Config = definitionsOpenAPI()
	config.SkipOpenAPIInstallation = !documented
	if documented {
		// The documents of version 3 are kept only if there are those of version 2.
		namer := openapi.NewDefinitionNamer(apiextensions.Scheme)
		config.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(generatedopenapi.GetOpenAPIDefinitions, namer)
	}
	whole := apiextensions.Config{
		GenericConfig: &genericapiserver.RecommendedConfig{Config: *config},
		ExtraConfig: apiextensions.ExtraConfig{
			CRDRESTOptionsGetter: optionsGetter(func(resource schema.GroupResource) generic.RESTOptions {
				return restOptions(resource, unstructured.UnstructuredJSONScheme, nil, decorator)
			}),
			MasterCount:         1,
			ServiceResolver:     hooks,
			AuthResolverWrapper: hooks.wrap,
		},
	}
	definitions, err := whole.Complete().New(genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, fmt.Errorf("make the server of definitions: %w", err)
	}
	return definitions.GenericAPIServer, nil
}

// definitionsOpenAPI returns the schema of CustomResourceDefinition, which server-side apply needs. Each server has its
// own, because the library changes it.
func definitionsOpenAPI() *openapicommon.OpenAPIV3Config {
	namer := openapi.NewDefinitionNamer(apiextensions.Scheme)
	return genericapiserver.DefaultOpenAPIV3Config(generatedopenapi.GetOpenAPIDefinitions, namer)
}

// optionsGetter says how a resource is stored.
type optionsGetter func(resource schema.GroupResource) generic.RESTOptions

var _ generic.RESTOptionsGetter = optionsGetter(nil)

// GetRESTOptions implements [generic.RESTOptionsGetter].
func (g optionsGetter) GetRESTOptions(resource schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	return g(resource), nil
}
