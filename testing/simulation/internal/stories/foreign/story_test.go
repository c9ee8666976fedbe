package foreign_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
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

// tree is the tree of Widgets: each has ClusterRoles, and sets a field of a ConfigMap of somebody else.
func tree(config reconcilers.Config) *reconcilers.ResourceReconciler[*resources.Widget] {
	return espalier.For(config,
		espalier.OwnsEach("Roles", func(_ context.Context, w *resources.Widget) ([]*rbacv1.ClusterRole, error) {
			var roles []*rbacv1.ClusterRole
			for name := range maps.Keys(w.Spec.Fields) {
				if name != "settings" {
					roles = append(roles, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: w.Name + "-" + name}})
				}
			}
			return roles, nil
		}).Reports("Roles"),
		espalier.Owns("Settings", func(_ context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
			if w.Spec.Fields["settings"] == "" {
				return nil, nil
			}
			settings := configMap(w.Spec.Fields["settings"])
			settings.Data = map[string]string{w.Name: "yes"}
			return settings, nil
		}).Contributes().Reports("Settings"),
	)
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: stories.Named(namespace, name)}
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

// has fails the story unless the ConfigMap has these keys, and a label for each Widget that sets one.
func has(w *simulation.World, name string, want ...string) {
	w.Helper()
	live := configMap(name)
	w.Get(live)
	keys := slices.Sorted(maps.Keys(live.Data))
	if !slices.Equal(keys, want) || len(live.Labels) != len(want)-1 || live.DeletionTimestamp != nil {
		w.Errorf("%s has the data %v and the labels %v, want the data %v", name, keys, live.Labels, want)
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
	for _, name := range []string{"one", "two"} {
		theirs := configMap(name)
		theirs.Data = map[string]string{"own": "1"}
		w.Create(theirs)
	}
	widget := func(name string, fields map[string]string) *resources.Widget {
		made := &resources.Widget{ObjectMeta: stories.Named(namespace, name)}
		made.Spec.Fields = fields
		w.Create(made)
		return made
	}
	a := widget("widget-a", map[string]string{"settings": "one", "reader": "yes", "writer": "yes"})
	b := widget("widget-b", map[string]string{"settings": "one", "reader": "yes"})
	w.Rest()
	roles(w, "widget-a-reader", "widget-a-writer", "widget-b-reader")
	has(w, "one", "own", "widget-a", "widget-b")

	w.Update(a, func() { a.Spec.Fields = map[string]string{"settings": "two", "reader": "yes"} })
	w.Rest()
	roles(w, "widget-a-reader", "widget-b-reader")
	has(w, "one", "own", "widget-b")
	has(w, "two", "own", "widget-a")

	w.Update(b, func() { b.Spec.Fields = nil })
	w.Delete(a)
	w.Rest()
	roles(w)
	has(w, "one", "own")
	has(w, "two", "own")
	w.Get(b)
	if len(b.Finalizers) > 0 || w.Exists(a) {
		w.Errorf("widget-b has the finalizers %v, and widget-a exists: %t", b.Finalizers, w.Exists(a))
	}
}

func TestFaults(t *testing.T) { simulation.RunFaults(t, cluster(t), life) }

func TestSeeds(t *testing.T) { simulation.RunSeeds(t, cluster(t), life) }
