package plan_test

import (
	"fmt"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/plan"
)

// replaced is a component of two waves. The second wave has a new object, and drops an old one with the given prune
// policy.
func replaced(t *testing.T, policyName apis.PrunePolicy) *component {
	c := newComponent(t, foo("first"), with(foo("old"), order(1, 0), policy(policyName)),
		with(foo("kept"), order(1, 0)))
	c.rollOutAll(t)
	c.desired = []plan.Desired{with(foo("first"), digest("2")), with(foo("new"), order(1, 0)),
		with(foo("kept"), order(1, 0))}
	c.cluster.trace = nil
	return c
}

// rollOutAll runs passes until the plan is done. In between, all objects become ready.
func (c *component) rollOutAll(t *testing.T) {
	t.Helper()
	for range passes {
		if c.pass().Done {
			return
		}
		for key := range c.cluster.objects {
			c.cluster.makeReady(key)
		}
	}
	t.Fatal("the component is not rolled out, want that it is")
}

// A wave waits for objects that are pruned before it.
func TestPruneBefore(t *testing.T) {
	c := replaced(t, apis.PruneBefore)
	c.cluster.finalized[foo("old").Key] = true
	c.pass()
	same(t, "operations before the turn of the wave", c.cluster.trace, []string{"apply first"})
	c.cluster.makeReady(foo("first").Key)
	p := c.pass()
	same(t, "operations", c.cluster.trace, []string{"apply first", "delete old"})
	same(t, "obstacles", obstacles(p), []string{"waiting old: it is being deleted"})
	// What is put right is not held up.
	c.cluster.objects[foo("kept").Key].fields = "fewer"
	c.pass()
	same(t, "operations", c.cluster.trace, []string{"apply first", "delete old", "apply kept"})
	c.cluster.finalize(foo("old").Key)
	c.pass()
	same(t, "operations", c.cluster.trace, []string{"apply first", "delete old", "apply kept", "create new"})
}

// Pruning with a wave does not wait until the wave is ready.
func TestPruneWith(t *testing.T) {
	c := replaced(t, apis.PruneWith)
	c.pass()
	same(t, "operations before the turn of the wave", c.cluster.trace, []string{"apply first"})
	c.cluster.makeReady(foo("first").Key)
	c.pass()
	same(t, "operations", c.cluster.trace, []string{"apply first", "create new", "delete old"})
}

// Pruning with a wave waits for pruning before it.
func TestPruneWithWaitsForPruneBefore(t *testing.T) {
	first := with(foo("first"), policy(apis.PruneBefore))
	c := newComponent(t, first, foo("second"), configMap("kept"))
	c.rollOutAll(t)
	c.cluster.finalized[first.Key] = true
	c.desired, c.cluster.trace = []plan.Desired{configMap("kept"), configMap("new")}, nil
	c.pass()
	c.pass()
	same(t, "operations while the first is there", c.cluster.trace, []string{"delete first"})
	c.cluster.finalize(first.Key)
	if p := c.pass(); !p.Done {
		t.Error(p)
	}
	same(t, "operations", c.cluster.trace, []string{"delete first", "create new", "delete second"})
}

// Pruning with a wave waits until all its objects are observed.
func TestPruneWithWaitsForObservation(t *testing.T) {
	c := newComponent(t, foo("kept"), foo("old"))
	c.rollOutAll(t)
	c.desired, c.cluster.trace = c.desired[:1], nil
	c.unobserved[foo("kept").Key] = true
	c.pass()
	same(t, "operations", c.cluster.trace, nil)
	c.unobserved[foo("kept").Key] = false
	c.pass()
	same(t, "operations", c.cluster.trace, []string{"delete old"})
}

// Pruning after a wave waits until the wave is ready.
func TestPruneAfter(t *testing.T) {
	c := replaced(t, apis.PruneAfter)
	c.pass()
	c.cluster.makeReady(foo("first").Key)
	c.pass()
	same(t, "operations before the wave is ready", c.cluster.trace, []string{"apply first", "create new"})
	c.cluster.makeReady(foo("new").Key)
	if p := c.pass(); !p.Done {
		t.Error(p)
	}
	same(t, "operations", c.cluster.trace, []string{"apply first", "create new", "delete old"})
}

