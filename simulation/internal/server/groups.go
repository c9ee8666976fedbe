package server

import (
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	restful "github.com/emicklei/go-restful/v3"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/endpoints"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/espalier-dev/espalier/internal/testenv/fieldmanager"
)

// resources are the stores of a version of a group, by the names in URLs.
type resources map[string]rest.Storage

// newGroups returns the stores of the built-in kinds.
func newGroups(
	decorator generic.StorageDecorator, identities *Identities,
) (map[schema.GroupVersion]resources, error) {
	groups := map[schema.GroupVersion]resources{}
	for _, k := range kinds() {
		served, err := newResources(k, decorator, identities)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k.Kind, err)
		}
		versions := []schema.GroupVersion{}
		for _, v := range k.versions {
			versions = append(versions, schema.GroupVersion{Group: k.Kind.Group, Version: v.Name})
		}
		if k.Kind.Kind == "Event" {
			versions = append(versions, eventsv1.SchemeGroupVersion)
		}
		for _, gv := range versions {
			if groups[gv] == nil {
				groups[gv] = resources{}
			}
			for name, s := range served {
				groups[gv][name] = s
			}
		}
	}
	return groups, nil
}

// newResources returns the stores of a kind and its subresources.
func newResources(k kind, decorator generic.StorageDecorator, identities *Identities) (resources, error) {
	store, err := newStore(k, decorator, identities)
	if err != nil {
		return nil, err
	}
	if k.Kind.Kind == "Namespace" {
		return newNamespaces(store), nil
	}
	served := resources{k.Resource: store}
	if k.versions[0].HasStatus() {
		served[k.Resource+"/status"] = newStatus(store, "status")
	}
	if _, ok := scaledOf(k.object()); ok {
		served[k.Resource+"/scale"] = scaleREST{store}
	}
	if k.Kind.Kind == "Pod" {
		served["pods/eviction"], served["pods/binding"] = evictionREST{store}, bindingREST{store}
	}
	return served, nil
}

// installGroups serves the groups.
func installGroups(
	s *genericapiserver.GenericAPIServer, config *genericapiserver.Config, groups map[schema.GroupVersion]resources,
) {
	byGroup := map[string][]schema.GroupVersion{}
	for gv := range groups {
		byGroup[gv.Group] = append(byGroup[gv.Group], gv)
	}
	for _, versions := range byGroup {
		slices.SortFunc(versions, func(a, b schema.GroupVersion) int {
			return -version.CompareKubeAwareVersionStrings(a.Version, b.Version)
		})
		for _, gv := range versions {
			installVersion(s, newVersion(config, gv, versions, groups[gv]))
		}
		installDiscovery(s, versions)
	}
}

// newVersion returns what serves a version of a group, which has the given versions.
func newVersion(
	config *genericapiserver.Config, gv schema.GroupVersion, versions []schema.GroupVersion, served resources,
) *endpoints.APIGroupVersion {
	all := map[string][]string{}
	for name := range served {
		for _, v := range versions {
			all[name] = append(all[name], v.String())
		}
	}
	return &endpoints.APIGroupVersion{
		Storage: served, Root: rootOf(gv.Group), GroupVersion: gv, AllServedVersionsByResource: all,
		OptionsExternalVersion: &schema.GroupVersion{Version: "v1"},
		Serializer:             defaultingSerializer{codecs()}, ParameterCodec: runtime.NewParameterCodec(scheme()),
		Typer: scheme(), Creater: scheme(), Convertor: scheme(), ConvertabilityChecker: scheme(), Defaulter: defaulter{},
		Namer: runtime.Namer(meta.NewAccessor()), UnsafeConvertor: runtime.UnsafeObjectConvertor(scheme()),
		TypeConverter:              fieldmanager.BuiltIn(),
		EquivalentResourceRegistry: config.EquivalentResourceRegistry,
		Authorizer:                 config.Authorization.Authorizer, Admit: config.AdmissionControl,
		MinRequestTimeout:   time.Duration(config.MinRequestTimeout) * time.Second,
		MaxRequestBodyBytes: config.MaxRequestBodyBytes,
	}
}

func rootOf(group string) string {
	if group == "" {
		return genericapiserver.DefaultLegacyAPIPrefix
	}
	return genericapiserver.APIGroupPrefix
}

