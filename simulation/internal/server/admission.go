package server

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle"
	webhookinitializer "k8s.io/apiserver/pkg/admission/plugin/webhook/initializer"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes"
)

// newAdmission returns the admission plug-ins, in the order of a kube-apiserver. The roles are nil without RBAC.
func (s *Server) newAdmission(
	config *genericapiserver.Config, clients kubernetes.Interface, hooks webhooks, roles *roleAuthorizer,
) (admission.Interface, error) {
	namespaces, err := lifecycle.NewLifecycle(sets.New(immortalNamespaces...))
	if err != nil {
		return nil, err
	}
	mutate, err := mutating.NewMutatingWebhook(nil)
	if err != nil {
		return nil, err
	}
	validate, err := validating.NewValidatingAdmissionWebhook(nil)
	if err != nil {
		return nil, err
	}
	initializers := admission.PluginInitializers{
		initializer.New(clients, nil, s.informers, config.Authorization.Authorizer, config.FeatureGate,
			config.EffectiveVersion, s.ctx.Done(), nil),
		webhookinitializer.NewPluginInitializer(hooks.wrap, hooks),
	}
	plugins := []admission.Interface{namespaces, mutate, validate}
	for _, plugin := range plugins {
		initializers.Initialize(plugin)
		if err := admission.ValidateInitialization(plugin); err != nil {
			return nil, fmt.Errorf("admission plug-in %T: %w", plugin, err)
		}
	}
	if roles != nil {
		plugins = append(plugins, newEscalation(roles))
	}
	return admission.NewChainHandler(plugins...), nil
}
