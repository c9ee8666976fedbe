package dependents_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/dependents"
	"github.com/espalier-dev/espalier/feature/gate"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type nodes = []dependents.Node[*resources.Widget]

var deleted = []rtesting.DeleteRef{rtesting.NewDeleteRefFromObject(config, scheme)}

func TestManaged(t *testing.T) {
	run(t, tests{
		"it is created": {
			Resource:       widget.Object(),
			ExpectCreates:  []object{config},
			ExpectEvents:   event("Created", `Created ConfigMap "gadget-config"`),
			ExpectResource: widget.With(isReady).Object(),
		},
		"nothing to do": {
			Resource:       widget.With(isReady).Object(),
			GivenObjects:   []object{config.With(exists)},
			ExpectResource: widget.With(isReady).Object(),
		},
		"it is not desired any more": {
			Resource:       widget.With(with("none")).Object(),
			GivenObjects:   []object{config.With(exists)},
			ExpectDeletes:  deleted,
			ExpectEvents:   event("Deleted", `Deleted ConfigMap "gadget-config"`),
			ExpectResource: widget.With(with("none"), isReady).Object(),
		},
		"an error leaves it as it is": {
			Resource:       widget.With(with("error")).Object(),
			GivenObjects:   []object{config.With(exists)},
			ExpectedErr:    errBoom,
			ExpectResource: widget.With(with("error"), is(metav1.ConditionFalse, "Error", "config: boom")).Object(),
			Replays:        rtesting.NoReplays("it always fails"),
		},
		"the resource is terminating": {
			Resource:      terminating.Object(),
			GivenObjects:  []object{config.With(exists)},
			ExpectDeletes: deleted,
			ExpectEvents:  event("Deleted", `Deleted ConfigMap "gadget-config"`),
		},
	}, func() nodes { return one(configOf("blue")) })
}

type failing struct{ err error }

func (g failing) Enabled() (bool, error) { return false, g.err }

func TestGate(t *testing.T) {
	run(t, tests{
		"it is on": {
			Resource:       widget.Object(),
			GivenObjects:   []object{config.With(exists)},
			ExpectResource: widget.With(isReady).Object(),
		},
		"it is a nil pointer, so it is on": {
			Resource:       widget.With(with("nil")).Object(),
			GivenObjects:   []object{config.With(exists)},
			ExpectResource: widget.With(with("nil"), isReady).Object(),
		},
		// What has to go does not wait for anything.
		"it is off": {
			Resource:       widget.With(with("off")).Object(),
			GivenObjects:   []object{config.With(exists)},
			ExpectDeletes:  deleted,
			ExpectEvents:   event("Deleted", `Deleted ConfigMap "gadget-config"`),
			ExpectResource: widget.With(with("off"), isReady).Object(),
		},
		"it is not known": {
			Resource:       widget.With(with("unknown")).Object(),
			GivenObjects:   []object{config.With(exists)},
			ExpectedErr:    errBoom,
			ExpectResource: widget.With(with("unknown"), is(metav1.ConditionFalse, "Error", "config: boom")).Object(),
			Replays:        rtesting.NoReplays("it always fails"),
		},
	}, func() nodes {
		return one(configOf("blue").Gate(func(_ context.Context, w *resources.Widget) gate.Gate {
			switch {
			case asks(w, "nil"):
				return (*failing)(nil)
			case asks(w, "off"):
				return failing{}
			case asks(w, "unknown"):
				return failing{err: errBoom}
			}
			return nil
		}).Guard(func(_ context.Context, w *resources.Widget) (string, error) {
			if asks(w, "off") {
				return "never", nil
			}
			return "", nil
		}))
	})
}

func TestReadOnly(t *testing.T) {
	tracks := []rtesting.TrackRequest{rtesting.NewTrackRequest(settings, widget, scheme)}
	run(t, tests{
		"it is there, and never written": {
			Resource:       widget.Object(),
			GivenObjects:   []object{settings.With(func(c *corev1.ConfigMap) { c.Data = nil })},
			ExpectTracks:   tracks,
			ExpectResource: widget.With(isReady).Object(),
		},
		"it is missing": {
			Resource:     widget.Object(),
			ExpectTracks: tracks,
			ExpectResource: widget.With(
				is(metav1.ConditionFalse, "Blocked", "settings: waiting for ConfigMap default/settings")).Object(),
		},
		"the resource is terminating": {
			Resource:     terminating.Object(),
			GivenObjects: []object{settings},
		},
	}, func() nodes { return one(readSettings().BlockOnAbsence()) })
	run(t, tests{
		"it may be missing": {
			Resource:       widget.Object(),
			ExpectTracks:   tracks,
			ExpectResource: widget.With(isReady).Object(),
		},
	}, func() nodes { return one(readSettings().IgnoreAbsent()) })
}

func TestAbsent(t *testing.T) {
	run(t, tests{
		"it is deleted if it is ours": {
			Resource:       widget.Object(),
			GivenObjects:   []object{config.With(exists)},
			ExpectDeletes:  deleted,
			ExpectEvents:   event("Deleted", `Deleted ConfigMap "gadget-config"`),
			ExpectResource: widget.With(isReady).Object(),
		},
		"one of others is not": {
			Resource: widget.Object(),
			GivenObjects: []object{
				config.With(exists, func(c *corev1.ConfigMap) { c.OwnerReferences = nil }),
				config.With(func(c *corev1.ConfigMap) { c.Name = "x" }, exists,
					func(c *corev1.ConfigMap) { c.Labels = nil }),
			},
			ExpectResource: widget.With(isReady).Object(),
		},
	}, func() nodes { return one(configOf("blue").Absent()) })
}

