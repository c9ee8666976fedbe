package component_test

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The code of docs/components.md.

type ShopSpec struct {
	generator.PolicySpec `json:",inline"`

	Image string `json:"image"`
}

type Shop struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ShopSpec             `json:"spec,omitempty"`
	Status apis.ComponentStatus `json:"status,omitempty"`
}

func NewShopReconciler(config reconcilers.Config) *reconcilers.ResourceReconciler[*Shop] {
	return component.NewComponentRoot("shop.example.com", generator.GeneratorFunc(objectsOf), component.Options[*Shop]{
		Config:     config,
		Dependents: []client.Object{&corev1.ConfigMap{}, &appsv1.Deployment{}},
	})
}

func objectsOf(ctx context.Context, namespace, name string, parameters generator.Unstructurable) ([]client.Object, error) {
	image, _ := parameters.ToUnstructured()["image"].(string)
	labels := map[string]string{"app": name}
	settings := &corev1.ConfigMap{Data: map[string]string{"currency": "EUR"}}
	settings.Name = name
	server := &appsv1.Deployment{}
	server.Name = name
	server.Annotations = map[string]string{"espalier.dev/apply-order": "1"} // when the settings are there
	server.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	server.Spec.Template.Labels = labels
	server.Spec.Template.Spec.Containers = []corev1.Container{{Name: "server", Image: image}}
	return []client.Object{settings, server}, nil
}

type Gallery struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   GallerySpec          `json:"spec,omitempty"`
	Status apis.ComponentStatus `json:"status,omitempty"`
}

type GallerySpec struct {
	generator.ImpersonationSpec `json:",inline"`
	generator.ValuesFromSpec    `json:",inline"`

	Password generator.SecretKeyReference            `json:"password"`
	Pictures map[string]generator.ConfigMapReference `json:"pictures,omitempty"`
	Title    string                                  `json:"title,omitempty"`
}

func galleryOf(ctx context.Context, namespace, name string, parameters generator.Unstructurable) ([]client.Object, error) {
	resource, err := generator.ComponentFromContext(ctx)
	if err != nil {
		return nil, err
	}
	password, err := resource.(*Gallery).Spec.Password.Value()
	if err != nil {
		return nil, err
	}
	login := &corev1.Secret{Data: map[string][]byte{"password": password}}
	login.Name = name
	return []client.Object{login}, nil
}

func galleryGenerator(region string) generator.Generator {
	return generator.NewGenerator(generator.GeneratorFunc(galleryOf)).
		WithParameterTransformer(generator.Defaults(map[string]any{"title": "Gallery"})).
		WithParameterTransformer(generator.Overrides(map[string]any{"tls": map[string]any{"enabled": true}})).
		WithObjectTransformer(generator.Substitute(map[string]string{"REGION": region}, nil))
}

type BranchSpec struct {
	generator.ClientSpec        `json:",inline"`
	generator.ImpersonationSpec `json:",inline"`
	generator.ValuesFromSpec    `json:",inline"`

	// Title of the branch. Default: that of the chart.
	Title string `json:"title,omitempty"`
}

func (s *BranchSpec) ToUnstructured() map[string]any {
	parameters := map[string]any{}
	if s.Title != "" {
		parameters["title"] = s.Title
	}
	return parameters
}

var _ generator.Unstructurable = (*BranchSpec)(nil)

func (s *Shop) DeepCopyObject() runtime.Object    { copied := *s; return &copied }
func (g *Gallery) DeepCopyObject() runtime.Object { copied := *g; return &copied }

func page(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../docs/components.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The code of the page is code of this file, so it compiles, and it can be set up.
func TestDocumentedCode(t *testing.T) {
	source, err := os.ReadFile("documented_test.go")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(page(t), "```go\n")[1:]
	for _, block := range blocks {
		code, _, _ := strings.Cut(block, "```")
		if !strings.Contains(string(source), code) {
			t.Errorf("the code of the page is not in this file, want it there:\n%s", code)
		}
	}
	if len(blocks) == 0 {
		t.Error("the page has no code, want some")
	}
	mgr := newManager(t, &rest.Config{Host: "https://localhost:1"}, ctrl.Options{})
	mgr.GetScheme().AddKnownTypes(resources.GroupVersion, &Shop{})
	root := NewShopReconciler(reconcilers.Config{Client: mgr.GetClient()})
	if err := root.SetupWithManager(t.Context(), mgr); err != nil {
		t.Error(err)
	}
	// The page says that the place of a reference does not matter, and where values are.
	if _, ok := generator.Lookup[generator.ValuesConfiguration](&Gallery{}); !ok || !generator.HasReferences(&Gallery{}) {
		t.Error("the spec has no references, want some")
	}
	if _, err := galleryGenerator("eu").Generate(t.Context(), "", "", generator.UnstructurableMap{}); err == nil {
		t.Error("the generator works without a resource, want an error")
	}
}

// Each reason of the condition has a line in the table of the page, and each line there is one.
func TestDocumentedReasons(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "status.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	text, reasons := page(t), 0
	ast.Inspect(file, func(node ast.Node) bool {
		value, ok := node.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(value.Names[0].Name, "Reason") {
			return true
		}
		reasons++
		reason := strings.Trim(value.Values[0].(*ast.BasicLit).Value, `"`)
		if !strings.Contains(text, "\n| `"+reason+"` | ") {
			t.Errorf("%s is not in the table, want a line of it", reason)
		}
		return true
	})
	_, table, _ := strings.Cut(text, "| Reason |")
	table, _, _ = strings.Cut(table, "\n\n")
	if lines := strings.Count(table, "\n| `"); reasons == 0 || lines != reasons {
		t.Errorf("the table has %d lines, want %d, one for each reason", lines, reasons)
	}
}
