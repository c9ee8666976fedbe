package espalier_test

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func tree(config reconcilers.Config) *reconcilers.ResourceReconciler[*resources.Widget] {
	host := func(_ context.Context, w *resources.Widget) bool { return asks(w, "host") }
	nothing := func(context.Context, *resources.Widget) error { return nil }
	return espalier.For(config,
		espalier.Owns("ConfigMap", desiredConfigMap).Reports("ChildReady"),
		espalier.When("HasHost", host,
			espalier.Runs("Registration", nothing).Reports("Registered"),
		),
	)
}

func TestFor(t *testing.T) {
	request := reconcilers.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "gadget"}}
	observed := func(w *resources.Widget) {
		w.Status.ObservedGeneration = w.Generation
		for i := range w.Status.Conditions {
			w.Status.Conditions[i].ObservedGeneration = w.Generation
		}
	}
	ready := widget.With(
		is("ChildReady", metav1.ConditionTrue, "Ready", ""),
		is("Ready", metav1.ConditionTrue, "Ready", ""), observed)

	rtesting.RootTests{
		"all is new": {
			Request:             request,
			GivenObjects:        []object{widget},
			ExpectCreates:       []object{configMap},
			ExpectEvents:        event(corev1.EventTypeNormal, "Created", `Created ConfigMap "gadget"`),
			ExpectStatusUpdates: []object{ready},
		},
		"nothing changed": {
			Request:      request,
			GivenObjects: []object{ready, configMap.With(exists)},
		},
		"a node is not ready": {
			Request:      request,
			GivenObjects: []object{ready.With(with("not ready"))},
			ExpectStatusUpdates: []object{widget.With(with("not ready"),
				is("ChildReady", metav1.ConditionFalse, "NoColor", "there is no color in stock"),
				is("Ready", metav1.ConditionFalse, "NoColor", "ChildReady: there is no color in stock"), observed)},
			ExpectedResult: reconcilers.Result{RequeueAfter: time.Minute},
		},
		"a condition that counts only for some": {
			Request:      request,
			GivenObjects: []object{ready.With(with("host")), configMap.With(exists)},
			ExpectStatusUpdates: []object{widget.With(with("host"),
				is("ChildReady", metav1.ConditionTrue, "Ready", ""),
				is("Ready", metav1.ConditionTrue, "Ready", ""),
				is("Registered", metav1.ConditionTrue, "Succeeded", ""), observed)},
		},
		"the resource is terminating": {
			Request:      request,
			GivenObjects: []object{terminating},
			ExpectStatusUpdates: []object{terminating.With(
				is("ChildReady", metav1.ConditionUnknown, "Terminating", "the resource is being deleted"),
				is("Ready", metav1.ConditionFalse, "Terminating", "the resource is being deleted, and "+
					"waits for the finalizer test.espalier.dev/other (not one of this tree)"), observed)},
		},
	}.RunRoot(t, scheme, func(config reconcilers.Config) reconcile.Reconciler { return tree(config) })
}

