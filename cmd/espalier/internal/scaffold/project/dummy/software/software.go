// Package software makes the objects of a component.
package software

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/generator"
)

// NewGenerator returns a generator that makes no objects yet.
func NewGenerator() (generator.Generator, error) {
	return generator.GeneratorFunc(objects), nil
}

// Dependents returns an object of each type that the generator makes. The role of the operator is derived from them.
func Dependents() []client.Object { return nil }

// objects is to return the objects of the component. It must return the same ones for the same parameters.
func objects(context.Context, string, string, generator.Unstructurable) ([]client.Object, error) {
	return nil, nil
}
