package dependents_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/dependents"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type (
	object = client.Object
	tests  = rtesting.NodeTests[*resources.Widget]
	node   = reconcilers.SubReconciler[*resources.Widget]
)

var (
	scheme  = resources.NewScheme()
	created = metav1.NewTime(time.UnixMilli(1000))
	errBoom = errors.New("boom")

	widget = rtesting.NewFixture(&resources.Widget{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "gadget", UID: "gadget-uid", Generation: 3, CreationTimestamp: created,
		},
	})
	terminating = widget.With(func(w *resources.Widget) {
		w.DeletionTimestamp = new(metav1.NewTime(time.UnixMilli(2000)))
		w.Finalizers = []string{"test.espalier.dev/other"}
	})

	controlledByWidget = metav1.OwnerReference{
		APIVersion: "test.espalier.dev/v1", Kind: "Widget", Name: "gadget", UID: "gadget-uid",
		Controller: new(true), BlockOwnerDeletion: new(true),
	}
	// config is the object of the dependent of that name.
	config = rtesting.NewFixture(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "gadget-config", OwnerReferences: []metav1.OwnerReference{controlledByWidget},
			Labels: map[string]string{reconcilers.NodeLabel: "config"},
		},
		Data: map[string]string{"color": "blue"},
	})
	unownedConfig = config.With(func(c *corev1.ConfigMap) {
		c.OwnerReferences = nil
		c.Labels[dependents.OwnerLabel] = "fc1d05f1b4e6934ce20a9bf62ea3faf4"
	})
	settings = rtesting.NewFixture(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings", CreationTimestamp: created},
		Data:       map[string]string{"color": "blue"},
	})
)

// exists gives a child what the API server gives it.
func exists[T client.Object](child T) {
	child.SetUID(types.UID(child.GetName() + "-child-uid"))
	child.SetCreationTimestamp(created)
}

// with sets a field of the spec, which decides what the functions of the tables return.
func with(key string) func(*resources.Widget) {
	return func(w *resources.Widget) { w.Spec.Fields = map[string]string{key: "yes"} }
}

func asks(w *resources.Widget, key string) bool { return w.Spec.Fields[key] != "" }

// is adds a condition to the status.
func is(status metav1.ConditionStatus, reason, message string) func(*resources.Widget) {
	return func(w *resources.Widget) {
		w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{
			Type: "Done", Status: status, Reason: reason, Message: message,
		})
	}
}

var isReady = is(metav1.ConditionTrue, "Ready", "")

func event(reason, message string) []rtesting.Event {
	return []rtesting.Event{rtesting.NewEvent(widget, scheme, corev1.EventTypeNormal, reason, "%s", message)}
}

// configOf returns a dependent that desires config.
func configOf(color string) *configMapDependent {
	return dependents.Of("config", func(_ context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
		switch {
		case asks(w, "none"):
			return nil, nil
		case asks(w, "error"):
			return nil, errBoom
		}
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name + "-config"},
			Data:       map[string]string{"color": color},
		}, nil
	})
}

// readSettings returns a dependent that reads settings.
func readSettings() *configMapDependent {
	return dependents.Of("settings", func(_ context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "settings"}}, nil
	}).ReadOnly()
}

func setOf(nodes ...dependents.Node[*resources.Widget]) node {
	return &dependents.Set[*resources.Widget]{Name: "Set", Condition: "Done", Dependents: nodes}
}

// run runs a table with the set of dependents that make returns, anew for each case.
func run(t *testing.T, table tests, make func() []dependents.Node[*resources.Widget]) {
	t.Helper()
	table.RunNode(t, scheme, func() node { return setOf(make()...) })
}

func one(d *configMapDependent) []dependents.Node[*resources.Widget] {
	return []dependents.Node[*resources.Widget]{d}
}
