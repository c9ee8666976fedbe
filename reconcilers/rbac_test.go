package reconcilers_test

import (
	"context"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestPolicyRules(t *testing.T) {
	tree := wholeTree(&trace{})
	tree.Reconciler = append(tree.Reconciler.(widgetSequence), &widgetSync{
		Sync: func(context.Context, *resources.Widget) error { return nil },
		Uses: []reconcilers.Access{
			{Object: &appsv1.Deployment{}, Subresource: "scale", Verbs: []string{"update", "get"}},
			{Object: &corev1.ConfigMap{}, Verbs: []string{"deletecollection", "get"}},
			{Object: &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Policy"}}, Verbs: []string{"get"}},
		},
	})
	expected := []rbacv1.PolicyRule{
		{
			APIGroups: []string{""},
			Resources: []string{"configmaps"},
			Verbs:     []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"},
		},
		{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
		{APIGroups: []string{"apps"}, Resources: []string{"deployments/scale"}, Verbs: []string{"get", "update"}},
		{APIGroups: []string{"example.com"}, Resources: []string{"policies"}, Verbs: []string{"get"}},
		{APIGroups: []string{"test.espalier.dev"}, Resources: []string{"widgets"}, Verbs: []string{"get", "list", "watch", "patch"}},
		{APIGroups: []string{"test.espalier.dev"}, Resources: []string{"widgets/finalizers"}, Verbs: []string{"update"}},
		{APIGroups: []string{"test.espalier.dev"}, Resources: []string{"widgets/status"}, Verbs: []string{"get", "update", "patch"}},
	}
	for range 10 { // no order of maps
		rules, err := reconcilers.Describe(tree).PolicyRules(widgetScheme, nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(expected, rules); diff != "" {
			t.Fatalf("the rules differ (-expected, +actual):\n%s", diff)
		}
	}
}

// Where a mapper knows how a resource is called, English does not matter.
func TestPolicyRulesUseTheMapper(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper(nil)
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Ox"}
	mapper.AddSpecific(kind, kind.GroupVersion().WithResource("oxen"), kind.GroupVersion().WithResource("ox"), meta.RESTScopeNamespace)
	ox := &unstructured.Unstructured{}
	ox.SetGroupVersionKind(kind)
	tree := &widgetSync{
		Sync: func(context.Context, *resources.Widget) error { return nil },
		Uses: []reconcilers.Access{{Object: ox, Verbs: []string{"get"}}},
	}
	rules, err := reconcilers.Describe(tree).PolicyRules(widgetScheme, mapper)
	if err != nil {
		t.Fatal(err)
	}
	expected := []rbacv1.PolicyRule{{APIGroups: []string{"example.com"}, Resources: []string{"oxen"}, Verbs: []string{"get"}}}
	if diff := cmp.Diff(expected, rules); diff != "" {
		t.Errorf("the rules differ (-expected, +actual):\n%s", diff)
	}
}

func TestPolicyRulesOfUnknownKinds(t *testing.T) {
	tree := widgetSequence{&widgetSync{
		Name: "mine",
		Sync: func(context.Context, *resources.Widget) error { return nil },
		Uses: []reconcilers.Access{{Object: &statusless{}, Verbs: []string{"get"}}},
	}}
	_, err := reconcilers.Describe(tree).PolicyRules(widgetScheme, nil)
	if err == nil || !strings.Contains(err.Error(), "mine") || !strings.Contains(err.Error(), "statusless") {
		t.Errorf("the error is %v, want one that names mine and statusless", err)
	}
}

func TestRBACMarkers(t *testing.T) {
	markers := reconcilers.RBACMarkers([]rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps", "secrets"}, Verbs: []string{"get", "list"}},
		{
			APIGroups:     []string{"apps", "extensions"},
			Resources:     []string{"deployments/scale"},
			ResourceNames: []string{"mine"},
			Verbs:         []string{"update"},
		},
		{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}},
	})
	expected := []string{
		`// +kubebuilder:rbac:groups="",resources=configmaps;secrets,verbs=get;list`,
		`// +kubebuilder:rbac:groups=apps;extensions,resources=deployments/scale,resourceNames=mine,verbs=update`,
		`// +kubebuilder:rbac:urls=/metrics,verbs=get`,
	}
	if diff := cmp.Diff(expected, markers); diff != "" {
		t.Errorf("the markers differ (-expected, +actual):\n%s", diff)
	}
}

// A definition among what the tree uses says how its resource is called. Other names are guessed, and said to be.
func TestPolicyRulesReadDefinitions(t *testing.T) {
	custom := func(kind string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": kind}}
	}
	definition := custom("CustomResourceDefinition")
	definition.SetAPIVersion("apiextensions.k8s.io/v1")
	definition.Object["spec"] = map[string]any{
		"group": "example.com", "names": map[string]any{"kind": "Index", "plural": "indices"},
		"versions": []any{map[string]any{"name": "v1"}},
	}
	node := func(uses ...client.Object) widgetNode {
		node := &widgetSync{Sync: func(context.Context, *resources.Widget) error { return nil }}
		for _, object := range uses {
			node.Uses = append(node.Uses, reconcilers.Access{Object: object, Verbs: []string{"get"}})
		}
		return node
	}
	for name, test := range map[string]struct {
		tree    widgetNode
		markers []string
	}{
		"defined": {
			// The definition may be used by a later node.
			tree: widgetSequence{node(custom("Index")), node(definition)},
			markers: []string{
				"// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get",
				"// +kubebuilder:rbac:groups=example.com,resources=indices,verbs=get",
			},
		},
		"guessed": {
			tree: node(custom("Index"), &corev1.ConfigMap{}),
			markers: []string{
				`// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get`,
				"// The resource indexs.example.com is guessed from the kind Index.",
				"// +kubebuilder:rbac:groups=example.com,resources=indexs,verbs=get",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			markers, err := reconcilers.Describe(test.tree).RBACMarkers(widgetScheme, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.markers, markers); diff != "" {
				t.Errorf("the markers differ (-expected, +actual):\n%s", diff)
			}
		})
	}
}
