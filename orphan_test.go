package espalier_test

import (
	"context"
	"testing"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestOrphanWhen(t *testing.T) {
	ours := configMap.With(func(c *corev1.ConfigMap) { c.Labels = map[string]string{reconcilers.NodeLabel: "ConfigMap"} })
	orphan, orphaned := with("orphan"), is("Ready", metav1.ConditionTrue, "Orphaned", "")
	released := []rtesting.PatchRef{{
		Kind: "ConfigMap", Namespace: "default", Name: "gadget", PatchType: "application/merge-patch+json",
		Patch: []byte(`{"metadata":{"annotations":{"espalier.dev/orphaned-from":"` + widgetDigest +
			`"},"labels":null,"ownerReferences":null,"resourceVersion":"5"}}`),
	}}
	when := func(_ context.Context, w *resources.Widget) (bool, error) {
		if asks(w, "orphan fails") {
			return true, errBoom
		}
		return asks(w, "orphan"), nil
	}
	runBoth(t, tests{
		"it is released": {
			Resource: widget.With(orphan).Object(), GivenObjects: []object{ours.With(exists)}, ExpectPatches: released,
			ExpectEvents:   event(corev1.EventTypeNormal, "Orphaned", `Orphaned ConfigMap "gadget"`),
			ExpectResource: widget.With(orphan, orphaned).Object(),
		},
		"it was released": {
			Resource: widget.With(orphan).Object(),
			GivenObjects: []object{ours.With(exists, func(c *corev1.ConfigMap) {
				c.OwnerReferences, c.Labels = nil, nil
			})},
			ExpectResource: widget.With(orphan, orphaned).Object(),
		},
		"it is being deleted already": {
			Resource: widget.With(orphan).Object(),
			GivenObjects: []object{ours.With(exists, func(c *corev1.ConfigMap) {
				c.DeletionTimestamp, c.Finalizers = &created, []string{"test.espalier.dev/other"}
			})},
			ExpectResource: widget.With(orphan, orphaned).Object(),
		},
		"there is nothing to release": {
			Resource: widget.With(orphan).Object(), ExpectResource: widget.With(orphan, orphaned).Object(),
		},
		"it is not to be released": {
			Resource: widget.Object(), ExpectCreates: []object{ours}, ExpectEvents: makes,
			ExpectResource: widget.With(isReady).Object(),
		},
		"it is not known whether": {
			Resource: widget.With(with("orphan fails")).Object(), GivenObjects: []object{ours.With(exists)},
			ExpectedErr: errBoom,
		},
		"the resource is terminating": {
			Resource: terminating.With(orphan).Object(), GivenObjects: []object{ours.With(exists)},
			ExpectPatches: released,
			ExpectEvents:  event(corev1.EventTypeNormal, "Orphaned", `Orphaned ConfigMap "gadget"`),
		},
	}, func(c *child) *child { return c.OrphanWhen(when).Labeled() },
		func(c *children) *children { return c.OrphanWhen(when).Labeled() })
	free := func(edits ...func(*corev1.ConfigMap)) object {
		return ours.With(exists, func(c *corev1.ConfigMap) {
			c.OwnerReferences, c.Labels = nil, nil
			c.Annotations = map[string]string{espalier.OrphanedAnnotation: widgetDigest}
		}).With(edits...)
	}
	exist := `configmaps "gadget" already exists`
	taken := func(given object, text string) rtesting.SubReconcilerTestCase[*resources.Widget] {
		return rtesting.SubReconcilerTestCase[*resources.Widget]{
			Resource: widget.Object(), GivenObjects: []object{given}, APIGivenObjects: []object{given},
			ExpectCreates:  []object{ours},
			ExpectTracks:   []rtesting.TrackRequest{rtesting.NewTrackRequest(configMap, widget, scheme)},
			ExpectEvents:   event(corev1.EventTypeWarning, "CreationFailed", `Failed to create ConfigMap "gadget": `+text),
			ExpectResource: widget.With(is("Ready", metav1.ConditionFalse, "AlreadyExists", text)).Object(),
		}
	}
	runBoth(t, tests{
		"it is taken back": {
			Resource:     widget.Object(),
			GivenObjects: []object{free(func(c *corev1.ConfigMap) { c.Data["color"] = "red" })},
			ExpectApplies: []rtesting.ApplyRef{{
				Kind: "ConfigMap", Namespace: "default", Name: "gadget", FieldOwner: "widget-controller", Force: new(true),
				ApplyConfiguration: rtesting.Applied(ours.With(func(c *corev1.ConfigMap) { c.UID = "gadget-child-uid" }).Object()),
			}},
			ExpectEvents:   event(corev1.EventTypeNormal, "Updated", `Updated ConfigMap "gadget"`),
			ExpectResource: widget.With(isReady).Object(),
		},
		"somebody else controls it now": taken(free(func(c *corev1.ConfigMap) {
			c.OwnerReferences = []metav1.OwnerReference{controlledByAnother}
		}), exist+" and is controlled by ReplicaSet web"),
		"an earlier resource has released it": taken(free(func(c *corev1.ConfigMap) {
			c.Annotations = map[string]string{espalier.OrphanedAnnotation: "fc1d05f1b4e6934ce20a9bf62ea3faf5"}
		}), exist),
		"it is being deleted": taken(free(func(c *corev1.ConfigMap) {
			c.DeletionTimestamp, c.Finalizers = &created, []string{"test.espalier.dev/other"}
		}), "object is being deleted: "+exist),
	}, func(c *child) *child { return c.OrphanWhen(when).Labeled() },
		func(c *children) *children { return c.OrphanWhen(when).Labeled() })
	withdrawn := widget.With(with("orphan", "withdraw"))
	run(t, tests{"a feature withdraws it": {
		Resource: withdrawn.Object(), GivenObjects: []object{ours.With(exists)}, ExpectPatches: released,
		ExpectEvents:   event(corev1.EventTypeNormal, "Orphaned", `Orphaned ConfigMap "gadget"`),
		ExpectResource: withdrawn.With(orphaned).Object(),
	}}, func() node { return supervised{owns().OrphanWhen(when).Labeled()} })
}
