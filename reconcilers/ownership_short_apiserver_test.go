package reconcilers_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/feature/gate"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// mapOf returns a function that returns a ConfigMap named after a node.
func mapOf(node string) func(context.Context, *resources.Widget) (*corev1.ConfigMap, error) {
	return func(_ context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name + "-" + node},
			Data:       map[string]string{"of": node},
		}, nil
	}
}

// created makes a ConfigMap of a Widget's node, with these owners.
func (o *meterOperator) created(t *testing.T, name string, owners ...metav1.OwnerReference) *corev1.ConfigMap {
	t.Helper()
	made := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: name, OwnerReferences: owners},
	}
	if err := o.live.Create(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	return made
}

// patch changes a live object.
func (o *meterOperator) patch(t *testing.T, object client.Object, change func()) {
	t.Helper()
	if err := o.live.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatal(err)
	}
	base := object.DeepCopyObject().(client.Object)
	change()
	if err := o.live.Patch(t.Context(), object, client.MergeFrom(base)); err != nil {
		t.Fatal(err)
	}
}

func anotherController() metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "00000000-0000-0000-0000-0000000000aa",
		Controller: new(true),
	}
}

// What the resource controls goes by its name although it has no label, and what another controls stays.
func TestAbsentByNameOnAnAPIServer(t *testing.T) {
	t.Parallel()
	o := startMeterOperator(t, meterKind("absent"), plane.Config(t), espalier.Steps(
		espalier.Owns("old", mapOf("old")).Labeled().Absent().Reports("old"),
		espalier.Owns("their", mapOf("their")).Labeled().Absent().Reports("their"),
		espalier.Owns("free", mapOf("free")).Unowned().Absent().Reports("free"),
		espalier.Owns("map", mapOf("map")).Labeled().Reports("map"),
	))
	their := o.created(t, "one-their", anotherController())
	w := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: "one"}}
	if err := o.live.Create(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	ours := *metav1.NewControllerRef(w, resources.GroupVersion.WithKind("Widget"))
	o.created(t, "one-old", ours)
	o.created(t, "one-free", ours)
	o.touch(t, w)
	for _, name := range []string{"one-old", "one-free"} {
		eventually(t, name+" is still there", func(ctx context.Context) error {
			err := o.live.Get(ctx, client.ObjectKey{Namespace: o.namespace, Name: name}, &corev1.ConfigMap{})
			if apierrs.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("reading it returns %v", err)
		})
	}
	o.reports(t, w, map[string]string{"old": "NotDesired", "their": "NotOurs", "free": "NotDesired", "map": "Ready"})
	o.owns(t, w, "one-map")

	// Its event brings the resource back.
	if err := o.live.Delete(t.Context(), their); err != nil {
		t.Fatal(err)
	}
	o.reports(t, w, map[string]string{"their": "NotDesired"})
}

// A name that another controller has taken costs no request while that is so, and the node goes on when it is free.
func TestANameThatAnotherHasTakenOnAnAPIServer(t *testing.T) {
	t.Parallel()
	o := startProbed(t, meterKind("taken"),
		espalier.Owns("taken", mapOf("taken")).Labeled().Reports("taken"),
		espalier.Owns("map", mapOf("map")).Labeled().Reports("map"),
	)
	another := o.created(t, "one-taken", anotherController())
	w := o.widget(t, "one", "")
	o.reports(t, w, map[string]string{"taken": "AlreadyExists", "map": "Ready"})
	o.staysIdle(t, w)
	if err := o.live.Delete(t.Context(), another); err != nil {
		t.Fatal(err)
	}
	o.reports(t, w, map[string]string{"taken": "Ready", "map": "Ready"})
}

// A node that does not watch its type works without the rights to list and watch it, for a GET per object and request.
func TestUnwatchedOnAnAPIServer(t *testing.T) {
	t.Parallel()
	o := startMeterOperator(t, meterKind("unwatched"), userWith(t,
		rbacv1.PolicyRule{APIGroups: []string{resources.GroupVersion.Group}, Resources: []string{"*"}, Verbs: []string{"*"}},
		rbacv1.PolicyRule{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"*"}},
		rbacv1.PolicyRule{
			APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "create", "patch", "delete"},
		},
	), espalier.Steps(
		espalier.Owns("map", mapOf("map")).Labeled().Unwatched().Reports("map").
			Gate(func(_ context.Context, w *resources.Widget) gate.Gate {
				return gate.When(w.Spec.Fields["meter"] != "off")
			}),
		espalier.Owns("read", mapOf("map")).ReadOnly().Unwatched().RetryAfter(time.Second).Reports("read"),
	))
	w := o.widget(t, "one", "")
	o.reports(t, w, map[string]string{"map": "Ready", "read": "Ready"})
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: "one-map"}}
	o.patch(t, object, func() { object.Data["of"] = "others" })

	o.requests.Reset()
	o.touch(t, w)
	eventually(t, "the change is not corrected", func(ctx context.Context) error {
		err := o.live.Get(ctx, client.ObjectKeyFromObject(object), object)
		if err == nil && object.Data["of"] != "map" {
			return fmt.Errorf("the data are %v", object.Data)
		}
		return err
	})
	controlplanetest.Quiet(t, o.requests)
	o.touch(t, w)
	eventually(t, "the Widget is not reconciled", func(context.Context) error {
		if n := o.requests.Total(); n < 2 {
			return fmt.Errorf("there are %d requests", n)
		}
		return nil
	})
	controlplanetest.Rest(t, o.requests)
	if n := o.requests.Total(); n != 2 {
		t.Errorf("there are %d requests although nothing changes, want a GET of each node:\n%s", n, o.requests)
	}
	o.patch(t, w, func() { w.Spec.Fields = map[string]string{"meter": "off"} })
	o.reports(t, w, map[string]string{"map": "NotDesired", "read": "NotFound"})
	o.owns(t, w)
}
