package espalier_test

import (
	"context"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	appsv1 "k8s.io/api/apps/v1"
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
	scheme = resources.NewScheme()

	created = metav1.NewTime(time.UnixMilli(1000))

	widget = rtesting.NewFixture(&resources.Widget{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "gadget", UID: "gadget-uid", Generation: 3, CreationTimestamp: created,
		},
	})
	terminating = widget.With(func(w *resources.Widget) {
		w.DeletionTimestamp = new(metav1.NewTime(time.UnixMilli(2000)))
		w.Finalizers = []string{"test.espalier.dev/other"}
	})

	configMap = rtesting.NewFixture(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "gadget", OwnerReferences: []metav1.OwnerReference{controlledByWidget},
		},
		Data: map[string]string{"color": "blue"},
	})
	deployment = rtesting.NewFixture(&appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "gadget", OwnerReferences: []metav1.OwnerReference{controlledByWidget},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(3)),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "gadget"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "gadget"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "gadget", Image: "gadget:1"}}},
			},
		},
	})

	controlledByWidget = metav1.OwnerReference{
		APIVersion: "test.espalier.dev/v1", Kind: "Widget", Name: "gadget", UID: "gadget-uid",
		Controller: new(true), BlockOwnerDeletion: new(true),
	}
)

// run runs a table with the node that make returns, anew for each case.
func run(t *testing.T, table tests, make func() node) {
	t.Helper()
	table.RunNode(t, scheme, make)
}

// with sets a field of the spec, which decides what the functions of the tables return.
func with(key string) func(*resources.Widget) {
	return func(w *resources.Widget) { w.Spec.Fields = map[string]string{key: "yes"} }
}

// is adds a condition to the status.
func is(conditionType string, status metav1.ConditionStatus, reason, message string) func(*resources.Widget) {
	return func(w *resources.Widget) {
		w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{
			Type: conditionType, Status: status, Reason: reason, Message: message,
		})
	}
}

// exists gives a child what the API server gives it.
func exists[T client.Object](child T) {
	child.SetUID(types.UID(child.GetName() + "-child-uid"))
	child.SetCreationTimestamp(created)
}

func asks(w *resources.Widget, key string) bool {
	return w.Spec.Fields[key] != ""
}

func desiredConfigMap(_ context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
	switch {
	case asks(w, "none"):
		return nil, nil
	case asks(w, "not ready"):
		return nil, outOfStock
	case asks(w, "error"):
		return nil, errBoom
	}
	child := configMap.Object()
	child.OwnerReferences = nil
	return child, nil
}

func event(eventType, reason, message string) []rtesting.Event {
	return []rtesting.Event{rtesting.NewEvent(widget, scheme, eventType, reason, "%s", message)}
}
