package server

import (
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	registryrest "k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// build puts the servers together. That of the built-in kinds leaves to that of the definitions what it does not know.
func (s *Server) build(options Options, loopback *rest.Config) error {
	identities, stored := options.stored()
	decorator, credentials := identities.decorate(stored), options.credentials()
	clients, err := kubernetes.NewForConfig(loopback)
	if err != nil {
		return err
	}
	var hooks hookCaller = webhooks{options.Webhooks}
	if options.RealTime {
		hooks = networkWebhooks{clients.CoreV1()}
	}
	s.informers = informers.NewSharedInformerFactory(clients, 0)
	config, forDefinitions := newConfig(codecs(), loopback), newConfig(apiextensions.Codecs, loopback)
	config.Authentication.Authenticator, forDefinitions.Authentication.Authenticator = credentials, credentials
	var roles *roleAuthorizer
	if options.RBAC {
		roles = newRoleAuthorizer(s.informers)
		config.Authorization.Authorizer, forDefinitions.Authorization.Authorizer = roles, roles
	}
	groups, err := newGroups(decorator, identities, credentials, config.Authorization.Authorizer)
	if err != nil {
		return err
	}
	priorities := groups[schedulingv1.SchemeGroupVersion]["priorityclasses"].(registryrest.Lister)
	var plugins admission.Interface
	if options.Worlds != nil {
		plugins = newWorldAdmission(options.Worlds, priorities)
	} else if plugins, err = s.newAdmission(config, clients, hooks, roles, priorities); err != nil {
		return err
	}
	config.AdmissionControl = plugins
	config.AggregatedDiscoveryGroupManager = aggregated.NewResourceManager("apis")
	forDefinitions.AdmissionControl = plugins
	forDefinitions.AggregatedDiscoveryGroupManager = config.AggregatedDiscoveryGroupManager
	if options.Worlds != nil {
		s.custom = newCustomResources(options.Worlds, decorator, plugins, config.Authorization.Authorizer)
		decorator = s.custom.decorateDefinitions(decorator)
	}
	s.definitions, err = newDefinitions(forDefinitions, decorator, hooks, options.RealTime)
	if err != nil {
		return err
	}
	s.builtIn, err = config.Complete(nil).New("kube-apiserver", genericapiserver.NewEmptyDelegate())
	if err != nil {
		return err
	}
	err = s.builtIn.AddPostStartHook("start-informers", func(hook genericapiserver.PostStartHookContext) error {
		s.informers.StartWithContext(hook)
		s.informers.WaitForCacheSync(hook.Done())
		return nil
	})
	if err != nil {
		return err
	}
	s.serveGroups(config, groups, options.RealTime)
	if s.custom != nil {
		s.world = newWorldHandler(s.custom, credentials, config.RequestInfoResolver, s.builtIn.Handler)
	}
	return nil
}

// serveGroups has the server of the built-in kinds serve them and their documents, and leave all else to the others.
func (s *Server) serveGroups(
	config *genericapiserver.Config, groups map[schema.GroupVersion]resources, withDocuments bool,
) {
	handler, documented := installGroups(s.builtIn, config, groups, s.definitions.UnprotectedHandler())
	if s.custom != nil {
		s.custom.next, handler = handler, s.custom
	}
	s.builtIn.Handler.NonGoRestfulMux.NotFoundHandler(handler)
	if withDocuments {
		newOpenAPI(documented, s.definitions.UnprotectedHandler()).install(s.builtIn)
	}
}
