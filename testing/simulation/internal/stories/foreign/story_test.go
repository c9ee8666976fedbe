package foreign_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/testing/simulation"
	"github.com/espalier-dev/espalier/testing/simulation/internal/stories"
)

const namespace = "default"

// tree is the tree of Widgets: each has ClusterRoles, which it cannot own.
func tree(config reconcilers.Config) *reconcilers.ResourceReconciler[*resources.Widget] {
	return espalier.For(config,
		espalier.OwnsEach("Roles", func(_ context.Context, w *resources.Widget) ([]*rbacv1.ClusterRole, error) {
			var roles []*rbacv1.ClusterRole
			for name := range maps.Keys(w.Spec.Fields) {
				roles = append(roles, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: w.Name + "-" + name}})
			}
			return roles, nil
		}).Reports("Roles"),
	)
}

func cluster(t *testing.T) simulation.Options {
	t.Helper()
	scheme := resources.NewScheme()
	rules, err := tree(reconcilers.Config{}).Describe().PolicyRules(scheme, nil)
	if err != nil {
		t.Fatal(err)
	}
	return simulation.Options{
		Operator: func(ctx context.Context, mgr ctrl.Manager) error {
			return tree(espalier.NewConfig(mgr)).SetupWithManager(ctx, mgr)
		},
		Scheme:      scheme,
		Definitions: []*apiextensionsv1.CustomResourceDefinition{resources.CRD()},
		Rules: append(rules, rbacv1.PolicyRule{
			APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"},
		}),
	}
}

// roles fails the story unless there are these ClusterRoles of Widgets.
func roles(w *simulation.World, want ...string) {
	w.Helper()
	list := &rbacv1.ClusterRoleList{}
	w.List(list)
	var names []string
	for _, role := range list.Items {
		if strings.HasPrefix(role.Name, "widget-") {
			names = append(names, role.Name)
		}
	}
	if !slices.Equal(names, want) {
		w.Errorf("there are the ClusterRoles %v, want %v", names, want)
	}
}

// life is the story of two Widgets from their creation to the end of both.
func life(w *simulation.World) {
	widget := func(name string, fields map[string]string) *resources.Widget {
		made := &resources.Widget{ObjectMeta: stories.Named(namespace, name)}
		made.Spec.Fields = fields
		w.Create(made)
		return made
	}
	a := widget("widget-a", map[string]string{"reader": "yes", "writer": "yes"})
	b := widget("widget-b", map[string]string{"reader": "yes"})
	w.Rest()
	roles(w, "widget-a-reader", "widget-a-writer", "widget-b-reader")

	w.Update(a, func() { a.Spec.Fields = map[string]string{"reader": "yes"} })
	w.Rest()
	roles(w, "widget-a-reader", "widget-b-reader")

	w.Update(b, func() { b.Spec.Fields = nil })
	w.Delete(a)
	w.Rest()
	roles(w)
	w.Get(b)
	if len(b.Finalizers) > 0 || w.Exists(a) {
		w.Errorf("widget-b has the finalizers %v, and widget-a exists: %t", b.Finalizers, w.Exists(a))
	}
}

func TestFaults(t *testing.T) { simulation.RunFaults(t, cluster(t), life) }

func TestSeeds(t *testing.T) { simulation.RunSeeds(t, cluster(t), life) }
