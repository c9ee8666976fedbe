package plan_test

import (
	"slices"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/plan"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An object is recreated only if its digest proves that it was written for another desired state.
func TestRecreateOnlyForAProvenChange(t *testing.T) {
	c := newComponent(t, with(configMap("c"), policy(apis.UpdateRecreate), func(d *plan.Desired) { d.ReapplyInterval = time.Hour }))
	key := c.desired[0].Key
	c.rollOutAll(t)
	uid := c.cluster.objects[key].uid
	for _, test := range []struct {
		name    string
		happens func()
	}{
		{"the interval is over", func() { c.cluster.now = c.cluster.now.Add(24 * time.Hour) }},
		{"the answer was lost", func() {
			c.stored[0].Phase, c.stored[0].UID, c.stored[0].Fields = apis.PhaseScheduledForApplication, "", ""
		}},
		{"its time was lost", func() { c.stored[0].LastAppliedAt = nil }},
		{"another client changed it", func() { c.cluster.objects[key].fields = "fewer" }},
		{"its digest is gone", func() { c.cluster.objects[key].digest = "" }},
		{"its digest is odd", func() { c.cluster.objects[key].digest = "odd" }},
		{"its marks are gone", func() { c.cluster.objects[key].ownership = plan.Unlabelled }},
		{"the inventory is new", func() { c.stored = nil }},
		{"it is not known what was written, and something else is desired", func() {
			c.desired[0].Digest, c.cluster.objects[key].digest = "2", ""
		}},
	} {
		test.happens()
		c.rollOutAll(t)
		if got := c.cluster.objects[key].uid; got != uid {
			t.Fatalf("%s: the object has the UID %s, want %s: it was recreated", test.name, got, uid)
		}
	}
	c.desired[0].Digest = "3"
	c.rollOutAll(t)
	if got := c.cluster.objects[key]; got.uid == uid || got.digest != "3" || c.cluster.deleted[key] != 1 {
		t.Errorf("the object is %+v and was deleted %d times, want another one with the digest 3, and 1", got,
			c.cluster.deleted[key])
	}
}

// By default nothing is replaced, and an unchanged object is not written again, after any time.
func TestNothingIsRewrittenBlindly(t *testing.T) {
	d := foo("c")
	d.UpdatePolicy, d.AdoptionPolicy, d.DeletePolicy, d.PrunePolicy, d.ReconcilePolicy = "", "", "", "", ""
	c := newComponent(t, d)
	c.rollOutAll(t)
	for range 3 {
		c.cluster.now = c.cluster.now.Add(24 * time.Hour)
		if p := c.pass(); !p.Done || !p.Reapply.IsZero() {
			t.Errorf("the next apply is at %s, want none and the plan done:\n%s", p.Reapply, p)
		}
	}
	same(t, "operations", c.cluster.trace, []string{"create c"})
	c.cluster.objects[d.Key].fields = "fewer"
	c.desired[0].Digest = "2"
	c.pass()
	same(t, "operations", c.cluster.trace, []string{"create c", "apply c"})
}

// If an object fails, its wave is written, objects of other waves are pruned, and drift in later waves is corrected.
func TestOneFailureStopsNoOthers(t *testing.T) {
	c := newComponent(t, configMap("fails"), with(configMap("old"), order(1, 0)), with(configMap("drifts"), order(1, 0)))
	c.rollOutAll(t)
	c.desired = []plan.Desired{with(configMap("fails"), digest("2")), configMap("new"),
		with(configMap("drifts"), order(1, 0))}
	c.cluster.broken[configMap("fails").Key] = true
	c.cluster.objects[configMap("drifts").Key].fields = "fewer"
	c.cluster.trace = nil
	p := c.pass()
	same(t, "operations", c.cluster.trace, []string{"apply fails", "create new", "apply drifts", "delete old"})
	same(t, "obstacles", obstacles(p), []string{"failed fails: the object is invalid"})
	// It is tried once in a request. The next request tries again.
	c.cluster.trace = nil
	c.pass()
	same(t, "operations", c.cluster.trace, []string{"apply fails"})
}

// An old object may prevent that its successor becomes ready. By the default policy, too, it is deleted before that.
func TestSuccessorThatNeedsTheOldOneGone(t *testing.T) {
	for _, policyName := range []apis.PrunePolicy{"", apis.PruneBefore, apis.PruneWith} {
		c := newComponent(t, with(foo("old"), policy(policyName)))
		c.rollOutAll(t)
		c.desired, c.cluster.trace = []plan.Desired{with(foo("new"), policy(policyName))}, nil
		// The new one has the port of the old one: it does not become ready.
		c.pass()
		c.pass()
		if !slices.Contains(c.cluster.trace, "delete old") || c.cluster.objects[foo("old").Key] != nil {
			t.Errorf(`%q: the operations are %q and the old object is %+v, want "delete old" among them and none`,
				policyName, c.cluster.trace, c.cluster.objects[foo("old").Key])
		}
		c.cluster.makeReady(foo("new").Key)
		if p := c.pass(); !p.Done {
			t.Errorf("%q: the plan is not done, want that it is: %s", policyName, p)
		}
	}
}

// Pruning does not wait for a purge.
func TestPruningDoesNotWaitForAPurge(t *testing.T) {
	c := newComponent(t, with(configMap("hook"), purged(0)), foo("old"), secret("old"))
	c.rollOutAll(t)
	c.desired = []plan.Desired{with(configMap("hook"), purged(0), digest("2"))}
	c.cluster.finalized[configMap("hook").Key], c.cluster.trace = true, nil
	c.pass()
	same(t, "operations", c.cluster.trace, []string{"create hook", "delete old", "delete old", "purge hook"})
	c.there(t, configMap("hook"))
}

// An object may be adopted and recreated at once.
func TestRecreateOfWhatIsAdopted(t *testing.T) {
	for _, test := range []struct {
		ownership plan.Ownership
		adoption  apis.AdoptionPolicy
		written   string
		want      []string
	}{
		{plan.Unowned, apis.AdoptIfUnowned, "", []string{"adopt c"}},
		{plan.Unowned, apis.AdoptAlways, "0", []string{"recreate c", "create c"}},
		{plan.Predecessor, apis.AdoptIfUnowned, "0", []string{"recreate c", "create c"}},
		{plan.Predecessor, apis.AdoptIfUnowned, "1", []string{"adopt c"}},
		{plan.Foreign, apis.AdoptAlways, "", []string{"adopt c"}},
		{plan.Foreign, apis.AdoptAlways, "0", []string{"recreate c", "create c"}},
		{plan.Foreign, apis.AdoptIfUnowned, "0", nil},
	} {
		c := newComponent(t, with(configMap("c"), policy(apis.UpdateRecreate), policy(test.adoption)))
		c.cluster.put(configMap("c").Key, test.ownership).digest = test.written
		p := c.pass()
		same(t, "operations", c.cluster.trace, test.want)
		if p.Done != (test.want != nil) {
			t.Errorf("%d, %s, written for %q: done is %t, want %t: %s", test.ownership, test.adoption, test.written,
				p.Done, !p.Done, p)
		}
	}
}

// Two components desire the same object with AdoptAlways. The one that adopted it last keeps it. The other one
// reports that, and does not write.
func TestComponentsDoNotFight(t *testing.T) {
	c := newComponent(t, with(configMap("c"), policy(apis.AdoptAlways)))
	c.rollOutAll(t)
	theirs := c.cluster.objects[configMap("c").Key]
	theirs.ownership, theirs.digest, theirs.fields = plan.Foreign, "theirs", "theirs"
	c.cluster.trace = nil
	for _, change := range []func(){func() {}, func() { c.desired[0].Digest = "2" }, func() { c.cluster.now = c.cluster.now.Add(time.Hour) }} {
		change()
		p := c.pass()
		same(t, "operations", c.cluster.trace, nil)
		same(t, "obstacles", obstacles(p), []string{"not ours c: it was ours, and now belongs to Other space/them"})
	}
	// Neither does it go with the component that lost it.
	c.deleting = true
	if p := c.pass(); !p.Done || c.cluster.objects[configMap("c").Key] == nil {
		t.Errorf("the operations are %q, want the object there and the plan done:\n%s", c.cluster.trace, p)
	}
}

// An orphaned object has no owner, and another component may adopt it.
func TestOrphansAreFree(t *testing.T) {
	c := newComponent(t, with(configMap("c"), policy(apis.DeleteOrphan)), configMap("kept"))
	c.rollOutAll(t)
	c.desired = c.desired[1:]
	c.rollOutAll(t)
	if got := c.cluster.objects[configMap("c").Key].ownership; got != plan.Unowned {
		t.Errorf("the ownership is %d, want %d", got, plan.Unowned)
	}
	successor := &component{cluster: c.cluster, desired: []plan.Desired{configMap("c")}, unobserved: map[plan.Key]bool{}}
	c.cluster.trace = nil
	successor.rollOutAll(t)
	same(t, "operations", c.cluster.trace, []string{"adopt c"})
}

// An object with another UID is another object. An operation names the UID of the object that exists. Whether it has
// to be written is decided by its fields, not by its labels.
func TestCopyOfAnObject(t *testing.T) {
	d := configMap("c")
	r, s := asIs(d), live(d)
	s.UID, s.Generation, s.Fields = "u2", 1, "restored"
	p := plan.Make(single(d, &r, s))
	same(t, "operations", actions(p), []string{"apply c"})
	if o := p.Next.Operations[0]; o.UID != "u2" || p.Inventory[0].UID != "u2" || p.Inventory[0].Generation != 0 {
		t.Errorf("the operation is %+v and the record %+v, want the UID u2 in both and no generation", o,
			p.Inventory[0])
	}
}

// Two records may name the same object, by another group or another scope. The object is not deleted.
func TestOneObjectUnderTwoRecords(t *testing.T) {
	old, moved := asIs(foo("foo")), foo("foo")
	moved.Namespace = ""
	in := plan.Input{Desired: []plan.Desired{moved}, Inventory: []apis.InventoryRecord{old, asIs(moved)},
		Observed: map[plan.Key]plan.Observed{plan.KeyOf(old): live(foo("foo")), moved.Key: live(moved)}}
	p := plan.Make(in)
	if !p.Done || len(p.Inventory) != 1 || plan.KeyOf(p.Inventory[0]) != moved.Key {
		t.Errorf("the records are %v, want one for %s and the plan done:\n%s", p.Inventory, moved.Key, p)
	}
}

// An object that was deleted, and restored with our labels, is deleted again.
func TestRestoredWhileBeingDeleted(t *testing.T) {
	c := newComponent(t, configMap("c"), foo("foo"))
	c.rollOutAll(t)
	c.deleting = true
	c.cluster.finalized[foo("foo").Key] = true
	c.pass()
	for range 2 {
		c.cluster.finalize(foo("foo").Key)
		c.cluster.finalized[foo("foo").Key] = true
		c.cluster.put(foo("foo").Key, plan.Ours)
		p := c.pass()
		same(t, "obstacles", obstacles(p), []string{"waiting foo: it is being deleted"})
	}
	c.cluster.finalize(foo("foo").Key)
	if p := c.pass(); !p.Done || c.cluster.deleted[foo("foo").Key] != 3 {
		t.Errorf("foo was deleted %d times, want 3 and the plan done:\n%s", c.cluster.deleted[foo("foo").Key], p)
	}
}

// A purge ends with any owner of the object.
func TestPurgeOfWhatIsMadeAgain(t *testing.T) {
	for _, ownership := range []plan.Ownership{plan.Unowned, plan.Foreign, plan.Ours} {
		c := newComponent(t, with(foo("hook"), purged(0)), with(configMap("later"), order(1, 0)))
		c.cluster.finalized[foo("hook").Key] = true
		c.pass()
		c.cluster.makeReady(foo("hook").Key)
		c.pass()
		c.cluster.finalize(foo("hook").Key)
		c.cluster.put(foo("hook").Key, ownership)
		if p := c.pass(); !p.Done {
			t.Errorf("made again by %d: the plan is not done, want that it is: %s", ownership, p)
		}
		if left := c.cluster.objects[foo("hook").Key] != nil; left != (ownership != plan.Ours) {
			t.Errorf("made again by %d: that it is there is %v, want %v", ownership, left, !left)
		}
	}
}

// If a key is there twice, the first one counts.
func TestDuplicatesAreNoPanic(t *testing.T) {
	record := asIs(configMap("c"))
	other := record
	other.UID, other.Digest, other.Phase = "u9", "", apis.PhaseDeleting
	desired := []plan.Desired{configMap("c"), with(configMap("c"), digest("2"), order(3, 3))}
	in := plan.Input{Desired: desired, Inventory: []apis.InventoryRecord{record, other},
		Observed: map[plan.Key]plan.Observed{desired[0].Key: live(desired[0])}}
	if p := plan.Make(in); !p.Done || len(p.Inventory) != 1 || p.Inventory[0].Digest != "1" {
		t.Errorf("the records are %v, want one with the digest 1 and the plan done:\n%s", p.Inventory, p)
	}
	in.Deleting = true
	if p := plan.Make(in); len(p.Next.Operations) != 1 || p.Next.Operations[0].UID != "u1" || len(p.Inventory) != 1 {
		t.Errorf("the records are %v, want one, and one operation with the UID u1:\n%s", p.Inventory, p)
	}
	folded := plan.Fold(in.Inventory, []plan.Outcome{{Operation: plan.Operation{Action: plan.ActionOrphan, Key: desired[0].Key, Pattern: -1}}}, start)
	if len(folded) != 1 {
		t.Errorf("the records are %v, want one", folded)
	}
}

// An object that failed without a message gets one. Its phase is the one of a created object.
func TestRecreatedButNotReady(t *testing.T) {
	d := with(foo("c"), policy(apis.UpdateRecreate))
	r, s := asIs(d), live(d)
	r.Phase, s.Status, s.Message = apis.PhaseRecreating, apis.ObjectFailed, ""
	p := plan.Make(single(d, &r, s))
	same(t, "obstacles", obstacles(p), []string{"failed c: it cannot become ready"})
	if phase := p.Inventory[0].Phase; phase != apis.PhaseCreating {
		t.Errorf("the phase is %s, want %s", phase, apis.PhaseCreating)
	}
}

// A simulation assumes what is not observed: an object exists if it was written before, and not otherwise.
func TestSimulationOfUnobservedObjects(t *testing.T) {
	written, never := configMap("written"), configMap("never")
	record := asIs(written)
	in := plan.Input{Desired: []plan.Desired{written, never}, Inventory: []apis.InventoryRecord{record}, Now: start}
	in.Inventory[0].LastAppliedAt = &metav1.Time{Time: start}
	want := "wave 1 of 1\n  create ConfigMap app/never: it does not exist\n"
	if got := plan.Explain(in); got != want {
		t.Errorf("it is\n%s, want\n%s", got, want)
	}
	if in.Observed != nil || in.Inventory[0].LastAppliedAt == nil {
		t.Errorf("the input has the observed objects %v and the records %+v, want it unchanged", in.Observed,
			in.Inventory)
	}
	// Obstacles that stay are listed.
	in.Patterns, in.Deleting, in.PatternUses = []plan.Pattern{{Kind: "Pod"}}, true, map[int]plan.Use{0: {State: plan.ForeignBlocking}}
	if got, want := plan.Explain(in), "in the way\n  blocked: types Pod of the core group: in use by others\n"; got != want {
		t.Errorf("it is\n%s, want\n%s", got, want)
	}
}
