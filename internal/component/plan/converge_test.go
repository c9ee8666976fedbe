package plan_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/plan"
)

// passes is how many requests any scenario may take.
const passes = 60

// converge runs passes until the plan is done. In between, objects become ready, and finalizers are removed.
func (c *component) converge(what string) {
	c.cluster.t.Helper()
	clear(c.cluster.created)
	clear(c.cluster.deleted)
	clear(c.cluster.written)
	var p plan.Plan
	for range passes {
		if p = c.pass(); p.Done {
			return
		}
		for key := range c.cluster.objects {
			c.cluster.makeReady(key)
		}
		c.cluster.finalize(leaving(c.cluster)...)
	}
	c.cluster.t.Fatalf("%s: the component does not converge, want a plan that is done:\n%s\n%+v", what, p, c.stored)
}

func leaving(c *cluster) []plan.Key {
	var keys []plan.Key
	for key, o := range c.objects {
		if o.terminating {
			keys = append(keys, key)
		}
	}
	return keys
}

// scenario returns random desired objects that do not contradict each other.
func scenario(d *dice) []plan.Desired {
	var desired []plan.Desired
	add := func(o plan.Desired) {
		o.UpdatePolicy = pick(d, apis.UpdateApply, apis.UpdateRecreate, apis.UpdateReplace, apis.UpdateApplyOverride)
		o.PrunePolicy = pick(d, apis.PruneWith, apis.PruneBefore, apis.PruneAfter)
		o.DeletePolicy = pick(d, apis.DeleteDelete, apis.DeleteDelete, apis.DeleteOrphan, apis.DeleteOrphanOnApply,
			apis.DeleteOrphanOnDelete)
		o.Digest = pick(d, "1", "2", "3")
		desired = append(desired, o)
	}
	add(with(namespace("app"), order(-5, 5)))
	for i, make := range []func(string) plan.Desired{configMap, secret, foo, bar} {
		for n := range d.roll(4) {
			o := with(make(fmt.Sprintf("%d-%d", i, n)), order(int16(d.roll(3)), int16(d.roll(3))))
			o.PurgeOrder = d.purge()
			add(o)
		}
	}
	if d.chance() {
		add(with(crd("baz"), order(-4, 4)))
		desired[len(desired)-1].DeletePolicy = apis.DeleteDelete
		for n := range d.roll(3) {
			add(with(baz(fmt.Sprintf("baz-%d", n)), order(int16(d.roll(3)), int16(d.roll(3)))))
			desired[len(desired)-1].DeletePolicy = apis.DeleteDelete
		}
	}
	return desired
}

// TestConvergence: any component that is rolled out, changed, disturbed and deleted becomes done. Each object is
// created, written and deleted no more often than needed.
func TestConvergence(t *testing.T) {
	for seed := range uint64(150) {
		random := rand.New(rand.NewPCG(seed, 7))
		data := make([]byte, 400)
		for i := range data {
			data[i] = byte(random.UintN(256))
		}
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			d := &dice{data}
			c := newComponent(t, scenario(d)...)
			c.patterns = []plan.Pattern{{Group: "*.local", Kind: "Bar"}}[:d.roll(2)]
			before := map[plan.Key]plan.Desired{}
			c.rollOut("the first roll-out", before)
			before = map[plan.Key]plan.Desired{}
			for _, o := range c.desired {
				before[o.Key] = o
			}
			c.expectIdle("once it is rolled out")
			c.desired = scenario(d)
			c.rollOut("the second", before)
			c.expectIdle("once it is rolled out again")
			c.disturb(d)
			c.converge("repair")
			c.expectIdle("once it is repaired")
			c.deleting = true
			c.converge("deletion")
			c.left()
		})
	}
}

