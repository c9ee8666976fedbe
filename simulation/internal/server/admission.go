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
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
)

// newAdmission returns the admission plug-ins, in the order of a kube-apiserver, and the informers that they read.
func newAdmission(
	config *genericapiserver.Config, hooks webhooks, stop <-chan struct{},
) (admission.Interface, informers.SharedInformerFactory, error) {
	clients, err := kubernetes.NewForConfig(config.LoopbackClientConfig)
	if err != nil {
		return nil, nil, err
	}
	factory := informers.NewSharedInformerFactory(clients, 0)
	namespaces, err := lifecycle.NewLifecycle(sets.New(immortalNamespaces...))
	if err != nil {
		return nil, nil, err
	}
	mutate, err := mutating.NewMutatingWebhook(nil)
	if err != nil {
		return nil, nil, err
	}
	validate, err := validating.NewValidatingAdmissionWebhook(nil)
	if err != nil {
		return nil, nil, err
	}
	initializers := admission.PluginInitializers{
		initializer.New(clients, nil, factory, config.Authorization.Authorizer, config.FeatureGate,
			config.EffectiveVersion, stop, nil),
		webhookinitializer.NewPluginInitializer(hooks.wrap, hooks),
	}
	plugins := []admission.Interface{namespaces, mutate, validate}
	for _, plugin := range plugins {
		initializers.Initialize(plugin)
		if err := admission.ValidateInitialization(plugin); err != nil {
			return nil, nil, fmt.Errorf("admission plug-in %T: %w", plugin, err)
		}
	}
	return admission.NewChainHandler(plugins...), factory, nil
}