// Point 14: what hangs in a finalizer that no node takes off is named: the resource, and a child without a condition.
func TestADeletionThatHangs(t *testing.T) {
	const own = "test.espalier.dev/registry"
	request := reconcilers.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "gadget"}}
	says := func(status metav1.ConditionStatus, reason, message string) func(*resources.Widget) {
		return func(w *resources.Widget) {
			w.Status.ObservedGeneration, w.Status.Conditions = w.Generation, nil
			is("ChildReady", metav1.ConditionTrue, "Ready", "")(w)
			is("Ready", status, reason, message)(w)
			for i := range w.Status.Conditions {
				w.Status.Conditions[i].ObservedGeneration = w.Generation
			}
		}
	}
	hangs := func(message string) func(*resources.Widget) { return says("False", "Terminating", message) }
	ready := widget.With(says("True", "Ready", ""), func(w *resources.Widget) { w.Finalizers = []string{own} })
	going := func(finalizers ...string) rtesting.Fixture[*resources.Widget] {
		return terminating.With(says("True", "Ready", ""), func(w *resources.Widget) { w.Finalizers = finalizers })
	}
	notReady := with("not ready")
	rtesting.RootTests{
		"a child of a node without a condition": {
			Request: request,
			GivenObjects: []object{ready, configMap.With(exists, func(c *corev1.ConfigMap) {
				c.DeletionTimestamp = terminating.Object().DeletionTimestamp
				c.Finalizers = []string{"backup.example.com/archive"}
			})},
			ExpectStatusUpdates: []object{ready.With(hangs("Widget/ConfigMap: ConfigMap default/gadget " +
				"is being deleted, and waits for the finalizer backup.example.com/archive"))},
		},
		"a finalizer of a node": {
			Request:      request,
			GivenObjects: []object{going(own, "a.example.com/a").With(notReady)},
			ExpectStatusUpdates: []object{going(own, "a.example.com/a").
				With(notReady, hangs("the resource is being deleted"))},
			ExpectedResult: reconcilers.Result{RequeueAfter: time.Minute},
		},
		"a finalizer of nobody": {
			Request:      request,
			GivenObjects: []object{going("a.example.com/a")},
			ExpectStatusUpdates: []object{going("a.example.com/a").With(hangs("the resource is being deleted, " +
				"and waits for the finalizer a.example.com/a (not one of this tree)"))},
		},
		"several, and the garbage collector": {
			Request:      request,
			GivenObjects: []object{going("a.example.com/a", "b.example.com/b", "foregroundDeletion")},
			ExpectStatusUpdates: []object{going("a.example.com/a", "b.example.com/b", "foregroundDeletion").
				With(hangs("the resource is being deleted, and waits for the garbage collector, " +
					"and waits for the finalizers a.example.com/a, b.example.com/b (none of this tree)"))},
		},
	}.RunRoot(t, scheme, func(config reconcilers.Config) reconcile.Reconciler {
		calls := 0
		return espalier.For(config,
			espalier.Owns("ConfigMap", desiredConfigMap),
			espalier.Runs("Registration", func(context.Context, *resources.Widget) error { return nil }).
				Finalizes(own, runs(&calls)))
	})
}

func TestDescription(t *testing.T) {
	const want = `
ResourceReconciler "Widget" Widget
└─ Sequence
   ├─ Owns "ConfigMap" ConfigMap
   └─ When "HasHost"
      └─ Sequence
         └─ Runs "Registration"
`
	if got := reconcilers.Describe(tree(reconcilers.Config{})).String(); got != strings.TrimPrefix(want, "\n") {
		t.Errorf("the tree is\n%s\nwant\n%s", got, want)
	}
}

func TestValidate(t *testing.T) {
	nothing := func(context.Context, *resources.Widget) error { return nil }
	for want, n := range map[string]node{
		`Owns "ConfigMap" must have a function that returns what is desired`: espalier.Owns[*resources.Widget, *corev1.ConfigMap](
			"ConfigMap", nil),
		`Reads "Settings" must have a stasher`: espalier.Reads[*resources.Widget, *corev1.ConfigMap](
			"Settings", nil, settingsKey),
		`Reads "Settings" must have a function that returns the name of the object`: espalier.Reads[*resources.Widget](
			"Settings", settings, nil),
		`Runs "Registration" must have a function`: espalier.Runs[*resources.Widget]("Registration", nil),
		`Runs "Registration" must have the name of a finalizer`: espalier.Runs("Registration", nothing).
			Finalizes("", nothing),
		`Runs "Registration" must have a function to finalize`: espalier.Runs("Registration", nothing).
			Finalizes("example.com/registry", nil),
		`Runs "Registration" must have Finalizes to be Absent`: espalier.Runs[*resources.Widget]("Registration", nil).
			Absent(),
		`Runs "Registration" must not be both Absent and After`: espalier.Runs("Registration", nothing).
			Finalizes("example.com/registry", nothing).Absent().After("ConfigMap"),
		`When "Host" must have a function`: espalier.When[*resources.Widget]("Host", nil),
	} {
		validator := n.(interface{ Validate(context.Context) error })
		if err := validator.Validate(t.Context()); err == nil || err.Error() != want {
			t.Errorf("the error is %v, expected %s", err, want)
		}
	}
}

