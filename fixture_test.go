package espalier_test

import (
	"context"
	"testing"
	"time"

	"github.com/espalier-dev/espalier"
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

	child    = espalier.Child[*resources.Widget, *corev1.ConfigMap]
	children = espalier.Children[*resources.Widget, *corev1.ConfigMap]
)

// The keys that nodes put on objects are formats: objects that an earlier release made have them.
const (
	ownerLabel          = "espalier.dev/dependent-of"
	suspendedAnnotation = "espalier.dev/suspended"
	replicasAnnotation  = "espalier.dev/replicas"
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
	controlledByAnother = metav1.OwnerReference{
		APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "web-uid", Controller: new(true),
	}
)

// run runs a table with the node that make returns, anew for each case.
func run(t *testing.T, table tests, make func() node) {
	t.Helper()
	table.RunNode(t, scheme, make)
}

// owns returns a node that keeps the config map, and reports Ready.
func owns() *child { return espalier.Owns("ConfigMap", desiredConfigMap).Reports("Ready") }

// ownsEach is owns for a set.
func ownsEach() *children {
	return espalier.OwnsEach("ConfigMap", func(ctx context.Context, w *resources.Widget) ([]*corev1.ConfigMap, error) {
		one, err := desiredConfigMap(ctx, w)
		if one == nil {
			return nil, err
		}
		return []*corev1.ConfigMap{one}, err
	}).Reports("Ready")
}

// runBoth runs a table with Owns and with OwnsEach, with the same switches.
func runBoth(t *testing.T, table tests, one func(*child) *child, each func(*children) *children) {
	t.Helper()
	t.Run("Owns", func(t *testing.T) { run(t, table, func() node { return one(owns()) }) })
	t.Run("OwnsEach", func(t *testing.T) { run(t, table, func() node { return each(ownsEach()) }) })
}

// keeps returns a node that keeps the config map of its name, which it also reports by a condition of its name. It fails
// or is not ready if the widget asks for that.
func keeps(name string) *child {
	return espalier.Owns(name, func(_ context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
		switch {
		case asks(w, name+" fails"):
			return nil, errBoom
		case asks(w, name+" is not ready"):
			return nil, espalier.NotReady("NoColor", "there is no color")
		}
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}}, nil
	}).Labeled().Reports(name)
}

// kept is the config map that keeps makes.
func kept(name string) rtesting.Fixture[*corev1.ConfigMap] {
	return configMap.With(func(c *corev1.ConfigMap) {
		c.Name, c.Data, c.Labels = name, nil, map[string]string{reconcilers.NodeLabel: name}
	})
}

// with sets fields of the spec, which decide what the functions of the tables return.
func with(keys ...string) func(*resources.Widget) {
	return func(w *resources.Widget) {
		w.Spec.Fields = map[string]string{}
		for _, key := range keys {
			w.Spec.Fields[key] = "yes"
		}
	}
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

// deletes expects that the config map is deleted.
var (
	deletes = []rtesting.DeleteRef{rtesting.NewDeleteRefFromObject(configMap, scheme)}
	deleted = event(corev1.EventTypeNormal, "Deleted", `Deleted ConfigMap "gadget"`)
	makes   = event(corev1.EventTypeNormal, "Created", `Created ConfigMap "gadget"`)
	isReady = is("Ready", metav1.ConditionTrue, "Ready", "")
	isNone  = is("Ready", metav1.ConditionTrue, "NotDesired", "")
)

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

func desiredDeployment(context.Context, *resources.Widget) (*appsv1.Deployment, error) {
	desired := deployment.Object()
	desired.OwnerReferences = nil
	return desired, nil
}

func event(eventType, reason, message string) []rtesting.Event {
	return []rtesting.Event{rtesting.NewEvent(widget, scheme, eventType, reason, "%s", message)}
}