func TestOrphanWhen(t *testing.T) {
	run(t, tests{
		"it is released": {
			Resource:     widget.With(with("orphan")).Object(),
			GivenObjects: []object{config.With(exists)},
			ExpectPatches: []rtesting.PatchRef{{
				Kind: "ConfigMap", Namespace: "default", Name: "gadget-config",
				PatchType: "application/merge-patch+json",
				Patch:     []byte(`{"metadata":{"labels":null,"ownerReferences":null,"resourceVersion":"5"}}`),
			}},
			ExpectEvents:   event("Orphaned", `Orphaned ConfigMap "gadget-config"`),
			ExpectResource: widget.With(with("orphan"), isReady).Object(),
		},
		"it was released": {
			Resource: widget.With(with("orphan")).Object(),
			GivenObjects: []object{config.With(exists, func(c *corev1.ConfigMap) {
				c.OwnerReferences, c.Labels = nil, nil
			})},
			ExpectResource: widget.With(with("orphan"), isReady).Object(),
		},
		"there is nothing to release": {
			Resource:       widget.With(with("orphan")).Object(),
			ExpectResource: widget.With(with("orphan"), isReady).Object(),
		},
		"it is not to be released": {
			Resource:       widget.Object(),
			ExpectCreates:  []object{config},
			ExpectEvents:   event("Created", `Created ConfigMap "gadget-config"`),
			ExpectResource: widget.With(isReady).Object(),
		},
	}, func() nodes {
		return one(configOf("blue").OrphanWhen(func(_ context.Context, w *resources.Widget) (bool, error) {
			return asks(w, "orphan"), nil
		}))
	})
}

func TestUnowned(t *testing.T) {
	tracks := []rtesting.TrackRequest{rtesting.NewTrackRequest(config, widget, scheme)}
	run(t, tests{
		"it is created": {
			Resource:       widget.Object(),
			ExpectCreates:  []object{unownedConfig},
			ExpectTracks:   tracks,
			ExpectEvents:   event("Created", `Created ConfigMap "gadget-config"`),
			ExpectResource: widget.With(isReady).Object(),
		},
		"nothing to do": {
			Resource:       widget.Object(),
			GivenObjects:   []object{unownedConfig.With(exists)},
			ExpectTracks:   tracks,
			ExpectResource: widget.With(isReady).Object(),
		},
		"it is not desired any more": {
			Resource:       widget.With(with("none")).Object(),
			GivenObjects:   []object{unownedConfig.With(exists)},
			ExpectDeletes:  deleted,
			ExpectTracks:   tracks,
			ExpectEvents:   event("Deleted", `Deleted ConfigMap "gadget-config"`),
			ExpectResource: widget.With(with("none"), isReady).Object(),
		},
		"it is that of an earlier resource of this name": {
			Resource: widget.With(with("none")).Object(),
			GivenObjects: []object{unownedConfig.With(exists, func(c *corev1.ConfigMap) {
				c.Labels[dependents.OwnerLabel] = "other"
			})},
			ExpectResource: widget.With(with("none"), isReady).Object(),
		},
		"it survives the resource": {
			Resource:     terminating.Object(),
			GivenObjects: []object{unownedConfig.With(exists)},
		},
	}, func() nodes { return one(configOf("blue").Unowned()) })
}

func TestCreateOnly(t *testing.T) {
	run(t, tests{
		"it is created": {
			Resource:       widget.Object(),
			ExpectCreates:  []object{config.With(func(c *corev1.ConfigMap) { c.Data["color"] = "red" })},
			ExpectEvents:   event("Created", `Created ConfigMap "gadget-config"`),
			ExpectResource: widget.With(isReady).Object(),
		},
		"it is not updated": {
			Resource:       widget.Object(),
			GivenObjects:   []object{config.With(exists)},
			ExpectResource: widget.With(isReady).Object(),
		},
		"it is deleted": {
			Resource:       widget.With(with("none")).Object(),
			GivenObjects:   []object{config.With(exists)},
			ExpectDeletes:  deleted,
			ExpectEvents:   event("Deleted", `Deleted ConfigMap "gadget-config"`),
			ExpectResource: widget.With(with("none"), isReady).Object(),
		},
	}, func() nodes { return one(configOf("red").CreateOnly()) })
}

func TestAuxiliary(t *testing.T) {
	run(t, tests{
		"its error is not returned": {
			Resource:       widget.With(with("error")).Object(),
			ExpectResource: widget.With(with("error"), isReady).Object(),
			ExpectedResult: reconcilers.Result{RequeueAfter: 10e9},
		},
	}, func() nodes { return one(configOf("blue").Auxiliary()) })

	durable := func(context.Context, *resources.Widget) (*corev1.ConfigMap, error) {
		return nil, fmt.Errorf("no color has this name: %w", reconcilers.ErrDurable)
	}
	run(t, tests{
		"a durable error is not tried again": {
			Resource:       widget.Object(),
			ExpectResource: widget.With(isReady).Object(),
		},
	}, func() nodes { return one(dependents.Of("config", durable).Auxiliary()) })
}

func TestNotReadyBlocks(t *testing.T) {
	notReady := func(context.Context, *resources.Widget) (*corev1.ConfigMap, error) {
		return nil, espalier.NotReady("NoColor", "there is no color").RetryAfter(60e9)
	}
	run(t, tests{
		"its object stays as it is": {
			Resource:       widget.Object(),
			GivenObjects:   []object{config.With(exists)},
			ExpectResource: widget.With(is(metav1.ConditionFalse, "Blocked", "config: there is no color")).Object(),
			ExpectedResult: reconcilers.Result{RequeueAfter: 60e9},
		},
	}, func() nodes { return one(dependents.Of("config", notReady)) })
}
