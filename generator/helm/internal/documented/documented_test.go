// Package documented has the code of docs/helm.md and of the README.md of the generator.
package documented

import (
	"embed"
	"io/fs"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/generator/helm"
	"github.com/espalier-dev/espalier/generator/helm/oci"
	"github.com/espalier-dev/espalier/internal/testenv/documented"
	"github.com/espalier-dev/espalier/reconcilers"
)

//go:embed all:chart
var folder embed.FS

func NewShop(config reconcilers.Config) (*reconcilers.ResourceReconciler[*Shop], error) {
	generator, err := helm.NewGenerator(folder, "chart", helm.Options{})
	if err != nil {
		return nil, err
	}
	return component.NewComponentRoot("shops.example.com", generator, component.Options[*Shop]{Config: config}), nil
}

func NewFetchedShop(config reconcilers.Config) (*reconcilers.ResourceReconciler[*Shop], error) {
	registries := []oci.Registry{{Host: "ghcr.io", BlobHosts: []string{"pkg-containers.githubusercontent.com"}}}
	source, err := oci.NewSource(func(s *Shop) oci.Reference { return s.Spec.Chart }, oci.Options{Registries: registries})
	if err != nil {
		return nil, err
	}
	made := &generator.SourceGenerator{Source: source, Parse: func(files fs.FS) (generator.Generator, error) {
		return helm.NewGenerator(files, "", helm.Options{})
	}}
	return component.NewComponentRoot("shops.example.com", made, component.Options[*Shop]{Config: config}), nil
}

type Shop struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	Spec struct {
		Chart oci.Reference
	}
	Status apis.ComponentStatus
}

func (s *Shop) DeepCopyObject() runtime.Object { copied := *s; return &copied }

func TestDocumentedCode(t *testing.T) {
	t.Parallel()
	documented.Check(t, "documented_test.go", "../../../../docs/helm.md", "../../README.md")
	options := component.Options[*Shop]{ReclaimFrom: []string{"kubectl", "helm"}}
	if len(options.ReclaimFrom) != 2 {
		t.Errorf("the options reclaim from %q, want 2 managers", options.ReclaimFrom)
	}
	for _, build := range []func(reconcilers.Config) (*reconcilers.ResourceReconciler[*Shop], error){
		NewShop, NewFetchedShop,
	} {
		if root, err := build(reconcilers.Config{}); err != nil || root == nil {
			t.Errorf("the root is %v (%v), want one", root, err)
		}
	}
}
