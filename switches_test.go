package espalier_test

import (
	"context"
	"testing"
	"time"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/feature/gate"
	"github.com/espalier-dev/espalier/health"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

type failing struct{ err error }

func (g failing) Enabled() (bool, error) { return false, g.err }

// gateOf returns what the widget asks for; nil if it asks for nothing.
func gateOf(_ context.Context, w *resources.Widget) gate.Gate {
	switch {
	case asks(w, "nil"):
		return (*failing)(nil)
	case asks(w, "off"):
		return failing{}
	case asks(w, "unknown"):
		return failing{err: errBoom}
	case asks(w, "latest"):
		return gate.Version("latest", ">= 1")
	}
	return nil
}

func guard(_ context.Context, w *resources.Widget) (string, error) {
	switch {
	case asks(w, "closed"), asks(w, "off"):
		return "the shop is closed", nil
	case asks(w, "guard fails"):
		return "", errBoom
	}
	return "", nil
}

func TestGate(t *testing.T) {
	given := []object{configMap.With(exists)}
	runBoth(t, tests{
		"it is on": {
			Resource: widget.Object(), GivenObjects: given, ExpectResource: widget.With(isReady).Object(),
		},
		"it is a nil pointer, so it is on": {
			Resource: widget.With(with("nil")).Object(), GivenObjects: given,
			ExpectResource: widget.With(with("nil"), isReady).Object(),
		},
		// What has to go waits for nothing.
		"it is off": {
			Resource: widget.With(with("off")).Object(), GivenObjects: given,
			ExpectDeletes: deletes, ExpectEvents: deleted,
			ExpectResource: widget.With(with("off"), isNone).Object(),
		},
		"it is not known": {
			Resource: widget.With(with("unknown")).Object(), GivenObjects: given, ExpectedErr: errBoom,
		},
		"only another resource mends it": {
			Resource: widget.With(with("latest")).Object(), GivenObjects: given, ExpectedErr: reconcilers.ErrDurable,
		},
	}, func(c *child) *child { return c.Gate(gateOf).Guard(guard) },
		func(c *children) *children { return c.Gate(gateOf).Guard(guard) })
}

// An object that exists stays as it is while the node waits, and one that does not is not made.
func TestGuard(t *testing.T) {
	closed := is("Ready", metav1.ConditionFalse, "Blocked", "the shop is closed")
	red := configMap.With(exists, func(c *corev1.ConfigMap) { c.Data["color"] = "red" })
	late := reconcilers.Result{RequeueAfter: time.Hour}
	runBoth(t, tests{
		"it is open": {
			Resource: widget.Object(), ExpectCreates: []object{configMap}, ExpectEvents: makes,
			ExpectResource: widget.With(isReady).Object(),
		},
		"it is closed, and there is no object": {
			Resource: widget.With(with("closed")).Object(), ExpectResource: widget.With(with("closed"), closed).Object(),
			ExpectedResult: late,
		},
		"it is closed, and there is an object": {
			Resource: widget.With(with("closed")).Object(), GivenObjects: []object{red},
			ExpectResource: widget.With(with("closed"), closed).Object(), ExpectedResult: late,
		},
		"it fails": {
			Resource: widget.With(with("guard fails")).Object(), GivenObjects: []object{red}, ExpectedErr: errBoom,
			ExpectedResult: late,
		},
		"the resource is terminating": {
			Resource: terminating.With(with("closed")).Object(), GivenObjects: []object{configMap.With(exists)},
			ExpectDeletes: deletes, ExpectEvents: deleted,
		},
	}, func(c *child) *child { return c.Guard(guard).RetryAfter(time.Hour) },
		func(c *children) *children { return c.Guard(guard).RetryAfter(time.Hour) })
}

func TestReadOnly(t *testing.T) {
	// Somebody else has made it, in another way.
	found := configMap.With(exists, func(c *corev1.ConfigMap) { c.Data, c.OwnerReferences = nil, nil })
	tracks := []rtesting.TrackRequest{rtesting.NewTrackRequest(found, widget, scheme)}
	runBoth(t, tests{
		"it is there, and never written": {
			Resource: widget.Object(), GivenObjects: []object{found}, ExpectTracks: tracks,
			ExpectResource: widget.With(isReady).Object(),
		},
		"it is missing": {
			Resource: widget.Object(), ExpectTracks: tracks, ExpectResource: widget.With(
				is("Ready", metav1.ConditionFalse, "NotFound", "waiting for ConfigMap default/gadget")).Object(),
		},
		"it cannot be read": {
			Resource: widget.Object(), ExpectTracks: tracks, ShouldErr: true,
			WithReactors: []rtesting.ReactionFunc{rtesting.InduceFailure("get", "ConfigMap")},
		},
		"nothing is to be read": {
			Resource: widget.With(with("none")).Object(), ExpectResource: widget.With(with("none"), isNone).Object(),
		},
		"the name is not known": {
			Resource: widget.With(with("not ready")).Object(), ExpectedResult: reconcilers.Result{RequeueAfter: time.Minute},
			ExpectResource: widget.With(with("not ready"),
				is("Ready", metav1.ConditionFalse, "NoColor", "there is no color in stock")).Object(),
		},
		"the gate is off, so it is not read": {
			Resource: widget.With(with("off")).Object(), GivenObjects: []object{found},
			ExpectResource: widget.With(with("off"), isNone).Object(),
		},
		"the resource is terminating": {Resource: terminating.Object(), GivenObjects: []object{found}},
	}, func(c *child) *child { return c.ReadOnly().Gate(gateOf) },
		func(c *children) *children { return c.ReadOnly().Gate(gateOf) })
	runBoth(t, tests{
		"it may be missing": {
			Resource: widget.Object(), ExpectTracks: tracks, ExpectResource: widget.With(
				is("Ready", metav1.ConditionTrue, "NotFound", "")).Object(),
		},
	}, func(c *child) *child { return c.ReadOnly().Optional() },
		func(c *children) *children { return c.ReadOnly().Optional() })

	// Each of several objects is tracked and reported, whatever the others are like.
	both := []rtesting.TrackRequest{
		rtesting.NewTrackRequest(part("two"), widget, scheme), rtesting.NewTrackRequest(part("one"), widget, scheme),
	}
	run(t, tests{
		"one of several is missing": {
			Resource: widget.Object(), GivenObjects: []object{startingPart("one")}, ExpectTracks: both,
			ExpectResource: widget.With(is("PartsReady", "False", "NotFound", "waiting for Deployment default/two"),
				observed(`Parts: Deployment "one"`, `Parts: Deployment "two", absent, `+
					"Blocked NotFound: waiting for Deployment default/two")).Object(),
		},
		"one of several is not ready": {
			Resource: widget.Object(), GivenObjects: []object{startingPart("one"), readyPart("two")}, ExpectTracks: both,
			ExpectResource: widget.With(is("PartsReady", "False", "InProgress",
				"1 of 2 ready, Deployment default/one: 1 of 3 replicas available"),
				observed(`Parts: Deployment "two"`, `Parts: Deployment "one"`)).Object(),
		},
		"what is only read is not suspended": {
			Resource:     widget.With(with("suspend")).Object(),
			GivenObjects: []object{readyPart("one"), readyPart("two")}, ExpectTracks: both,
			ExpectResource: widget.With(with("suspend"), is("PartsReady", "True", "Ready", "")).Object(),
		},
	}, func() node {
		return supervised{espalier.OwnsEach("Parts", desiredParts).ReadOnly().Reports("PartsReady")}
	})
}

func TestAbsent(t *testing.T) {
	labeled := configMap.With(func(c *corev1.ConfigMap) {
		c.Name, c.Labels = "labeled", map[string]string{reconcilers.NodeLabel: "ConfigMap"}
	}, exists)
	tracks := []rtesting.TrackRequest{rtesting.NewTrackRequest(configMap, widget, scheme)}
	runBoth(t, tests{
		"it is deleted if it is ours": {
			Resource: widget.Object(), GivenObjects: []object{labeled}, ExpectTracks: tracks,
			ExpectDeletes:  []rtesting.DeleteRef{rtesting.NewDeleteRefFromObject(labeled, scheme)},
			ExpectEvents:   event(corev1.EventTypeNormal, "Deleted", `Deleted ConfigMap "labeled"`),
			ExpectResource: widget.With(isNone).Object(),
		},
		"one of others is not": {
			Resource: widget.Object(), ExpectTracks: tracks, ExpectResource: widget.With(isNone).Object(),
			GivenObjects: []object{
				labeled.With(func(c *corev1.ConfigMap) { c.OwnerReferences = nil }),
				configMap.With(func(c *corev1.ConfigMap) { c.Name = "other" }, exists),
			},
		},
	}, func(c *child) *child { return c.Absent().Labeled() },
		func(c *children) *children { return c.Absent().Labeled() })
	run(t, tests{"there is no function any more": {
		Resource: widget.Object(), GivenObjects: []object{configMap.With(exists)},
		ExpectDeletes: deletes, ExpectEvents: deleted,
	}}, func() node { return espalier.Owns[*resources.Widget, *corev1.ConfigMap]("ConfigMap", nil).Absent() })
}

// copied copies the color of the live object into the status.
func copied(_ context.Context, w *resources.Widget, live *corev1.ConfigMap) error {
	switch {
	case asks(w, "copy fails"):
		return errBoom
	case live == nil:
		w.Status.AddField("color", "there is none")
	default:
		w.Status.AddField("color", live.Data["color"])
	}
	return nil
}

func TestObserves(t *testing.T) {
	given := []object{configMap.With(exists)}
	shows := func(color string) func(*resources.Widget) {
		return func(w *resources.Widget) { w.Status.AddField("color", color) }
	}
	runBoth(t, tests{
		"the live object": {
			Resource: widget.Object(), GivenObjects: given, ExpectResource: widget.With(isReady, shows("blue")).Object(),
		},
		"there is none": {
			Resource:       widget.With(with("none")).Object(),
			ExpectResource: widget.With(with("none"), isNone, shows("there is none")).Object(),
		},
		"the node waits": {
			Resource:     widget.With(with("closed")).Object(),
			GivenObjects: []object{configMap.With(exists, func(c *corev1.ConfigMap) { c.Data["color"] = "red" })},
			ExpectResource: widget.With(with("closed"), shows("red"),
				is("Ready", metav1.ConditionFalse, "Blocked", "the shop is closed")).Object(),
		},
		"it is not known whether there is one": {
			Resource: widget.With(with("error")).Object(), GivenObjects: given, ExpectedErr: errBoom,
		},
		"it fails": {
			Resource: widget.With(with("copy fails")).Object(), GivenObjects: given, ExpectedErr: errBoom,
		},
		"the resource is terminating": {
			Resource: terminating.Object(), GivenObjects: given, ExpectDeletes: deletes, ExpectEvents: deleted,
		},
	}, func(c *child) *child { return c.Guard(guard).Observes(copied) }, func(c *children) *children {
		return c.Guard(guard).Observes(func(ctx context.Context, w *resources.Widget, live []*corev1.ConfigMap) error {
			if len(live) == 0 {
				return copied(ctx, w, nil)
			}
			return copied(ctx, w, live[0])
		})
	})
}

// paint is a rule that wants a config map to be green.
func paint(live *corev1.ConfigMap) apis.Health {
	if live.Data["color"] == "green" {
		return apis.Health{State: apis.StateHealthy}
	}
	return apis.Health{State: apis.StateDegraded, Reason: "Pale", Message: live.Data["color"] + " is not green"}
}

func TestHealth(t *testing.T) {
	given := []object{configMap.With(exists), kept("next").With(exists)}
	labelled := configMap.With(exists, func(c *corev1.ConfigMap) {
		c.Labels = map[string]string{reconcilers.NodeLabel: "ConfigMap"}
	})
	const next = `1/next: ConfigMap "next"`
	run(t, tests{
		"the rule counts for the condition, the supervisor and the nodes after it": {
			Resource: widget.Object(), GivenObjects: []object{labelled, given[1]},
			ExpectedResult: reconcilers.Result{RequeueAfter: time.Hour},
			ExpectResource: widget.With(
				is("Ready", "False", "Pale", "ConfigMap default/gadget: blue is not green"), waits("next", `waiting for "ConfigMap"`),
				observed(`0/ConfigMap: ConfigMap "gadget", Degraded Pale: blue is not green`,
					next+`, Blocked: waiting for "ConfigMap"`)).Object(),
		},
	}, func() node {
		return supervised{espalier.Steps[*resources.Widget](
			owns().Labeled().Health(paint).RetryAfter(time.Hour), keeps("next").After("ConfigMap"))}
	})
	run(t, tests{"the rule counts for each object": {
		Resource: widget.Object(), GivenObjects: given[:1],
		ExpectResource: widget.With(
			is("Ready", "False", "Pale", `0 of 1 ready, ConfigMap default/gadget: blue is not green`),
			observed(`ConfigMap/gadget: ConfigMap "gadget", Degraded Pale: blue is not green`)).Object(),
	}}, func() node { return supervised{ownsEach().Health(paint)} })
	for reason, want := range map[string]string{"": "Failed", "not one word": "Failed", "Pale": "Pale"} {
		run(t, tests{"a reason that is none is not that of the condition": {
			Resource: widget.Object(), GivenObjects: given[:1],
			ExpectResource: widget.With(is("Ready", "False", want, "ConfigMap default/gadget: it is old")).Object(),
		}}, func() node {
			return owns().Health(func(*corev1.ConfigMap) apis.Health {
				return apis.Health{State: apis.StateFailing, Reason: reason, Message: "it is old"}
			})
		})
	}
	run(t, tests{"what is unchecked is done when it exists": {
		Resource: widget.Object(), GivenObjects: []object{startingPart("gadget"), kept("next").With(exists)},
		ExpectResource: widget.With(is("PartReady", "False", "InProgress", "Deployment default/gadget: 1 of 3 replicas available"),
			is("next", "True", "Ready", ""),
			observed(`0/Part: Deployment "gadget", unchecked`, next)).Object(),
	}}, func() node {
		return supervised{espalier.Steps[*resources.Widget](
			espalier.Owns("Part", desiredDeployment).Reports("PartReady").Unchecked().RetryAfter(time.Hour),
			keeps("next").After("Part"))}
	})
}

func TestSuspension(t *testing.T) {
	grey := health.Suspension{
		Suspend: func(desired *unstructured.Unstructured) error {
			return unstructured.SetNestedField(desired.Object, "grey", "data", "color")
		},
		Suspended: func(*unstructured.Unstructured) (bool, string) { return false, "the paint is wet" },
	}
	painted := configMap.With(exists, func(c *corev1.ConfigMap) { c.Data["color"] = "grey" })
	for _, path := range []string{"ConfigMap", "ConfigMap/gadget"} {
		run(t, tests{"by a rule of the node": {
			Resource: widget.With(with("suspend")).Object(), GivenObjects: []object{painted},
			ExpectResource: widget.With(with("suspend"), isReady,
				observed(path+`: ConfigMap "gadget", Suspending: the paint is wet`)).Object(),
		}}, func() node {
			if path == "ConfigMap" {
				return supervised{owns().Suspension(grey)}
			}
			return supervised{ownsEach().Suspension(grey)}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	later := reconcilers.Result{RequeueAfter: time.Hour}
	fails := []rtesting.ReactionFunc{rtesting.InduceFailure("create", "ConfigMap")}
	runBoth(t, tests{
		"all is well": {
			Resource: widget.Object(), GivenObjects: []object{configMap.With(exists)},
			ExpectResource: widget.With(isReady).Object(),
		},
		"an error is not returned": {
			Resource: widget.Object(), WithReactors: fails, ExpectCreates: []object{configMap},
			ExpectEvents: creationFailed("ConfigMap", "gadget"), ExpectedResult: later,
		},
	}, func(c *child) *child { return c.Auxiliary().RetryAfter(time.Hour) },
		func(c *children) *children { return c.Auxiliary().RetryAfter(time.Hour) })
	run(t, tests{"an object is not ready": {
		Resource: widget.Object(), GivenObjects: []object{startingPart("gadget")}, ExpectedResult: later,
	}}, func() node { return espalier.Owns("Part", desiredDeployment).RetryAfter(time.Hour) })
}