// The set-up refuses nodes that would wait for ever.
func TestWhenTrueThatIsNeverTrue(t *testing.T) {
	nothing := func(context.Context, *resources.Widget) error { return nil }
	registers := func() node { return espalier.Runs("Registration", nothing).Reports("Registered") }
	for condition, want := range map[string]string{
		"Open":  "",
		"Opne":  "has no node that sets the condition Opne, for which node 1/Opne waits",
		"Ready": "sets the condition Ready itself, so node 1/Ready must not wait for it",
		"Registered": "has nodes that wait for each other: 1/Registered must not wait for the condition Registered of " +
			"1/Registered/0/Registration, which waits for it in turn",
	} {
		root := espalier.For(reconcilers.Config{},
			espalier.Runs("Door", nothing).Reports("Open"), espalier.WhenTrue(condition, registers()))
		err := root.Validate(t.Context())
		if want != "" {
			want = `ResourceReconciler "Widget" ` + want
		}
		if got := fmt.Sprint(err); got != cmp.Or(want, "<nil>") {
			t.Errorf("the error is\n\t%s\nwant\n\t%s", got, want)
		}
	}
}

// What the status cannot show would be lost.
func TestSetupRefusesConditionsThatCannotBeShown(t *testing.T) {
	nothing := func(context.Context, *corev1.ConfigMap) error { return nil }
	ctx := reconcilers.StashResourceType(t.Context(), &corev1.ConfigMap{})
	for name, n := range map[string]reconcilers.SubReconciler[*corev1.ConfigMap]{
		"Owns": espalier.Owns("A", func(context.Context, *corev1.ConfigMap) (*corev1.Secret, error) {
			return nil, nil
		}).Reports("Shown"),
		"OwnsEach": espalier.OwnsEach("A", func(context.Context, *corev1.ConfigMap) ([]*corev1.Secret, error) {
			return nil, nil
		}).Reports("Shown"),
		"Reads": espalier.Reads("A", settings, func(context.Context, *corev1.ConfigMap) types.NamespacedName {
			return types.NamespacedName{}
		}).Reports("Shown"),
		"Runs": espalier.Runs("A", nothing).Reports("Shown"),
	} {
		want := name + ` "A" reports the condition Shown, so *v1.ConfigMap must have a status with Conditions of type ` +
			`[]metav1.Condition`
		if err := n.SetupWithManager(ctx, nil, nil); err == nil || err.Error() != want {
			t.Errorf("the error is %v, expected %s", err, want)
		}
	}
}

// The second of two nodes that set one condition would hide what the first says.
func TestOneNodeForEachCondition(t *testing.T) {
	nothing := func(context.Context, *resources.Widget) error { return nil }
	root := espalier.For(reconcilers.Config{},
		espalier.Runs("A", nothing).Reports("Done"),
		espalier.Runs("B", nothing).Reports("Done"))
	const want = `ResourceReconciler "Widget" sums up the condition Done, so only one of the nodes 0/A and 1/B may set it`
	if err := root.Validate(t.Context()); err == nil || err.Error() != want {
		t.Errorf("the error is %v, expected %s", err, want)
	}
}

func TestReasonsThatTheAPIServerRefuses(t *testing.T) {
	run(t, tests{
		"a sentence": {
			Resource:       widget.Object(),
			ExpectResource: widget.With(is("Done", metav1.ConditionFalse, "NotReady", "later")).Object(),
		},
	}, func() node {
		return espalier.Runs("A", func(context.Context, *resources.Widget) error {
			return espalier.NotReady("not yet", "later")
		}).Reports("Done")
	})
}

func TestMessagesCannotActOnATerminal(t *testing.T) {
	run(t, tests{
		"an answer of a service": {
			Resource:       widget.Object(),
			ExpectResource: widget.With(is("Done", metav1.ConditionFalse, "NotYet", "it says [31mred der")).Object(),
		},
	}, func() node {
		return espalier.Runs("A", func(context.Context, *resources.Widget) error {
			return espalier.NotReady("NotYet", "it says %s", "\x1b[31mred \u202eder")
		}).Reports("Done")
	})
}
