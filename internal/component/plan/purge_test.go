package plan_test

import (
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/plan"
)

// When a purge is due does not depend on the apply orders of other objects.
func TestPurgeIsDueBeforeTheWaveBeyondItsOrder(t *testing.T) {
	// As the hook of a chart: applied in wave -101, purged by -1, with nothing in between.
	c := newComponent(t, with(configMap("hook"), order(-101, 0), purged(-1)), foo("main"))
	c.pass()
	same(t, "operations", c.cluster.trace, []string{"create hook", "purge hook", "create main"})
}

func TestPurgeOrderBelowTheApplyOrder(t *testing.T) {
	c := newComponent(t, configMap("a"), with(configMap("b"), order(1, 0), purged(-7)),
		with(configMap("c"), order(2, 0)))
	c.pass()
	same(t, "operations", c.cluster.trace, []string{"create a", "create b", "purge b", "create c"})
}

// An object with the delete policy Orphan is orphaned.
func TestPurgeRespectsTheDeletePolicy(t *testing.T) {
	c := newComponent(t, with(configMap("c"), purged(0), policy(apis.DeleteOrphan)))
	if p := c.pass(); !p.Done {
		t.Error(p)
	}
	c.expect(c.pass(), true, map[string]string{"c": completed})
	same(t, "operations", c.cluster.trace, []string{"create c", "orphan c"})
	c.there(t, configMap("c"))
}

// While a purge is under way, drift is corrected and new objects are created.
func TestPendingPurgeDoesNotStopRepair(t *testing.T) {
	c := newComponent(t, with(foo("hook"), purged(0)), configMap("c"), with(configMap("late"), order(1, 0)))
	c.cluster.finalized[foo("hook").Key] = true
	c.pass()
	c.cluster.makeReady(foo("hook").Key)
	c.pass()
	c.cluster.objects[configMap("c").Key].fields = "fewer"
	c.desired = append(c.desired, configMap("new"))
	c.cluster.trace = nil
	p := c.pass()
	same(t, "operations", c.cluster.trace, []string{"apply c", "create new"})
	same(t, "obstacles", obstacles(p), []string{"waiting hook: it is being deleted"})
}

// A purge ends with the object that was purged, not with another one in its place.
func TestCompleting(t *testing.T) {
	d := with(configMap("c"), purged(0))
	for name, test := range map[string]struct {
		seen  plan.Observed
		want  []string
		phase apis.InventoryPhase
	}{
		"gone":               {plan.Observed{Presence: plan.Absent}, nil, apis.PhaseCompleted},
		"not seen":           {plan.Observed{}, nil, apis.PhaseCompleting},
		"being deleted":      {plan.Observed{Presence: plan.Present, UID: "u1", Ownership: plan.Ours, Terminating: true}, nil, apis.PhaseCompleting},
		"there again":        {plan.Observed{Presence: plan.Present, UID: "u2", Ownership: plan.Ours}, []string{"purge c"}, apis.PhaseCompleting},
		"made without owner": {plan.Observed{Presence: plan.Present, UID: "u2"}, nil, apis.PhaseCompleted},
		"made by another":    {plan.Observed{Presence: plan.Present, UID: "u2", Ownership: plan.Foreign}, nil, apis.PhaseCompleted},
		"another, and goes":  {plan.Observed{Presence: plan.Present, UID: "u2", Ownership: plan.Foreign, Terminating: true}, nil, apis.PhaseCompleted},
	} {
		t.Run(name, func(t *testing.T) {
			r := asIs(d)
			r.Phase = apis.PhaseCompleting
			p := plan.Make(single(d, &r, test.seen))
			same(t, "operations", actions(p), test.want)
			if phase := p.Inventory[0].Phase; phase != test.phase || p.Done != (phase == apis.PhaseCompleted) {
				t.Errorf("the phase is %s and done %v, want %s, and done if it is completed", phase, p.Done, test.phase)
			}
			want := r.UID
			switch {
			case test.phase == apis.PhaseCompleted:
				want = ""
			case test.want != nil:
				want = test.seen.UID
			}
			if uid := p.Inventory[0].UID; uid != want {
				t.Errorf("the record has the UID %q, want %q", uid, want)
			}
		})
	}
}

func TestCompletedIsLeftAlone(t *testing.T) {
	d := with(configMap("c"), purged(0))
	r, s := asIs(d), live(d)
	r.Phase = apis.PhaseCompleted
	if p := plan.Make(single(d, &r, s)); !p.Done {
		t.Error(p)
	}
	for name, changed := range map[string]plan.Desired{"another content": with(d, digest("2")),
		"not to be purged": configMap("c")} {
		p := plan.Make(single(changed, &r, plan.Observed{Presence: plan.Absent}))
		if got := actions(p); len(got) != 1 || got[0] != "create c" {
			t.Errorf("%s: the operations are %q, want [create c]", name, got)
		}
	}
}

// What another engine has purged stays away until its manifest changes.
func TestPurgedByAnotherEngine(t *testing.T) {
	d := with(configMap("c"), purged(0))
	r := asIs(d)
	r.Phase, r.UID, r.Digest = apis.PhaseCompleted, "", plan.DigestTakenOver
	p := plan.Make(single(d, &r, plan.Observed{Presence: plan.Absent}))
	same(t, "operations", actions(p), nil)
	if got := p.Inventory[0]; !p.Done || got.Digest != d.Digest || got.Phase != apis.PhaseCompleted {
		t.Errorf("the record has the digest %q and the phase %s, want %q and Completed", got.Digest, got.Phase, d.Digest)
	}
	changed := with(d, digest("2"))
	p = plan.Make(single(changed, &p.Inventory[0], plan.Observed{Presence: plan.Absent}))
	same(t, "operations", actions(p), []string{"create c"})
}

func TestTypesAndNamespacesAreNotPurged(t *testing.T) {
	server := with(foo("server"), purged(0), func(d *plan.Desired) { d.ManagedTypes = crd("baz").ManagedTypes })
	c := newComponent(t, with(namespace("app"), purged(0)), with(crd("baz"), purged(0)), server)
	c.rollOutAll(t)
	c.there(t, namespace("app"), crd("baz"), server)
	for i := range c.stored {
		c.stored[i].Phase = apis.PhaseCompleting
	}
	c.rollOutAll(t)
	c.there(t, namespace("app"), crd("baz"), server)
}

func TestPurgeThatFails(t *testing.T) {
	d := with(configMap("c"), purged(0))
	r := asIs(d)
	in := single(d, &r, live(d))
	in.Failed = map[plan.Key]string{d.Key: "forbidden"}
	p := plan.Make(in)
	same(t, "operations", actions(p), nil)
	same(t, "obstacles", obstacles(p), []string{"failed c: forbidden"})
}