// Pruning does not wait for an earlier wave if its own wave has nothing to write.
func TestPruningDoesNotWaitForOtherWaves(t *testing.T) {
	c := newComponent(t, foo("crashing"), with(configMap("kept"), order(1, 0)), with(configMap("old"), order(1, 0)))
	c.rollOutAll(t)
	c.cluster.objects[foo("crashing").Key].status = apis.ObjectInProgress
	c.desired = c.desired[:2]
	c.cluster.trace = nil
	c.pass()
	same(t, "operations", c.cluster.trace, []string{"delete old"})
}

// Nor does it wait for drift in its own wave, or for an object that may not be written.
func TestPruningDoesNotWaitForRepair(t *testing.T) {
	c := newComponent(t, foo("crashing"), with(configMap("kept"), order(1, 0)),
		with(configMap("old"), order(1, 0), policy(apis.PruneBefore)))
	c.rollOutAll(t)
	c.cluster.objects[foo("crashing").Key].status = apis.ObjectInProgress
	c.desired = append(c.desired[:2:2], with(configMap("taken"), order(1, 0), policy(apis.AdoptNever)))
	c.cluster.put(configMap("taken").Key, plan.Unowned)
	c.cluster.objects[configMap("kept").Key].fields = "fewer"
	same(t, "operations", actions(plan.Make(c.input())), []string{"delete old"})
}

// If the wave of an object does not exist any more, the object is pruned with the next wave.
func TestPruneOfAWaveThatIsNoMore(t *testing.T) {
	for policyName, want := range map[apis.PrunePolicy][]string{
		apis.PruneBefore: {"delete old", "create new"},
		apis.PruneWith:   {"create new", "delete old"},
		apis.PruneAfter:  {"create new"},
	} {
		c := newComponent(t, with(foo("old"), order(3, 0), policy(policyName)))
		c.rollOutAll(t)
		c.desired = []plan.Desired{with(foo("new"), order(5, 0))}
		c.cluster.trace = nil
		c.pass()
		same(t, string(policyName)+": operations", c.cluster.trace, want)
		c.rollOutAll(t)
		c.there(t, foo("new"))
	}
}

// The next wave counts, even if there are earlier ones. After the last wave, the last one counts.
func TestPruneOfAWaveBetweenOthers(t *testing.T) {
	for _, test := range []struct {
		applied int16
		policy  apis.PrunePolicy
		want    []string
	}{
		{3, apis.PruneBefore, []string{"apply first", "delete old", "create last"}},
		{3, apis.PruneWith, []string{"apply first", "create last", "delete old"}},
		{3, apis.PruneAfter, []string{"apply first", "create last", "delete old"}},
		{-3, apis.PruneBefore, []string{"delete old", "apply first", "create last"}},
		{-3, apis.PruneWith, []string{"apply first", "delete old", "create last"}},
		{9, apis.PruneBefore, []string{"apply first", "delete old", "create last"}},
		{9, apis.PruneWith, []string{"apply first", "create last", "delete old"}},
	} {
		c := newComponent(t, foo("first"), with(foo("old"), order(test.applied, 0), policy(test.policy)))
		c.rollOutAll(t)
		c.desired = []plan.Desired{with(foo("first"), digest("2")), with(foo("last"), order(5, 0))}
		c.cluster.trace = nil
		c.rollOutAll(t)
		same(t, fmt.Sprintf("%s, applied in wave %d: operations", test.policy, test.applied), c.cluster.trace,
			test.want)
	}
}

// Pruning after a wave waits for this wave. If it does not exist any more, it waits for all waves, since any of them
// may have the successor.
func TestPruneAfterWhichWave(t *testing.T) {
	for _, test := range []struct {
		applied int16
		want    []string
	}{
		{0, []string{"apply first", "delete old", "create last"}},
		{1, []string{"apply first", "create last"}},
		{-1, []string{"apply first", "create last"}},
	} {
		old := with(configMap("old"), order(test.applied, 0), policy(apis.PruneAfter))
		c := newComponent(t, configMap("first"), old)
		c.rollOutAll(t)
		c.desired = []plan.Desired{with(configMap("first"), digest("2")), with(foo("last"), order(5, 0))}
		c.cluster.trace = nil
		c.pass()
		same(t, fmt.Sprintf("applied in wave %d: operations", test.applied), c.cluster.trace, test.want)
		c.rollOutAll(t)
		c.there(t, configMap("first"), foo("last"))
	}
}

