package espalier_test

import (
	"slices"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An object of a desired name is deleted if the resource has made it, whoever wrote the operator then. Nothing else is.
func TestAbsentByName(t *testing.T) {
	labels := func(labels map[string]string) func(*corev1.ConfigMap) {
		return func(c *corev1.ConfigMap) { c.Labels = labels }
	}
	uncontrolled := func(c *corev1.ConfigMap) { c.OwnerReferences = nil }
	controlled := func(c *corev1.ConfigMap) { c.OwnerReferences = []metav1.OwnerReference{controlledByAnother} }
	notOurs := func(claim string) *resources.Widget {
		return widget.With(is("Ready", metav1.ConditionFalse, "NotOurs",
			"ConfigMap default/gadget is to be absent, and stays: "+claim)).Object()
	}
	labelOf := func(name string) map[string]string { return map[string]string{reconcilers.NodeLabel: name} }
	tracks := []rtesting.TrackRequest{rtesting.NewTrackRequest(configMap, widget, scheme)}
	given := func(edits ...func(*corev1.ConfigMap)) []object {
		return []object{configMap.With(append(edits, exists[*corev1.ConfigMap])...)}
	}
	stays := func(given []object, claim string) rtesting.SubReconcilerTestCase[*resources.Widget] {
		return rtesting.SubReconcilerTestCase[*resources.Widget]{
			Resource: widget.Object(), GivenObjects: given, ExpectTracks: tracks, ExpectResource: notOurs(claim),
		}
	}
	rows := func(whenDeleted ...rtesting.TrackRequest) tests {
		goes := func(given []object) rtesting.SubReconcilerTestCase[*resources.Widget] {
			return rtesting.SubReconcilerTestCase[*resources.Widget]{
				Resource: widget.Object(), GivenObjects: given, ExpectTracks: slices.Concat(tracks, whenDeleted),
				ExpectDeletes: deletes, ExpectEvents: deleted, ExpectResource: widget.With(isNone).Object(),
			}
		}
		return tests{
			"there is none": {
				Resource: widget.Object(), ExpectTracks: tracks, ExpectResource: widget.With(isNone).Object(),
			},
			"an operator without labels made it": goes(given()),
			"the node made it":                   goes(given(labels(labelOf("ConfigMap")))),
			"the node made it without an owner": goes(given(uncontrolled, labels(map[string]string{
				ownerLabel: widgetDigest, reconcilers.NodeLabel: "ConfigMap",
			}))),
			"it was made without an owner, and has lost its label": goes(given(uncontrolled, labels(map[string]string{
				ownerLabel: widgetDigest,
			}))),
			"another node made it":   stays(given(labels(labelOf("Other"))), `it is the child of the node "Other"`),
			"another controls it":    stays(given(controlled), "it is controlled by ReplicaSet web"),
			"nobody knows who it is": stays(given(uncontrolled), "nothing shows that the resource made it"),
			"another controls what the resource made": stays(
				given(controlled, labels(map[string]string{ownerLabel: widgetDigest})),
				"it is controlled by ReplicaSet web"),
			"no name is known": {
				Resource: widget.With(with("none")).Object(), GivenObjects: given(uncontrolled),
				ExpectResource: widget.With(with("none"), isNone).Object(),
			},
			"the name is not known yet": {
				Resource: widget.With(with("not ready")).Object(), GivenObjects: given(uncontrolled),
				ExpectResource: widget.With(with("not ready"),
					is("Ready", metav1.ConditionFalse, "NoColor", "there is no color in stock")).Object(),
				ExpectedResult: reconcilers.Result{RequeueAfter: time.Minute},
			},
			"the name cannot be told": {
				Resource: widget.With(with("error")).Object(), GivenObjects: given(uncontrolled), ExpectedErr: errBoom,
			},
			"it cannot be read": {
				Resource: widget.Object(), GivenObjects: given(), ExpectTracks: tracks, ShouldErr: true,
				WithReactors: []rtesting.ReactionFunc{rtesting.InduceFailure("get", "ConfigMap")},
			},
			"the resource is terminating": {Resource: terminating.Object(), GivenObjects: given(uncontrolled)},
		}
	}
	stuck := func(c *corev1.ConfigMap) {
		c.DeletionTimestamp, c.Finalizers = &created, []string{"test.espalier.dev/other"}
	}

	runBoth(t, rows(), func(c *child) *child { return c.Labeled().Absent() },
		func(c *children) *children { return c.Labeled().Absent() })
	runBoth(t, rows(tracks...), func(c *child) *child { return c.Unowned().Absent() },
		func(c *children) *children { return c.Unowned().Absent() })
	run(t, tests{"a finalizer keeps it": {
		Resource: widget.Object(), GivenObjects: given(stuck), ExpectTracks: tracks,
		ExpectResource: widget.With(is("Ready", metav1.ConditionFalse, "Terminating",
			"ConfigMap default/gadget: is being deleted, and waits for the finalizer test.espalier.dev/other")).Object(),
	}}, func() node { return owns().Labeled().Absent() })
}

// A feature that is off waits until what an operator without labels made is gone, and not for what is not ours.
func TestAbsentByNameIsWithdrawn(t *testing.T) {
	withdraw := with("withdraw")
	tracks := []rtesting.TrackRequest{rtesting.NewTrackRequest(configMap, widget, scheme)}
	run(t, tests{
		"it is deleted": {
			Resource: widget.With(withdraw).Object(), GivenObjects: []object{configMap.With(exists)}, ExpectTracks: tracks,
			ExpectDeletes: deletes, ExpectEvents: deleted,
			ExpectResource: widget.With(withdraw, isNone, observed(`ConfigMap: ConfigMap "gadget", terminating`)).Object(),
		},
		"it is not ours": {
			Resource: widget.With(withdraw).Object(), ExpectTracks: tracks,
			GivenObjects:   []object{configMap.With(exists, func(c *corev1.ConfigMap) { c.OwnerReferences = nil })},
			ExpectResource: widget.With(withdraw, isNone).Object(),
		},
	}, func() node { return supervised{owns().Labeled().Absent()} })
}