// installVersion serves a version of a group. Its handlers are made when the first request comes: to make those of all
// groups takes more time than all else at the start of a server.
func installVersion(s *genericapiserver.GenericAPIServer, group *endpoints.APIGroupVersion) {
	gv := group.GroupVersion
	handler := sync.OnceValue(func() http.Handler {
		container := restful.NewContainer()
		container.Router(restful.CurlyRouter{})
		container.ServiceErrorHandler(refuse)
		_, _, err := group.InstallREST(container)
		utilruntime.Must(err)
		return http.HandlerFunc(container.Dispatch)
	})
	root := path.Join(group.Root, gv.Group, gv.Version)
	late := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler().ServeHTTP(w, r) })
	s.Handler.NonGoRestfulMux.Handle(root, late)
	s.Handler.NonGoRestfulMux.HandlePrefix(root+"/", late)
	discovered := discovered()[gv]
	for _, r := range discovered {
		resource, kind := gv.WithResource(r.Resource), schema.GroupVersionKind(*r.ResponseKind)
		group.EquivalentResourceRegistry.RegisterKindFor(resource, "", kind)
		for _, sub := range r.Subresources {
			kind := schema.GroupVersionKind(*sub.ResponseKind)
			group.EquivalentResourceRegistry.RegisterKindFor(resource, sub.Subresource, kind)
		}
	}
	manager := s.AggregatedDiscoveryGroupManager
	if gv.Group == "" {
		manager = s.AggregatedLegacyDiscoveryGroupManager
	}
	manager.AddGroupVersion(gv.Group, apidiscoveryv2.APIVersionDiscovery{
		Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent, Version: gv.Version, Resources: discovered,
	})
	manager.SetGroupVersionPriority(metav1.GroupVersion(gv), groupPriority(gv.Group), 10)
}

// refuse answers a request that no route takes, such as one by a method that the path does not have.
func refuse(err restful.ServiceError, request *restful.Request, response *restful.Response) {
	status := apierrors.NewGenericServerResponse(err.Code, "", schema.GroupResource{}, "", err.Message, 0, false)
	responsewriters.ErrorNegotiated(status, codecs(), schema.GroupVersion{}, response, request.Request)
}

// discovered is what discovery says of the built-in kinds, which is the same for all servers.
var discovered = sync.OnceValue(func() map[schema.GroupVersion][]apidiscoveryv2.APIResourceDiscovery {
	groups, err := newGroups(noStorage, &Identities{})
	utilruntime.Must(err)
	config := newConfig(codecs(), nil)
	config.EquivalentResourceRegistry = runtime.NewEquivalentResourceRegistry()
	all := map[schema.GroupVersion][]apidiscoveryv2.APIResourceDiscovery{}
	for gv, served := range groups {
		version := newVersion(config, gv, []schema.GroupVersion{gv}, served)
		all[gv], _, err = version.InstallREST(restful.NewContainer())
		utilruntime.Must(err)
	}
	return all
})

// groupPriority sorts the groups in discovery, the highest first. Groups of custom resources have 1000.
func groupPriority(group string) int {
	if !strings.Contains(group, ".") {
		return 17900
	}
	return 17000
}

// installDiscovery serves what a group has.
func installDiscovery(s *genericapiserver.GenericAPIServer, versions []schema.GroupVersion) {
	name := versions[0].Group
	if name == "" {
		prefix := genericapiserver.DefaultLegacyAPIPrefix
		handler := discovery.NewLegacyRootAPIHandler(addresses, s.Serializer, prefix)
		wrapped := aggregated.WrapAggregatedDiscoveryToHandler(handler, s.AggregatedLegacyDiscoveryGroupManager, nil)
		s.Handler.NonGoRestfulMux.Handle(prefix, wrapped)
		return
	}
	group := metav1.APIGroup{Name: name}
	for _, gv := range versions {
		group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{
			GroupVersion: gv.String(), Version: gv.Version,
		})
	}
	group.PreferredVersion = group.Versions[0]
	s.DiscoveryGroupManager.AddGroup(group)
	handler := discovery.NewAPIGroupHandler(s.Serializer, group)
	s.Handler.NonGoRestfulMux.Handle(path.Join(genericapiserver.APIGroupPrefix, name), handler)
}
