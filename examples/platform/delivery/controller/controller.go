// Package controller delivers software: monitors from a Helm chart, agents from a kustomization. [NewMonitor] and
// [NewAgent] are the trees, [Chart] and [Kustomization] the generators.
package controller

import (
	"context"
	"errors"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/examples/platform/delivery/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/platform/delivery/software"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/generator/helm"
	"github.com/espalier-dev/espalier/generator/kustomize"
	"github.com/espalier-dev/espalier/reconcilers"
)

// The prefixes of the labels and annotations on what is delivered.
const (
	MonitorPrefix = "monitor.platform.example.com"
	AgentPrefix   = "agent.platform.example.com"
)

// Generator is what makes the objects, and says what it depends on.
type Generator interface {
	generator.Generator
	generator.Deterministic
	generator.InputReporter
}

// Chart returns the generator of what a monitor consists of. The values of the resource are those of the chart.
func Chart() (Generator, error) {
	return helm.NewGenerator(software.Folder, software.Monitor, helm.Options{})
}

// Kustomization returns the generator of what an agent consists of. The templates see the values of the resource.
func Kustomization() (Generator, error) {
	return kustomize.NewGenerator(software.Folder, software.Agent, kustomize.Options{
		TemplateSuffix: ".tmpl",
		Bases:          []string{"../base"},
	})
}

// NewMonitor returns the root of the tree that delivers monitors.
func NewMonitor(
	config reconcilers.Config, generator generator.Generator,
) *reconcilers.ResourceReconciler[*v1alpha1.Monitor] {
	root := component.NewComponentRoot(MonitorPrefix, generator, component.Options[*v1alpha1.Monitor]{
		Config:    config,
		Configure: configure[*v1alpha1.Monitor],
		Dependents: []client.Object{
			probeType(),
			software.NewProbe("", ""),
			&batchv1.Job{},
			&corev1.ConfigMap{},
			&corev1.Service{},
			&corev1.ServiceAccount{},
		},
	})
	root.Name = "Monitor"
	return root
}

// NewAgent returns the root of the tree that delivers agents. It has no Dependents: whoever it works as in the other
// cluster needs the rights there, and in its own the operator needs none but for the kubeconfigs.
func NewAgent(
	config reconcilers.Config, generator generator.Generator,
) *reconcilers.ResourceReconciler[*v1alpha1.Agent] {
	root := component.NewComponentRoot(AgentPrefix, generator, component.Options[*v1alpha1.Agent]{
		Config:    config,
		Configure: configure[*v1alpha1.Agent],
	})
	root.Name = "Agent"
	return root
}

// probeType returns the definition of the type that the chart brings, from which the role of the operator is derived.
func probeType() *apiextensionsv1.CustomResourceDefinition {
	definition, err := software.ProbeType()
	if err != nil {
		// The name of its resource is guessed.
		return &apiextensionsv1.CustomResourceDefinition{}
	}
	return definition
}

// configure says that there are no namespaces to create: all objects that have one are in that of the resource.
func configure[T client.Object](_ context.Context, _ T, configuration *generator.Configuration) error {
	configuration.MissingNamespacesPolicy = apis.MissingNamespacesDoNotCreate
	return nil
}

// NewScheme returns a scheme with all types that the trees deal with, but for the one that the chart brings along.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, errors.Join(
		clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme))
}
