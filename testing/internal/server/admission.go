package server

import (
	"fmt"
	"io"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	webhookinitializer "k8s.io/apiserver/pkg/admission/plugin/webhook/initializer"
	mutatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	validatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"
)

// escalationPlugin is the name of the plug-in that a kube-apiserver has not: there, it is a part of the stores.
const escalationPlugin = "PrivilegeEscalation"

// newAdmission returns the admission plug-ins, in the order of a kube-apiserver. The roles are nil without RBAC.
func (s *Server) newAdmission(
	config *genericapiserver.Config, clients kubernetes.Interface, hooks hookCaller, roles *roleAuthorizer,
	priorities rest.Lister,
) (admission.Interface, error) {
	dynamicClient, err := dynamic.NewForConfig(config.LoopbackClientConfig)
	if err != nil {
		return nil, err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(clients.Discovery()))
	initializers := admission.PluginInitializers{
		initializer.New(clients, dynamicClient, s.informers, config.Authorization.Authorizer, config.FeatureGate,
			config.EffectiveVersion, s.ctx.Done(), mapper),
		webhookinitializer.NewPluginInitializer(hooks.wrap, hooks),
	}
	plugins := &admission.Plugins{}
	names := []string{lifecycle.PluginName, podPlugin, protectionPlugin}
	plugins.Register(lifecycle.PluginName, func(io.Reader) (admission.Interface, error) {
		return lifecycle.NewLifecycle(sets.New(immortalNamespaces...))
	})
	plugins.Register(podPlugin, func(io.Reader) (admission.Interface, error) {
		return newPodDefaults(priorities), nil
	})
	plugins.Register(protectionPlugin, func(io.Reader) (admission.Interface, error) { return newProtection(), nil })
	for _, late := range s.latePlugins() {
		names = append(names, late.name)
		plugins.Register(late.name, func(io.Reader) (admission.Interface, error) {
			return late.init(initializers), nil
		})
	}
	if roles != nil {
		names = append(names, escalationPlugin)
		plugins.Register(escalationPlugin, func(io.Reader) (admission.Interface, error) {
			return newEscalation(roles), nil
		})
	}
	chain, err := plugins.NewFromPlugins(names, noConfig{}, initializers, nil)
	if err != nil {
		return nil, fmt.Errorf("make the admission plug-ins: %w", err)
	}
	return chain, nil
}

// latePlugins are the plug-ins that do nothing as long as there is nothing of a kind.
func (s *Server) latePlugins() []*latePlugin {
	listers := s.informers.Admissionregistration().V1()
	mutating, validate := listers.MutatingWebhookConfigurations().Lister(),
		listers.ValidatingWebhookConfigurations().Lister()
	// All informers are asked for before the factory is started.
	bound, bindings := listers.ValidatingAdmissionPolicies().Lister(),
		listers.ValidatingAdmissionPolicyBindings().Lister()
	return []*latePlugin{
		{
			name:   mutatingwebhook.PluginName,
			wanted: func() bool { return some(mutating.List(labels.Everything())) },
			create: func() (admission.Interface, error) { return mutatingwebhook.NewMutatingWebhook(nil) },
		},
		{
			name: validating.PluginName,
			wanted: func() bool {
				return some(bindings.List(labels.Everything())) && some(bound.List(labels.Everything()))
			},
			create: func() (admission.Interface, error) {
				p, err := validating.NewPlugin(nil)
				if err == nil {
					p.SetExcludedAdmissionResources(policies)
				}
				return p, err
			},
		},
		{
			name:   validatingwebhook.PluginName,
			wanted: func() bool { return some(validate.List(labels.Everything())) },
			create: func() (admission.Interface, error) { return validatingwebhook.NewValidatingAdmissionWebhook(nil) },
		},
	}
}

// policies are the resources that no policy concerns, so that one that refuses all can be deleted.
var policies = []schema.GroupResource{
	{Group: admissionregistrationv1.GroupName, Resource: "validatingadmissionpolicies"},
	{Group: admissionregistrationv1.GroupName, Resource: "validatingadmissionpolicybindings"},
	{Group: admissionregistrationv1.GroupName, Resource: "mutatingadmissionpolicies"},
	{Group: admissionregistrationv1.GroupName, Resource: "mutatingadmissionpolicybindings"},
}

func some[T any](list []T, err error) bool { return err == nil && len(list) > 0 }

// noConfig has no configurations of plug-ins.
type noConfig struct{}

// ConfigFor implements [admission.ConfigProvider].
func (noConfig) ConfigFor(string) (io.Reader, error) { return nil, nil }
