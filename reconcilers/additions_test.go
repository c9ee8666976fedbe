package reconcilers_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// admission is a cluster whose admission adds to every ConfigMap that is written, writes colours in upper case, and counts
// generations.
func admission(action rtesting.Action) (bool, runtime.Object, error) {
	var obj client.Object
	switch action := action.(type) {
	case rtesting.UpdateAction: // a CreateAction too
		obj = action.GetObject().(client.Object)
	default:
		return false, nil, nil
	}
	child, ok := obj.(*corev1.ConfigMap)
	if !ok {
		return false, nil, nil
	}
	child.Data = maps.Clone(child.Data)
	child.Data["injected"] = "by admission"
	child.Data["color"] = strings.ToUpper(child.Data["color"])
	child.Generation++
	return assignUID(action)
}

// colored is a child of the colour that is in the spec.
func colored(calls *trace) *configMapNode {
	node := reflectingChild(calls)
	node.DesiredChild = func(_ context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name},
			Data:       map[string]string{"color": w.Spec.Fields["color"]},
		}, nil
	}
	return node
}

// What admission does to an object is learned, also where the object has a generation, so that it is not written
// again and again. Everything that is a difference still is one.
func TestWhatAdmissionDoesIsLearned(t *testing.T) {
	calls := &trace{}
	expect := expectWidget(steadyWidget.With(statusField("child", "gadget")))
	expect.WithReactors = []rtesting.ReactionFunc{calls.observe, admission}
	config := expect.Config()
	newRoot := func() *widgetRoot { return &widgetRoot{Reconciler: colored(&trace{}), Config: config} }
	root := newRoot()
	reconcile := func() {
		t.Helper()
		if _, err := root.Reconcile(t.Context(), widgetRequest); err != nil {
			t.Fatal(err)
		}
	}
	child := &corev1.ConfigMap{}
	get := func(obj client.Object) {
		t.Helper()
		if err := config.Get(t.Context(), widgetKey, obj); err != nil {
			t.Fatal(err)
		}
	}
	paint := func(color string) {
		t.Helper()
		w := &resources.Widget{}
		get(w)
		w.Spec.Fields = map[string]string{"color": color}
		if err := config.Update(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	// steadyAfter reconciles some times and checks what was called and what there is in the end.
	steadyAfter := func(step string, color string, writes ...string) {
		t.Helper()
		calls.calls = nil
		for range 5 {
			reconcile()
		}
		if !slices.Equal(calls.calls, writes) {
			t.Errorf("%s: called %v, expected %v", step, calls.calls, writes)
		}
		get(child)
		if child.Data["color"] != color || child.Data["injected"] == "" {
			t.Errorf("%s: the child has %v, expected %s", step, child.Data, color)
		}
	}
	paint("blue")
	steadyAfter("created", "BLUE", "create ConfigMap")
	paint("red")
	steadyAfter("desired otherwise", "RED", "update ConfigMap")
	child.Data["color"] = "GREEN"
	if err := config.Update(t.Context(), child); err != nil {
		t.Fatal(err)
	}
	steadyAfter("changed by another client", "RED", "update ConfigMap")
	root = newRoot()
	steadyAfter("after a restart", "RED", "update ConfigMap")
	if err := config.Delete(t.Context(), child); err != nil {
		t.Fatal(err)
	}
	steadyAfter("deleted by another client", "RED", "create ConfigMap")
}

// The same for a manager that is called by hand, alone or in a node without a root: it keeps its last writes itself.
func TestUpdatingObjectManagerLearnsByItself(t *testing.T) {
	for name, inNode := range map[string]bool{"alone": false, "in a node": true} {
		t.Run(name, func(t *testing.T) {
			calls := &trace{}
			expect := expectWidget()
			expect.WithReactors = []rtesting.ReactionFunc{calls.observe, admission}
			config := expect.Config()
			manager := &configMaps{MergeBeforeUpdate: mergeConfigMap}
			var actual, managed *corev1.ConfigMap
			manage := func(ctx context.Context, w *resources.Widget) (err error) {
				managed, err = manager.Manage(ctx, w, actual, configMap.Object())
				return err
			}
			node := &reconcilers.SyncReconciler[*resources.Widget]{Sync: manage}
			for range 5 {
				ctx := testContext(t, config)
				var err error
				if inNode {
					_, err = node.Reconcile(ctx, widget.Object())
				} else {
					err = manage(ctx, widget.Object())
				}
				if err != nil {
					t.Fatal(err)
				}
				actual = &corev1.ConfigMap{}
				if err := config.Get(t.Context(), widgetKey, actual); err != nil {
					t.Fatal(err)
				}
				if managed.Data["color"] != "BLUE" {
					t.Errorf("the data are %v, want the color BLUE", managed.Data)
				}
			}
			calls.compare(t, []string{"create ConfigMap"})
		})
	}
}

// What was learned of one object says nothing about another.
func TestAdditionsAreOfOneObject(t *testing.T) {
	calls := &trace{}
	expect := expectWidget()
	expect.WithReactors = []rtesting.ReactionFunc{calls.observe, admission}
	manager := &configMaps{MergeBeforeUpdate: mergeConfigMap}
	ctx := testContext(t, expect.Config())
	if _, err := manager.Manage(ctx, widget.Object(), nil, configMap.Object()); err != nil {
		t.Fatal(err)
	}
	other := givenConfigMap.With(func(c *corev1.ConfigMap) {
		c.Name, c.UID = "other", "other-uid"
		c.Data["injected"] = "by another client"
	}).Object()
	expect.Config().Client.(rtesting.TestClient).AddGiven(other)
	desired := configMap.With(func(c *corev1.ConfigMap) { c.Name = "other" }).Object()
	if _, err := manager.Manage(ctx, widget.Object(), other, desired); err != nil {
		t.Fatal(err)
	}
	calls.compare(t, []string{"create ConfigMap", "update ConfigMap"})
}