// rollOut converges, and checks how often each object was created, written and deleted.
func (c *component) rollOut(what string, before map[plan.Key]plan.Desired) {
	c.cluster.t.Helper()
	c.converge(what)
	for _, o := range c.desired {
		old, existed := before[o.Key]
		delete(before, o.Key)
		wasThere := existed && old.PurgeOrder == nil
		purged := o.PurgeOrder != nil && o.Kind != "Namespace" && o.Kind != "CustomResourceDefinition"
		changed := !existed || old.Digest != o.Digest
		recreated := wasThere && changed && o.UpdatePolicy == apis.UpdateRecreate && o.Kind != "Namespace" &&
			o.Kind != "CustomResourceDefinition"
		creates, deletes := 0, 0
		if !existed || recreated || existed && !wasThere && (changed || !purged) {
			creates++
		}
		if recreated {
			deletes++
		}
		left := creates > 0 || wasThere
		if purged && left && o.DeletePolicy != apis.DeleteOrphan {
			deletes++
		}
		if existed && old.PurgeOrder != nil && old.DeletePolicy == apis.DeleteOrphan {
			// It stayed when it was purged, and may be adopted.
			continue
		}
		c.count(what, o, creates, deletes)
		if got := c.cluster.written[o.Key]; got > 1 || got == 1 && (!changed || creates > 0) {
			c.cluster.t.Errorf("%s: %s was written %d times, want at most once, and not at all without a change", what,
				o, got)
		}
	}
	for _, old := range before {
		deletes := 1
		if old.PurgeOrder != nil || old.DeletePolicy == apis.DeleteOrphan ||
			old.DeletePolicy == apis.DeleteOrphanOnApply {
			deletes = 0
		}
		c.count(what, old, 0, deletes)
	}
}

func (c *component) count(what string, o plan.Desired, creates, deletes int) {
	c.cluster.t.Helper()
	if got := c.cluster.created[o.Key]; got != creates {
		c.cluster.t.Errorf("%s: %s was created %d times, want %d (%+v)", what, o, got, creates, o)
	}
	if got := c.cluster.deleted[o.Key]; got != deletes {
		c.cluster.t.Errorf("%s: %s was deleted %d times, want %d (%+v)", what, o, got, deletes, o)
	}
}

// expectIdle checks invariant L1: if nothing changed, nothing is done, and the inventory stays the same.
func (c *component) expectIdle(when string) {
	c.cluster.t.Helper()
	steps, stored := c.steps, fmt.Sprintf("%+v", c.stored)
	if p := c.pass(); !p.Done || c.steps != steps {
		c.cluster.t.Errorf("%s, the plan is not done or did %d operations, want it done without any:\n%s", when,
			c.steps-steps, p)
	}
	if now := fmt.Sprintf("%+v", c.stored); now != stored {
		c.cluster.t.Errorf("%s, the inventory is\n%s\nwant, as before,\n%s", when, now, stored)
	}
}

// disturb changes the objects, as other clients may.
func (c *component) disturb(d *dice) {
	keys := make([]plan.Key, 0, len(c.cluster.objects))
	for key := range c.cluster.objects {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b plan.Key) int { return slices.Compare([]byte(a.String()), []byte(b.String())) })
	for _, key := range keys {
		o := c.cluster.objects[key]
		if key.Kind == "Namespace" || key.Kind == "CustomResourceDefinition" {
			continue
		}
		switch d.roll(6) {
		case 0:
			o.fields = "fewer"
		case 1:
			delete(c.cluster.objects, key)
		case 2:
			o.digest = "changed"
		case 3:
			if o.ownership == plan.Ours {
				o.ownership = plan.Unlabelled
			}
		case 4:
			// It was restored from a backup.
			o.uid, o.generation = c.cluster.uid(), 1
		}
	}
}

// left checks that after the deletion no object of ours exists.
func (c *component) left() {
	c.cluster.t.Helper()
	if len(c.stored) > 0 {
		c.cluster.t.Errorf("the inventory has %v, want no record", c.stored)
	}
	for key, o := range c.cluster.objects {
		if o.ownership == plan.Ours {
			c.cluster.t.Errorf("%s is left, want no object of ours", key)
		}
	}
}