func TestDeleteOrdersHoldWhenPruning(t *testing.T) {
	c := newComponent(t, with(configMap("second"), order(0, 2)), with(foo("first"), order(0, 1)), configMap("kept"))
	c.rollOutAll(t)
	c.cluster.finalized[foo("first").Key] = true
	c.desired = c.desired[2:]
	c.cluster.trace = nil
	c.pass()
	same(t, "operations", c.cluster.trace, []string{"delete first"})
	c.cluster.finalize(foo("first").Key)
	c.pass()
	same(t, "operations", c.cluster.trace, []string{"delete first", "delete second"})
}

// An object that may not be deleted yet holds no others, for any delete orders.
func TestRetainedObjectHoldsNoOthers(t *testing.T) {
	c := newComponent(t, with(foo("after"), order(0, 0), policy(apis.PruneAfter)),
		with(foo("before"), order(0, 5), policy(apis.PruneBefore)))
	c.rollOutAll(t)
	c.desired = []plan.Desired{foo("new")}
	c.cluster.trace = nil
	c.pass()
	same(t, "operations", c.cluster.trace, []string{"delete before", "create new"})
}

// A type that others use is not pruned.
func TestL5TypeInUseIsNotPruned(t *testing.T) {
	c := newComponent(t, crd("baz"), baz("mine"), with(configMap("kept"), order(1, 0)),
		with(configMap("old"), order(0, 9)))
	c.rollOutAll(t)
	c.cluster.foreign[crd("baz").Key] = []string{"Baz app/x", "Baz app/y"}
	c.cluster.trace = nil
	c.desired = []plan.Desired{with(configMap("kept"), order(1, 0)), configMap("new")}
	p := c.pass()
	same(t, "operations", c.cluster.trace, []string{"create new", "delete mine", "check baz.test.local", "delete old"})
	same(t, "obstacles", obstacles(p), []string{"blocked baz.test.local: in use by Baz app/x, Baz app/y"})
	if p.Done {
		t.Error("the plan is done while a type is in the way, want that it is not")
	}
	delete(c.cluster.foreign, crd("baz").Key)
	if p = c.pass(); !p.Done {
		t.Error(p)
	}
	same(t, "operations", c.cluster.trace[4:], []string{"check baz.test.local", "delete type baz.test.local"})
}

func TestTypeWhoseForeignInstancesAreIgnored(t *testing.T) {
	c := newComponent(t, with(crd("baz"), func(d *plan.Desired) { d.IgnoreForeignInstances = true }))
	c.rollOutAll(t)
	c.cluster.foreign[crd("baz").Key] = []string{"Baz app/x"}
	c.desired, c.allowEmpty, c.cluster.trace = nil, true, nil
	if p := c.pass(); !p.Done {
		t.Error(p)
	}
	same(t, "operations", c.cluster.trace, []string{"delete baz.test.local"})
}

func TestL5TypeInUseWhileItIsDeleted(t *testing.T) {
	d := crd("baz")
	r := asIs(d)
	in := plan.Input{AllowEmpty: true, Inventory: []apis.InventoryRecord{r},
		Observed: map[plan.Key]plan.Observed{d.Key: live(d)}, Now: start}
	for _, test := range []struct {
		use  plan.Use
		want string
	}{
		{plan.Use{State: plan.ForeignBlocking}, "blocked baz.test.local: in use by others"},
		{plan.Use{State: plan.ForeignUnknown}, "blocked baz.test.local: it is not known whether others use it"},
		{plan.Use{State: plan.ForeignUnknown, Reason: "no discovery"}, "blocked baz.test.local: it is not known whether others use it: no discovery"},
	} {
		in.Uses = map[plan.Key]plan.Use{d.Key: test.use}
		p := plan.Make(in)
		same(t, "operations", actions(p), nil)
		same(t, "obstacles", obstacles(p), []string{test.want})
	}
}

