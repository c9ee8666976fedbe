// Package documented has the code of docs/kustomize.md and of the README.md of the generator.
package documented

import (
	"embed"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/generator/kustomize"
	"github.com/espalier-dev/espalier/internal/testenv/documented"
	"github.com/espalier-dev/espalier/reconcilers"
)

//go:embed all:manifests
var folder embed.FS

func NewApp(config reconcilers.Config) (*reconcilers.ResourceReconciler[*App], error) {
	app, err := kustomize.NewGenerator(folder, "manifests", kustomize.Options{})
	if err != nil {
		return nil, err
	}
	return component.NewComponentRoot("app.example.com", app, component.Options[*App]{Config: config}), nil
}

type App struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	Spec   struct{}
	Status apis.ComponentStatus
}

func (a *App) DeepCopyObject() runtime.Object { copied := *a; return &copied }

//go:embed all:overlays all:base
var overlays embed.FS

func production(folder embed.FS) (*kustomize.Generator, error) {
	app, err := kustomize.NewGenerator(folder, "overlays/production", kustomize.Options{Bases: []string{"../../base"}})
	return app, err
}

func withBase(folder embed.FS) (*kustomize.Generator, error) {
	app, err := kustomize.NewGenerator(folder, "manifests/app", kustomize.Options{Bases: []string{"../base"}})
	return app, err
}

func TestDocumentedCode(t *testing.T) {
	documented.Check(t, "documented_test.go", "../../../../docs/kustomize.md", "../../README.md")
	root, err := NewApp(reconcilers.Config{})
	if err != nil || root == nil {
		t.Errorf("the root is %v (%v), want one", root, err)
	}
	if _, err := production(overlays); err != nil {
		t.Error(err)
	}
	app, err := withBase(folder)
	if err != nil {
		t.Fatal(err)
	}
	transformed := generator.NewGenerator(app).WithObjectTransformer(&kustomize.ObjectTransformer{
		Patches: []kustomize.Patch{{
			Patch:  `[{"op": "replace", "path": "/spec/replicas", "value": 3}]`,
			Target: &kustomize.Target{Kind: "Deployment", Name: "web"},
		}},
		Images: []kustomize.Image{{Name: "nginx", NewName: "mirror.example.com/nginx"}},
	})
	objects, err := transformed.Generate(t.Context(), "north", "app", generator.UnstructurableMap{})
	if err != nil || len(objects) != 2 {
		t.Errorf("there are %d objects (%v), want 2", len(objects), err)
	}
}
