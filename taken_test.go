package espalier_test

import (
	"context"
	"testing"
	"time"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Somebody else has an object of the desired name. The node is blocked, and the nodes after it run.
func TestBlockedByAnother(t *testing.T) {
	foreign := configMap.With(exists, func(c *corev1.ConfigMap) {
		c.OwnerReferences = []metav1.OwnerReference{controlledByAnother}
	})
	const text = `configmaps "gadget" already exists and is controlled by ReplicaSet web`
	row := func(w rtesting.Fixture[*resources.Widget], creates object, expect ...func(*resources.Widget)) rtesting.SubReconcilerTestCase[*resources.Widget] {
		return rtesting.SubReconcilerTestCase[*resources.Widget]{
			Resource: w.Object(), GivenObjects: []object{foreign, kept("next").With(exists)}, APIGivenObjects: []object{foreign},
			ExpectCreates:  []object{creates},
			ExpectTracks:   []rtesting.TrackRequest{rtesting.NewTrackRequest(configMap, widget, scheme)},
			ExpectEvents:   event(corev1.EventTypeWarning, "CreationFailed", `Failed to create ConfigMap "gadget": `+text),
			ExpectResource: w.With(expect...).Object(),
		}
	}
	next, nextReady := `1/next: ConfigMap "next"`, is("next", metav1.ConditionTrue, "Ready", "")
	run(t, tests{
		"without a condition": row(widget, labeledMap(), nextReady,
			observed(`0/ConfigMap: ConfigMap "gadget", absent, Blocked AlreadyExists: `+text, next)),
		"nothing of it has to be suspended": row(widget.With(with("suspend")), labeledMap(), nextReady,
			observed(`0/ConfigMap: ConfigMap "gadget", absent`, next)),
	}, func() node {
		return supervised{espalier.Steps[*resources.Widget](
			espalier.Owns("ConfigMap", desiredConfigMap).Labeled(), keeps("next"))}
	})
	run(t, tests{"with a condition": row(widget, labeledMap(),
		is("Ready", metav1.ConditionFalse, "AlreadyExists", text), nextReady,
		observed(`0/ConfigMap: ConfigMap "gadget", absent, Blocked AlreadyExists: `+text, next)),
	}, func() node {
		return supervised{espalier.Steps[*resources.Widget](owns().Labeled(), keeps("next"))}
	})
	run(t, tests{"of a set": row(widget, labeledMap(), nextReady,
		observed(`0/ConfigMap/gadget: ConfigMap "gadget", absent, Blocked AlreadyExists: `+text, next)),
	}, func() node {
		return supervised{espalier.Steps[*resources.Widget](
			espalier.OwnsEach("ConfigMap", func(ctx context.Context, w *resources.Widget) ([]*corev1.ConfigMap, error) {
				one, err := desiredConfigMap(ctx, w)
				return []*corev1.ConfigMap{one}, err
			}).Labeled(), keeps("next"))}
	})
}

// What runs is not deleted for a name that somebody else has.
func TestBlockedByAnotherUnderTheNewName(t *testing.T) {
	foreign := configMap.With(exists, func(c *corev1.ConfigMap) {
		c.OwnerReferences = []metav1.OwnerReference{controlledByAnother}
	})
	old := configMap.With(exists, func(c *corev1.ConfigMap) {
		c.Name, c.UID, c.Labels = "old", "old-uid", map[string]string{reconcilers.NodeLabel: "ConfigMap"}
	})
	const text = `configmaps "gadget" already exists and is controlled by ReplicaSet web`
	run(t, tests{"there is one of the old name": {
		Resource: widget.Object(), GivenObjects: []object{foreign, old},
		ExpectCreates: []object{configMap.With(func(c *corev1.ConfigMap) {
			c.Labels = map[string]string{reconcilers.NodeLabel: "ConfigMap"}
		})},
		ExpectEvents: event(corev1.EventTypeWarning, "CreationFailed", `Failed to create ConfigMap "gadget": `+text),
		ExpectTracks: []rtesting.TrackRequest{rtesting.NewTrackRequest(configMap, widget, scheme)},
		ExpectResource: widget.With(is("Ready", metav1.ConditionFalse, "AlreadyExists", text),
			observed(`0/ConfigMap: ConfigMap "gadget", absent, Blocked AlreadyExists: `+text)).Object(),
	}}, func() node {
		return supervised{espalier.Steps[*resources.Widget](owns().Labeled())}
	})
}

// An object in the way of one without an owner is not tracked, so the node asks again.
func TestATakenNameWithoutAnOwner(t *testing.T) {
	foreign := configMap.With(exists, func(c *corev1.ConfigMap) {
		c.OwnerReferences = []metav1.OwnerReference{controlledByAnother}
	})
	const text = `configmaps "gadget" already exists and is controlled by ReplicaSet web`
	rows := func(delay time.Duration) tests {
		return tests{"it is without an owner": {
			Resource: widget.Object(), GivenObjects: []object{foreign}, APIGivenObjects: []object{foreign},
			ExpectCreates: []object{configMap.With(func(c *corev1.ConfigMap) {
				c.OwnerReferences = nil
				c.Labels = map[string]string{ownerLabel: widgetDigest, reconcilers.NodeLabel: "ConfigMap"}
			})},
			ExpectEvents:   event(corev1.EventTypeWarning, "CreationFailed", `Failed to create ConfigMap "gadget": `+text),
			ExpectResource: widget.With(is("Ready", metav1.ConditionFalse, "AlreadyExists", text)).Object(),
			ExpectTracks: []rtesting.TrackRequest{
				rtesting.CreateTrackRequest("", "ConfigMap", "default", "gadget").By("default", "gadget"),
			},
			ExpectedResult: reconcilers.Result{RequeueAfter: delay},
		}}
	}
	runBoth(t, rows(0), (*child).Unowned, (*children).Unowned)
	runBoth(t, rows(time.Hour), func(c *child) *child { return c.Unowned().RetryAfter(time.Hour) },
		func(c *children) *children { return c.Unowned().RetryAfter(time.Hour) })
}

func labeledMap() object {
	return configMap.With(func(c *corev1.ConfigMap) { c.Labels = map[string]string{reconcilers.NodeLabel: "ConfigMap"} })
}

// An object that the author returns for several resources is made for none of them, since it has one controller.
func TestSharedDesiredObjects(t *testing.T) {
	shared := func(context.Context, *resources.Widget) (*corev1.ConfigMap, error) {
		object := configMap.Object()
		object.OwnerReferences = []metav1.OwnerReference{controlledByAnother}
		return object, nil
	}
	for word, n := range map[string]node{
		"Owns":     espalier.Owns("ConfigMap", shared),
		"OwnsEach": espalier.OwnsEach("ConfigMap", each(shared)),
	} {
		want := word + ` "ConfigMap" must return a new object for each resource: ReplicaSet "web" is the controller of ` +
			`default/gadget, which it returned`
		run(t, tests{word: {
			Resource: widget.Object(), ShouldErr: true,
			Verify: func(t *testing.T, _ reconcilers.Result, err error) {
				if err == nil || err.Error() != want {
					t.Errorf("the error is %v, want %s", err, want)
				}
			},
		}}, func() node { return n })
	}
}