func TestUseInWords(t *testing.T) {
	for want, use := range map[string]plan.Use{
		"in use by Foo app/x":                           {Instances: []string{"Foo app/x"}},
		"in use by Foo app/x, Foo app/y and 3 more":     {Instances: []string{"Foo app/x", "Foo app/y"}, More: 3},
		"in use by Foo app/x and more":                  {Instances: []string{"Foo app/x"}, More: -1},
		"in use by others":                              {More: 4},
		"it is not known whether others use it":         {State: plan.ForeignUnknown},
		"it is not known whether others use it: broken": {State: plan.ForeignUnknown, Reason: "broken"},
	} {
		d := crd("baz")
		if use.State == 0 {
			use.State = plan.ForeignBlocking
		}
		p := plan.Make(plan.Input{AllowEmpty: true, Inventory: []apis.InventoryRecord{asIs(d)},
			Observed: map[plan.Key]plan.Observed{d.Key: live(d)},
			Uses:     map[plan.Key]plan.Use{d.Key: use}})
		same(t, "obstacles", obstacles(p), []string{"blocked baz.test.local: " + want})
	}
}

// An object that is desired under another group is not deleted with its old record.
func TestObjectThatMovesToAnotherGroup(t *testing.T) {
	for _, policyName := range []apis.PrunePolicy{apis.PruneBefore, apis.PruneWith, apis.PruneAfter} {
		old, moved := foo("foo"), foo("foo")
		old.PrunePolicy, moved.Group, moved.Digest = policyName, "moved.local", "2"
		c := newComponent(t, old)
		c.rollOutAll(t)
		c.desired, c.cluster.trace = []plan.Desired{moved}, nil

		// The object is not seen under its new group yet: nothing is deleted.
		c.unobserved[moved.Key] = true
		c.pass()
		same(t, "operations", c.cluster.trace, nil)

		c.unobserved[moved.Key] = false
		c.cluster.objects[moved.Key] = c.cluster.objects[old.Key]
		c.rollOutAll(t)
		same(t, string(policyName)+": operations", c.cluster.trace, []string{"apply foo"})
		if len(c.stored) != 1 || c.stored[0].Group != "moved.local" {
			t.Errorf("the records are %v, want one of the group moved.local", c.stored)
		}
	}
}

// If the object of the other group is another one, it is created before the old one is deleted.
func TestAliasThatIsAnotherObject(t *testing.T) {
	old, other := with(foo("foo"), policy(apis.PruneBefore)), foo("foo")
	other.Group = "moved.local"
	c := newComponent(t, old)
	c.rollOutAll(t)
	c.desired, c.cluster.trace = []plan.Desired{other}, nil
	c.rollOutAll(t)
	same(t, "operations", c.cluster.trace, []string{"create foo", "delete foo"})
	c.there(t, other)
}

// If the scope of a type changes, the new object is created before the old one is deleted.
func TestScopeThatChanges(t *testing.T) {
	old, now := with(foo("foo"), policy(apis.PruneBefore)), foo("foo")
	now.Namespace = ""
	c := newComponent(t, old)
	c.rollOutAll(t)
	c.desired, c.cluster.trace = []plan.Desired{now}, nil
	c.rollOutAll(t)
	same(t, "operations", c.cluster.trace, []string{"create foo", "delete foo"})
}

// The record of an undesired object is dropped if there is no object of ours to delete.
func TestDroppedRecordsOfNothing(t *testing.T) {
	d := configMap("c")
	for name, test := range map[string]struct {
		seen  plan.Observed
		stays bool
	}{
		"gone":          {plan.Observed{Presence: plan.Absent}, false},
		"type is gone":  {plan.Observed{Presence: plan.Absent, TypeMissing: true}, false},
		"unowned":       {plan.Observed{Presence: plan.Present, UID: "u1"}, false},
		"foreign":       {plan.Observed{Presence: plan.Present, UID: "u1", Ownership: plan.Foreign, Terminating: true}, false},
		"not seen":      {plan.Observed{}, true},
		"being deleted": {plan.Observed{Presence: plan.Present, UID: "u1", Ownership: plan.Ours, Terminating: true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan.Make(plan.Input{AllowEmpty: true, Inventory: []apis.InventoryRecord{asIs(d)},
				Observed: map[plan.Key]plan.Observed{d.Key: test.seen}})
			same(t, "operations", actions(p), nil)
			if len(p.Inventory) != 0 != test.stays || p.Done == test.stays {
				t.Errorf("there are the records %v and done is %v, want records: %t, and done without", p.Inventory,
					p.Done, test.stays)
			}
		})
	}
}

