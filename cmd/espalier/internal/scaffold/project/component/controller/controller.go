// Package controller deploys what each Placeholder stands for: the objects that package software makes.
package controller

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/cmd/espalier/internal/scaffold/project/code/software"
	"github.com/espalier-dev/espalier/cmd/espalier/internal/scaffold/project/component/api/v9alpha9"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/reconcilers"
)

// Prefix is that of the labels and annotations on what is deployed. It must not change: objects are known by them.
const Prefix = "placeholders.group.example.test"

// SetUp adds the controller to a manager.
func SetUp(ctx context.Context, mgr ctrl.Manager, config reconcilers.Config) error {
	objects, err := software.NewGenerator()
	if err != nil {
		return err
	}
	return New(config, objects).SetupWithManager(ctx, mgr)
}

// New returns the root of the tree: each resource is a component with the objects of the generator.
func New(
	config reconcilers.Config, objects generator.Generator,
) *reconcilers.ResourceReconciler[*v9alpha9.Placeholder] {
	root := component.NewComponentRoot(Prefix, objects, component.Options[*v9alpha9.Placeholder]{
		Config:     config,
		Configure:  configure,
		Dependents: software.Dependents(),
	})
	root.Name = "Placeholder"
	return root
}

// configure has no namespaces created, for which the operator would need a right.
func configure(_ context.Context, _ *v9alpha9.Placeholder, configuration *generator.Configuration) error {
	configuration.MissingNamespacesPolicy = apis.MissingNamespacesDoNotCreate
	return nil
}

// NewScheme returns a scheme with all types that the tree deals with.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, errors.Join(clientgoscheme.AddToScheme(scheme), v9alpha9.AddToScheme(scheme))
}
