package component_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/testing/fake"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type tenant struct{ key, color string }

// componentOfEach returns a loop with a component for each field of the spec, whose objects have the value as a color.
func componentOfEach() reconcilers.SubReconciler[*resources.Widget] {
	cursor := reconcilers.CursorStasher[tenant]()
	return &reconcilers.ForEach[*resources.Widget, tenant]{
		Name: "Tenants", Key: func(t tenant) string { return t.key },
		Items: func(_ context.Context, w *resources.Widget) (items []tenant, _ error) {
			for _, key := range slices.Sorted(maps.Keys(w.Spec.Fields)) {
				items = append(items, tenant{key, w.Spec.Fields[key]})
			}
			return items, nil
		},
		Reconciler: &component.ComponentReconciler[*resources.Widget]{
			Name: "App", Prefix: "tenants.test.espalier.dev", Condition: "AppReady", FenceMargin: -1,
			Parameters: func(ctx context.Context, _ *resources.Widget) (generator.Unstructurable, error) {
				item := cursor.RetrieveOrDie(ctx).Item
				return generator.UnstructurableMap{"key": item.key, "color": item.color}, nil
			},
			Generator: generator.GeneratorFunc(func(
				_ context.Context, _, _ string, parameters generator.Unstructurable,
			) ([]client.Object, error) {
				content := parameters.ToUnstructured()
				key, color := content["key"].(string), content["color"].(string)
				return []client.Object{
					&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: key}, Data: map[string]string{"color": color}},
					&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: key}},
				}, nil
			}),
		},
	}
}

func TestComponentOfEachItem(t *testing.T) {
	gadget := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "gadget"}}
	c := fake.NewClientBuilder().WithScheme(resources.NewScheme()).WithObjects(gadget,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}).Build()
	root := &reconcilers.ResourceReconciler[*resources.Widget]{
		Config:                      reconcilers.Config{Client: c, APIReader: c, Recorder: &record.FakeRecorder{}},
		KeepResultAfterStatusUpdate: true, SyncStatusDuringFinalization: true, Reconciler: componentOfEach(),
	}
	look := func() (*resources.Widget, []string) {
		var live resources.Widget
		_ = c.Get(t.Context(), client.ObjectKeyFromObject(gadget), &live) // it is empty once it is deleted
		var maps corev1.ConfigMapList
		if err := c.List(t.Context(), &maps); err != nil {
			t.Fatal(err)
		}
		found := []string{}
		for _, object := range maps.Items {
			found = append(found, object.Name+"="+object.Data["color"])
		}
		return &live, found
	}
	for _, want := range [][]string{{"a=red", "b=blue"}, {"a=green", "b=blue", "c=red"}, {"c=red"}, {}} {
		live, _ := look()
		live.Spec.Fields = map[string]string{}
		for _, pair := range want {
			key, color, _ := strings.Cut(pair, "=")
			live.Spec.Fields[key] = color
		}
		if err := c.Update(t.Context(), live); err != nil {
			t.Fatal(err)
		}
		var err error
		for range 20 {
			_, err = root.Reconcile(t.Context(), reconcilers.Request{NamespacedName: client.ObjectKeyFromObject(gadget)})
		}
		if err != nil {
			t.Errorf("for %v the last request returned %v, want no error", want, err)
		}
		live, found := look()
		if !slices.Equal(found, want) {
			t.Errorf("the objects are %v, want %v", found, want)
		}
		if len(live.Status.ItemComponents) != len(want) || len(live.Finalizers) > 1 || len(live.Finalizers) != min(1, len(want)) {
			t.Errorf("for %v there are the components %v and the finalizers %v, want one of each item",
				want, live.Status.ItemComponents, live.Finalizers)
		}
		condition := reconcilers.GetCondition(live, "AppReady")
		if len(want) > 0 && (condition == nil || condition.Status != metav1.ConditionTrue) {
			t.Errorf("for %v the condition is %v, want it True", want, condition)
		}
	}
}