// An object that was deleted, and exists again, is deleted again.
func TestDeletedAndThereAgain(t *testing.T) {
	for _, deleting := range []bool{false, true} {
		d := configMap("c")
		r, s := asIs(d), live(d)
		r.Phase, s.UID = apis.PhaseDeleting, "u2"
		if !deleting {
			r.Digest = ""
		}
		p := plan.Make(plan.Input{Deleting: deleting, AllowEmpty: true, Inventory: []apis.InventoryRecord{r},
			Observed: map[plan.Key]plan.Observed{d.Key: s}})
		same(t, "operations", actions(p), []string{"delete c"})
		if o := p.Next.Operations[0]; o.UID != "u2" || o.Reason != "it was deleted, and exists again" {
			t.Errorf("the operation is %+v, want the UID u2, because it was deleted and exists again", o)
		}
	}
}

func TestNamespaceGoesOnceEmpty(t *testing.T) {
	c := newComponent(t, namespace("app"), with(foo("foo"), order(0, 5)))
	c.rollOutAll(t)
	c.cluster.finalized[foo("foo").Key] = true
	c.desired, c.allowEmpty, c.cluster.trace = nil, true, nil
	p := c.pass()
	same(t, "operations", c.cluster.trace, []string{"delete foo"})
	same(t, "obstacles", obstacles(p), []string{"waiting app: what depends on it has to go first: 1 left",
		"waiting foo: it is being deleted"})
	c.cluster.finalize(foo("foo").Key)
	c.rollOutAll(t)
	same(t, "operations", c.cluster.trace, []string{"delete foo", "delete if unused app"})
}

// A wave does not wait for a type that others use, even if the type is to be pruned before it.
func TestTypeInUseDoesNotHoldItsWave(t *testing.T) {
	c := newComponent(t, with(crd("baz"), policy(apis.PruneBefore)))
	c.rollOutAll(t)
	c.cluster.foreign[crd("baz").Key] = []string{"Baz app/x"}
	c.desired, c.cluster.trace = []plan.Desired{configMap("new")}, nil
	p := c.pass()
	same(t, "operations", c.cluster.trace, []string{"check baz.test.local", "create new"})
	same(t, "obstacles", obstacles(p), []string{"blocked baz.test.local: in use by Baz app/x"})
}

// An object that is purged is not written any more. So it does not count as the same object under another key.
func TestAliasOfAPurgedObject(t *testing.T) {
	old, moved := foo("foo"), with(foo("foo"), purged(0))
	moved.Group = "moved.local"
	r := asIs(moved)
	r.Phase = apis.PhaseCompleting
	in := plan.Input{Desired: []plan.Desired{moved}, Inventory: []apis.InventoryRecord{asIs(old), r},
		Observed: map[plan.Key]plan.Observed{old.Key: live(old), moved.Key: {Presence: plan.Absent}}}
	same(t, "operations", actions(plan.Make(in)), []string{"delete foo"})
}

// An object that may not be pruned yet, and that another client deletes, is shown as an obstacle.
func TestPrunedLaterAndBeingDeletedNow(t *testing.T) {
	c := newComponent(t, with(foo("old"), policy(apis.PruneAfter)))
	c.rollOutAll(t)
	c.cluster.objects[foo("old").Key].terminating = true
	c.desired = []plan.Desired{foo("new")}
	same(t, "obstacles", obstacles(c.pass()), []string{"waiting new: it is not ready",
		"waiting old: it is being deleted"})
}

// The deletion of a component was called off. An object that it does not desire any more is pruned as any other.
func TestDroppedAfterADeletionThatWasCalledOff(t *testing.T) {
	d := configMap("c")
	r, s := asIs(d), live(d)
	r.Phase, s.Terminating = apis.PhaseDeleting, true
	p := plan.Make(plan.Input{AllowEmpty: true, Inventory: []apis.InventoryRecord{r},
		Observed: map[plan.Key]plan.Observed{d.Key: s}})
	if plan.Committed(p.Inventory) || p.Inventory[0].Phase != apis.PhaseScheduledForDeletion {
		t.Errorf("the record is %+v, want it scheduled for deletion and not committed", p.Inventory[0])
	}
}
