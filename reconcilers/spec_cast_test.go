package reconcilers_test

import (
	"context"
	"errors"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// listDuck is a duck type that knows one member of the items of a list.
type listDuck struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		List []listDuckItem `json:"list,omitempty"`
		Any  any            `json:"any,omitempty"`
	} `json:"spec,omitempty"`
}

type listDuckItem struct {
	Size int64 `json:"size"`
}

func (d *listDuck) DeepCopyObject() runtime.Object {
	out := *d
	d.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.List = append([]listDuckItem(nil), d.Spec.List...)
	out.Spec.Any = runtime.DeepCopyJSONValue(d.Spec.Any)
	return &out
}

// Beside a change, members of list items stay, and so do numbers that no float holds.
func TestCastResourceKeepsWhatTheCastTypeDoesNotKnow(t *testing.T) {
	const large = int64(1)<<53 + 1
	// No Go type and no schema says what the kind has.
	schemaless := resources.GroupVersion.WithKind("Schemaless")
	served := []*metav1.APIResourceList{{
		GroupVersion: schemaless.GroupVersion().String(),
		APIResources: []metav1.APIResource{{Name: "schemalesses", Kind: schemaless.Kind, Namespaced: true}},
	}}
	given := func(first, second, third int64) *unstructured.Unstructured {
		u := withoutType(widget.Object(), schemaless)
		u.Object["spec"] = map[string]any{
			"list": []any{
				map[string]any{"size": first, "unknown": large, "part": 1.5},
				map[string]any{"size": second, "unknown": large + 2},
			},
			"any": map[string]any{"large": large + 4, "small": third},
		}
		return u
	}
	tests := map[string]nodeRow[*unstructured.Unstructured]{}
	for name, test := range map[string]struct {
		sync     func(*listDuck)
		expected *unstructured.Unstructured
	}{
		"nothing":        {func(*listDuck) {}, given(1, 2, 3)},
		"an item":        {func(d *listDuck) { d.Spec.List[1].Size = 20 }, given(1, 20, 3)},
		"a free member":  {func(d *listDuck) { d.Spec.Any.(map[string]any)["small"] = int64(30) }, given(1, 2, 30)},
		"a large number": {func(d *listDuck) { d.Spec.List[0].Size = large }, given(large, 2, 3)},
	} {
		tests[name] = nodeRow[*unstructured.Unstructured]{
			SubReconcilerTestCase: rtesting.SubReconcilerTestCase[*unstructured.Unstructured]{
				Resource: given(1, 2, 3), ExpectResource: test.expected, GivenAPIResources: served,
			},
			node: func(*trace) reconcilers.SubReconciler[*unstructured.Unstructured] {
				sync := func(_ context.Context, d *listDuck) error { test.sync(d); return nil }
				return &reconcilers.CastResource[*unstructured.Unstructured, *listDuck]{
					Reconciler: &reconcilers.SyncReconciler[*listDuck]{Sync: sync},
				}
			},
		}
	}
	runNodes(t, tests)
}

func TestCastResourceToAnInterfacePassesTheResourceItself(t *testing.T) {
	nodeTests{"": {
		widgetCase: widgetCase{ExpectResource: widget.With(statusField("same", "object")).Object()},
		node: func(*trace) widgetNode {
			return &reconcilers.CastResource[*resources.Widget, client.Object]{
				Reconciler: &reconcilers.SyncReconciler[client.Object]{Sync: func(_ context.Context, obj client.Object) error {
					w, ok := obj.(*resources.Widget)
					if !ok {
						return errors.New("not the widget")
					}
					w.Status.AddField("same", "object")
					return nil
				}},
			}
		},
	}}.run(t)
}
