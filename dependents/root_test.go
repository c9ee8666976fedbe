package dependents_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/espalier-dev/espalier/dependents"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func colorRoot(config reconcilers.Config) *reconcilers.ResourceReconciler[*resources.Widget] {
	return dependents.NewRoot(config, dependents.Options[*resources.Widget]{
		Default: func(w *resources.Widget) {
			if w.Spec.Fields == nil {
				w.Spec.Fields = map[string]string{"color": "blue"}
			}
		},
		Validate: func(w *resources.Widget) error {
			if w.Spec.Fields["color"] == "" {
				return fmt.Errorf("spec.fields: there must be a color")
			}
			return nil
		},
		Condition: "Done",
		Dependents: nodes{dependents.Of("config",
			func(_ context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
				return &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name + "-config"},
					Data:       map[string]string{"color": w.Spec.Fields["color"]},
				}, nil
			})},
	})
}

func TestNewRoot(t *testing.T) {
	request := reconcilers.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "gadget"}}
	sums := func(status metav1.ConditionStatus, reason, message, sum string) func(*resources.Widget) {
		return func(w *resources.Widget) {
			w.Status.ObservedGeneration = 3
			w.Status.Conditions = []metav1.Condition{
				{Type: "ChildReady", Status: "Unknown", Reason: "Initializing",
					ObservedGeneration: 3}, // by the status itself
				{Type: "Done", Status: status, Reason: reason, Message: message, ObservedGeneration: 3},
				{Type: "Ready", Status: status, Reason: reason, Message: sum, ObservedGeneration: 3},
			}
		}
	}
	invalid := widget.With(with("size"), sums("False", "Invalid", "spec.fields: there must be a color",
		"Done: spec.fields: there must be a color"))
	ready := widget.With(sums("True", "Ready", "", ""))
	rtesting.RootTests{
		// The defaults are not written.
		"it is created with defaults": {
			Request:             request,
			GivenObjects:        []object{widget},
			ExpectCreates:       []object{config},
			ExpectEvents:        event("Created", `Created ConfigMap "gadget-config"`),
			ExpectStatusUpdates: []object{ready},
		},
		"nothing changed": {
			Request:      request,
			GivenObjects: []object{ready, config.With(exists)},
		},
		"it is not valid": {
			Request:             request,
			GivenObjects:        []object{widget.With(with("size")), config.With(exists)},
			ExpectStatusUpdates: []object{invalid},
		},
		"it is still not valid": {
			Request:      request,
			GivenObjects: []object{invalid},
		},
		"it is not valid, and terminating": {
			Request:       request,
			GivenObjects:  []object{terminating.With(with("size")), config.With(exists)},
			ExpectDeletes: deleted,
			ExpectEvents:  event("Deleted", `Deleted ConfigMap "gadget-config"`),
			ExpectStatusUpdates: []object{terminating.With(with("size"), func(w *resources.Widget) {
				w.Status.ObservedGeneration = 3
				w.Status.Conditions = []metav1.Condition{
					{Type: "ChildReady", Status: "Unknown", Reason: "Initializing", ObservedGeneration: 3},
					{
						Type: "Ready", Status: "False", Reason: "Terminating", ObservedGeneration: 3,
						Message: "the resource is being deleted",
					},
				}
			})},
		},
	}.Run(t, scheme, func(_ *testing.T, _ *rtesting.ReconcilerTestCase,
		config reconcilers.Config) reconcile.Reconciler {
		return colorRoot(config)
	})
	const want = `ResourceReconciler "Widget" Widget
└─ Set "Dependents"
   └─ Dependent "config" ConfigMap
`
	if got := reconcilers.Describe(colorRoot(reconcilers.Config{})).String(); got != want {
		t.Errorf("the tree is\n%s", got)
	}
}

func TestSetup(t *testing.T) {
	root := func(nodes ...node) rtesting.SetupFactory {
		return func(_ *testing.T, _ *rtesting.SetupTestCase, c reconcilers.Config) rtesting.Setup {
			return rtesting.SubReconcilerSetup[*resources.Widget](c, reconcilers.Sequence[*resources.Widget](nodes))
		}
	}
	rtesting.SetupTests{"what is watched": {
		ExpectWatches: []object{&resources.Widget{}, &corev1.ConfigMap{}},
		Events: []rtesting.SetupEvent{{
			Created: config.With(exists), ExpectRequests: []reconcilers.Request{{
				NamespacedName: types.NamespacedName{Namespace: "default", Name: "gadget"}}},
		}},
	}}.Run(t, scheme, root(setOf(colored()...)))
	rtesting.SetupTests{"two sets that would take the objects of each other": {
		ShouldErr: true,
		Verify: func(t *testing.T, err error) {
			const want = `ResourceReconciler "WidgetResourceReconciler" must have different names for ` +
				`WidgetResourceReconciler/0/Set/config and WidgetResourceReconciler/1/Set/config, which both ` +
				`label children of kind ConfigMap with "config"`
			if err == nil || err.Error() != want {
				t.Errorf("the error is %v", err)
			}
		},
	}}.Run(t, scheme, root(setOf(configOf("blue")), setOf(configOf("red"))))
}
