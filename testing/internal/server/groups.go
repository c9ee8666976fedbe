package server

import (
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	restful "github.com/emicklei/go-restful/v3"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
)

// resources are the stores of a version of a group, by the names in URLs.
type resources map[string]rest.Storage

// newGroups returns the stores of the built-in kinds.
func newGroups(
	decorator generic.StorageDecorator, identities identifier, credentials Credentials,
	authorizer authorizer.UnconditionalAuthorizer,
) (map[schema.GroupVersion]resources, error) {
	groups := map[schema.GroupVersion]resources{}
	maps.Copy(groups, newReviews(deciders{credentials, authorizer}))
	for _, k := range kinds() {
		served, err := newResources(k, decorator, identities, credentials)
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
	core, policy := groups[corev1.SchemeGroupVersion], groups[policyv1.SchemeGroupVersion]
	core["pods/eviction"] = evictionREST{
		pods: core["pods"].(kindREST).Store, budgets: policy["poddisruptionbudgets"].(kindREST).Store,
	}
	return groups, nil
}

// newResources returns the stores of a kind and its subresources.
func newResources(
	k kind, decorator generic.StorageDecorator, identities identifier, credentials Credentials,
) (resources, error) {
	store, err := newStore(k, decorator, identities)
	if err != nil {
		return nil, err
	}
	if k.Kind.Kind == "Namespace" {
		return newNamespaces(store), nil
	}
	served := resources{k.Resource: kindREST{store, k.Kind}}
	if k.versions[0].HasStatus {
		served[k.Resource+"/status"] = newStatus(store, "status")
	}
	if _, ok := scaledOf(k.object()); ok {
		served[k.Resource+"/scale"] = scaleREST{store, k.hub().GroupVersion()}
	}
	switch k.Kind.Kind {
	case "CertificateSigningRequest":
		served["certificatesigningrequests/approval"] = newApproval(store)
	case "Pod":
		served["pods/binding"] = bindingREST{store}
	case "ServiceAccount":
		served["serviceaccounts/token"] = tokenREST{store, credentials}
	}
	return served, nil
}

// installGroups returns what serves the groups. What they do not have, next has. It also returns what makes the routes
// of each version of a group, by its path.
func installGroups(
	s *genericapiserver.GenericAPIServer, config *genericapiserver.Config, groups map[schema.GroupVersion]resources,
	next http.Handler,
) (http.Handler, map[string]func() *restful.Container) {
	all := s.AggregatedDiscoveryGroupManager
	roots := map[string]http.Handler{
		genericapiserver.APIGroupPrefix: aggregated.WrapAggregatedDiscoveryToHandler(groupList{all}, all, nil),
	}
	documented := map[string]func() *restful.Container{}
	byGroup := map[string][]schema.GroupVersion{}
	for gv := range groups {
		byGroup[gv.Group] = append(byGroup[gv.Group], gv)
	}
	for _, name := range slices.Sorted(maps.Keys(byGroup)) {
		versions := byGroup[name]
		slices.SortFunc(versions, func(a, b schema.GroupVersion) int {
			return -version.CompareKubeAwareVersionStrings(a.Version, b.Version)
		})
		for _, gv := range versions {
			announce(s, config, gv)
			root := path.Join(rootOf(gv.Group), gv.Group, gv.Version)
			whole := lateContainer(newVersion(config, gv, versions, groups[gv]))
			roots[root] = newVersionHandler(config, gv, versions, groups[gv], whole)
			documented[strings.TrimPrefix(root, "/")] = whole
		}
		roots[path.Join(rootOf(name), name)] = discoveryOf(s, versions)
	}
	return &dispatcher{roots, next}, documented
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
		Typer: scheme(), Creater: scheme(), Convertor: scheme(), ConvertabilityChecker: scheme(),
		UnsafeConvertor: runtime.UnsafeObjectConvertor(scheme()), Defaulter: defaulter{},
		Namer:                      runtime.Namer(meta.NewAccessor()),
		TypeConverter:              newTypeConverter(),
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

// newVersionHandler serves a version of a group; whole has all of it. The handlers of a resource are made when the
// first request comes: to make those of all resources takes more time than all else at the start of a server.
func newVersionHandler(
	config *genericapiserver.Config, gv schema.GroupVersion, versions []schema.GroupVersion, served resources,
	whole func() *restful.Container,
) http.Handler {
	parts := map[string]resources{}
	for name, store := range served {
		resource, _, _ := strings.Cut(name, "/")
		if parts[resource] == nil {
			parts[resource] = resources{}
		}
		parts[resource][name] = store
	}
	byResource := map[string]func() *restful.Container{}
	for resource, part := range parts {
		byResource[resource] = lateContainer(newVersion(config, gv, versions, part))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if info, ok := request.RequestInfoFrom(r.Context()); ok && info.IsResourceRequest {
			if what := ofContainers[info.Subresource]; what != "" && gv.Group == "" {
				responsewriters.ErrorNegotiated(noContainers(info, what), codecs(), gv, w, r)
				return
			}
			if container, ok := byResource[info.Resource]; ok {
				container().Dispatch(w, r)
				return
			}
		}
		whole().Dispatch(w, r)
	})
}

// lateContainer makes the handlers of a version of a group when they are asked for first.
func lateContainer(group *endpoints.APIGroupVersion) func() *restful.Container {
	return sync.OnceValue(func() *restful.Container {
		container := restful.NewContainer()
		container.Router(&routes{})
		container.ServiceErrorHandler(refuse)
		_, _, err := group.InstallREST(container)
		utilruntime.Must(err)
		return container
	})
}

// announce lets discovery know a version of a group.
func announce(s *genericapiserver.GenericAPIServer, config *genericapiserver.Config, gv schema.GroupVersion) {
	discovered := discovered()[gv]
	for _, r := range discovered {
		resource, kind := gv.WithResource(r.Resource), schema.GroupVersionKind(*r.ResponseKind)
		config.EquivalentResourceRegistry.RegisterKindFor(resource, "", kind)
		for _, sub := range r.Subresources {
			kind := schema.GroupVersionKind(*sub.ResponseKind)
			config.EquivalentResourceRegistry.RegisterKindFor(resource, sub.Subresource, kind)
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

// ofContainers are the subresources that containers answer, and what a client wants of them.
var ofContainers = map[string]string{
	"attach": "input and output", "exec": "commands", "log": "logs", "portforward": "ports", "proxy": "connections",
}

// noContainers is the answer to a request that a container would answer.
func noContainers(info *request.RequestInfo, what string) error {
	return apierrors.NewGenericServerResponse(http.StatusNotImplemented, info.Verb,
		schema.GroupResource{Resource: info.Resource}, info.Name, fmt.Sprintf(
			"no containers run in this cluster, so %s %s has no %s", info.Resource, info.Name, what), 0, true)
}

// refuse answers a request that no route takes, such as one by a method that the path does not have.
func refuse(err restful.ServiceError, r *restful.Request, response *restful.Response) {
	status := apierrors.NewGenericServerResponse(err.Code, "", schema.GroupResource{}, "", err.Message, 0, false)
	responsewriters.ErrorNegotiated(status, codecs(), schema.GroupVersion{}, response, r.Request)
}

// discovered is what discovery says of the built-in kinds, which is the same for all servers.
var discovered = sync.OnceValue(func() map[schema.GroupVersion][]apidiscoveryv2.APIResourceDiscovery {
	groups, err := newGroups(noStorage, &Identities{}, nameTokens{}, nil)
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

// discoveryOf serves what versions a group has.
func discoveryOf(s *genericapiserver.GenericAPIServer, versions []schema.GroupVersion) http.Handler {
	name := versions[0].Group
	if name == "" {
		handler := discovery.NewLegacyRootAPIHandler(addresses, s.Serializer, genericapiserver.DefaultLegacyAPIPrefix)
		return aggregated.WrapAggregatedDiscoveryToHandler(handler, s.AggregatedLegacyDiscoveryGroupManager, nil)
	}
	group := metav1.APIGroup{Name: name}
	for _, gv := range versions {
		group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{
			GroupVersion: gv.String(), Version: gv.Version,
		})
	}
	group.PreferredVersion = group.Versions[0]
	return discovery.NewAPIGroupHandler(s.Serializer, group)
}
