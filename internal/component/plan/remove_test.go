package plan_test

import (
	"slices"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/plan"
)

func TestNothingIsDeletedBeforeAllChecks(t *testing.T) {
	c := newComponent(t, crd("baz"), baz("mine"), with(configMap("c"), order(0, -5)))
	c.patterns = []plan.Pattern{{Group: "test.local", Kind: "Foo"}, {Group: "*.local", Kind: "*"},
		{Group: "test.local", Kind: "Foo"}}
	c.rollOutAll(t)
	c.deleting, c.cluster.trace = true, nil
	c.cluster.pattern[1] = []string{"Bar app/theirs"}
	before := c.phases()
	p := c.pass()
	c.expect(p, false, before)
	same(t, "operations", c.cluster.trace, []string{"check baz.test.local", "check ", "check "})
	if got := plan.Message(p, 200); got != "deletion has not begun, blocked: types * of *.local: in use by Bar app/theirs" {
		t.Error(got)
	}
	delete(c.cluster.pattern, 1)
	if p = c.pass(); !p.Done {
		t.Error(p)
	}
	same(t, "operations", c.cluster.trace[3:],
		[]string{"check baz.test.local", "check ", "check ", "delete c", "delete mine", "delete type baz.test.local"})
}

// Once the deletion has begun, the checks are not repeated. Only the deletion of a type checks again.
func TestChecksAreNotRepeated(t *testing.T) {
	c := newComponent(t, crd("baz"), with(foo("first"), order(0, -5)), with(foo("second"), order(0, -4)))
	c.patterns = []plan.Pattern{{Group: "test.local", Kind: "Foo"}}
	c.rollOutAll(t)
	c.deleting = true
	c.cluster.finalized[foo("first").Key], c.cluster.finalized[foo("second").Key] = true, true
	c.pass()
	c.cluster.finalize(foo("first").Key)
	c.pass()
	if c.cluster.checks != 2 {
		t.Errorf("there are %d checks, want 2", c.cluster.checks)
	}
	// In the end the type turns out to be in use all the same.
	c.cluster.foreign[crd("baz").Key] = []string{"Baz app/x"}
	c.cluster.finalize(foo("second").Key)
	p := c.pass()
	same(t, "obstacles", obstacles(p), []string{"blocked baz.test.local: in use by Baz app/x"})
	delete(c.cluster.foreign, crd("baz").Key)
	if p = c.pass(); !p.Done || c.cluster.checks != 2 {
		t.Errorf("there are %d checks, want 2 and the plan done:\n%s", c.cluster.checks, p)
	}
}

func TestWhatNeedsNoCheck(t *testing.T) {
	d := crd("baz")
	for name, test := range map[string]struct {
		record func(*apis.InventoryRecord)
		seen   func(*plan.Observed)
		want   []string
	}{
		"a type of ours":         {want: []string{"check baz.test.local"}},
		"orphaned":               {record: func(r *apis.InventoryRecord) { r.DeletePolicy = apis.DeleteOrphanOnDelete }, want: []string{"orphan baz.test.local"}},
		"orphaned otherwise":     {record: func(r *apis.InventoryRecord) { r.DeletePolicy = apis.DeleteOrphanOnApply }, want: []string{"check baz.test.local"}},
		"ignored":                {record: func(r *apis.InventoryRecord) { r.IgnoreForeignInstances = true }, want: []string{"delete baz.test.local"}},
		"ignored in the cluster": {seen: func(s *plan.Observed) { s.IgnoreForeignInstances = true }, want: []string{"delete type baz.test.local"}},
		"committed":              {record: func(r *apis.InventoryRecord) { r.Phase = apis.PhaseScheduledForDeletion }, want: []string{"delete type baz.test.local"}},
		"dropped before":         {record: func(r *apis.InventoryRecord) { r.Digest, r.Phase = "", apis.PhaseDeleting }, want: []string{"check baz.test.local"}},
		"not ours":               {seen: func(s *plan.Observed) { s.Ownership = plan.Foreign }},
		"gone":                   {seen: func(s *plan.Observed) { *s = plan.Observed{Presence: plan.Absent} }},
		"being deleted already":  {seen: func(s *plan.Observed) { s.Terminating = true }},
	} {
		t.Run(name, func(t *testing.T) {
			r, s := asIs(d), live(d)
			if test.record != nil {
				test.record(&r)
			}
			if test.seen != nil {
				test.seen(&s)
			}
			p := plan.Make(plan.Input{Deleting: true, Inventory: []apis.InventoryRecord{r},
				Observed: map[plan.Key]plan.Observed{d.Key: s}})
			same(t, "operations", actions(p), test.want)
		})
	}
}

// If something is known to block from the start, nothing else is checked.
func TestDeletionThatIsKnownToBeBlocked(t *testing.T) {
	refused, free := crd("baz"), crd("foo")
	in := plan.Input{Deleting: true, Inventory: []apis.InventoryRecord{asIs(free), asIs(refused)},
		Observed: map[plan.Key]plan.Observed{free.Key: live(free), refused.Key: live(refused)},
		Patterns: []plan.Pattern{{Group: "*", Kind: "*"}},
		Uses:     map[plan.Key]plan.Use{refused.Key: {State: plan.ForeignUnknown, Reason: "no fence", Unfenced: true}}}
	p := plan.Make(in)
	same(t, "operations", actions(p), nil)
	same(t, "obstacles", obstacles(p), []string{"blocked baz.test.local: it is not known whether others use it: no fence"})
}

func TestDeletionWaitsForWhatIsNotKnown(t *testing.T) {
	d := crd("baz")
	in := plan.Input{Deleting: true, Inventory: []apis.InventoryRecord{asIs(d), asIs(configMap("c"))},
		Observed: map[plan.Key]plan.Observed{configMap("c").Key: live(configMap("c"))}}
	p := plan.Make(in)
	same(t, "operations", actions(p), nil)
	same(t, "obstacles", obstacles(p), []string{"waiting baz.test.local: it is not known yet whether it exists"})
	in.Observed[d.Key] = live(d)
	in.Failed = map[plan.Key]string{d.Key: "forbidden"}
	same(t, "obstacles", obstacles(plan.Make(in)), []string{"failed baz.test.local: forbidden"})
}

func TestAllOrphanedNeedsNoPermission(t *testing.T) {
	d := with(configMap("c"), policy(apis.DeleteOrphan))
	r := asIs(d)
	r.DeletePolicy = apis.DeleteOrphan
	in := plan.Input{Deleting: true, Inventory: []apis.InventoryRecord{r},
		Observed: map[plan.Key]plan.Observed{d.Key: live(d)},
		Patterns: []plan.Pattern{{Group: "*", Kind: "*"}}}
	same(t, "operations", actions(plan.Make(in)), []string{"orphan c"})
}

func TestDeleteCanonicalOrder(t *testing.T) {
	webhook := object1("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", "webhook")
	class := object1("storage.k8s.io", "StorageClass", "class")
	webhook.Namespace, class.Namespace = "", ""
	c := newComponent(t, class, namespace("app"), configMap("c"), webhook, crd("baz"), foo("foo"), baz("instance"),
		bar("listed"))
	c.patterns = []plan.Pattern{{Group: "test.local", Kind: "Bar"}}
	c.rollOutAll(t)
	c.deleting, c.cluster.trace = true, nil
	if p := c.pass(); !p.Done {
		t.Error(p)
	}
	same(t, "operations", c.cluster.trace, []string{"check baz.test.local", "check ", "delete webhook", "delete instance",
		"delete listed", "delete type baz.test.local", "delete foo",
		"delete c", "delete if unused app", "delete class"})
}

// Priorities give an order only. An object does not wait for one with an earlier priority.
func TestDeletionDoesNotWaitBetweenPriorities(t *testing.T) {
	class := object1("storage.k8s.io", "StorageClass", "class")
	class.Namespace = ""
	c := newComponent(t, class, namespace("app"), configMap("c"))
	c.rollOutAll(t)
	c.deleting, c.cluster.trace = true, nil
	c.cluster.finalized[configMap("c").Key] = true
	c.pass()
	same(t, "operations", c.cluster.trace, []string{"delete c", "delete class"})
	c.cluster.finalize(configMap("c").Key)
	if p := c.pass(); !p.Done {
		t.Error(p)
	}
	same(t, "operations", c.cluster.trace, []string{"delete c", "delete class", "delete if unused app"})
}

// A container goes no earlier than its contents, for any delete orders.
func TestContradictoryDeleteOrders(t *testing.T) {
	c := newComponent(t, with(namespace("app"), order(0, -3)), with(crd("baz"), order(0, -2)),
		with(baz("instance"), order(0, 7)))
	c.rollOutAll(t)
	c.deleting = true
	if p := c.pass(); !p.Done {
		t.Error(p)
	}
}

func TestDeletionProgress(t *testing.T) {
	c := newComponent(t, foo("a"), foo("b"), with(foo("c"), order(0, 1)), with(foo("d"), order(0, 2)))
	c.rollOutAll(t)
	c.deleting = true
	c.cluster.finalized[foo("b").Key] = true
	p := c.pass()
	if want := (plan.Progress{Wave: 1, Waves: 3, Ready: 1, Total: 2}); p.Progress != want {
		t.Errorf("progress is %+v, want %+v", p.Progress, want)
	}
	if got := plan.Message(p, 200); got != "3 objects left to delete, waiting for Foo app/b: it is being deleted" {
		t.Error(got)
	}
}

func TestDeletionThatFailsDoesNotStopNeighbours(t *testing.T) {
	a, b, later := configMap("a"), configMap("b"), with(configMap("later"), order(0, 1))
	in := plan.Input{Deleting: true, Inventory: []apis.InventoryRecord{asIs(a), asIs(b), asIs(later)},
		Failed:   map[plan.Key]string{a.Key: "forbidden"},
		Observed: map[plan.Key]plan.Observed{a.Key: live(a), b.Key: live(b), later.Key: live(later)}}
	in.Inventory[2].DeleteOrder = 1
	p := plan.Make(in)
	same(t, "operations", actions(p), []string{"delete b"})
	same(t, "obstacles", obstacles(p), []string{"failed a: forbidden"})
}

// A type that turns out to be in use stops the deletion of the component: later delete waves wait for it.
func TestBlockedTypeHoldsLaterWavesOfADeletion(t *testing.T) {
	c := newComponent(t, with(foo("first"), order(0, -1)), crd("baz"), with(configMap("later"), order(0, 1)))
	c.rollOutAll(t)
	c.deleting, c.cluster.trace = true, nil
	c.cluster.finalized[foo("first").Key] = true
	c.pass()
	c.cluster.foreign[crd("baz").Key] = []string{"Baz app/x"}
	c.cluster.finalize(foo("first").Key)
	for range 2 {
		p := c.pass()
		same(t, "obstacles", obstacles(p), []string{"blocked baz.test.local: in use by Baz app/x"})
	}
	same(t, "operations while the type is in use", c.cluster.trace,
		[]string{"check baz.test.local", "delete first", "delete type baz.test.local", "delete type baz.test.local"})
	delete(c.cluster.foreign, crd("baz").Key)
	if p := c.pass(); !p.Done {
		t.Error(p)
	}
	same(t, "operations", c.cluster.trace[4:], []string{"delete type baz.test.local", "delete later"})
}

// An object that defines its own kind waits for other instances of the kind, and not for itself.
func TestObjectThatDefinesItsOwnKind(t *testing.T) {
	definer := object1("meta.local", "Definition", "definer")
	definer.ManagedTypes = []apis.ManagedType{{Group: "meta.local", Version: "*", Kind: "Definition"}}
	instance := object1("meta.local", "Definition", "instance")
	for _, test := range []struct {
		desired []plan.Desired
		want    []string
	}{
		{[]plan.Desired{definer}, []string{"delete type definer"}},
		{[]plan.Desired{definer, instance}, []string{"delete instance", "delete type definer"}},
	} {
		for _, whole := range []bool{true, false} {
			c := newComponent(t, test.desired...)
			c.rollOutAll(t)
			c.cluster.trace = nil
			if whole {
				c.deleting = true
			} else {
				c.desired, c.allowEmpty = nil, true
			}
			if p := c.pass(); !p.Done {
				t.Errorf("deletion of the whole component %v: the plan is not done, want that it is:\n%s", whole, p)
			}
			operations := slices.DeleteFunc(c.cluster.trace, func(o string) bool { return o == "check definer" })
			same(t, "operations", operations, test.want)
		}
	}
}

// An orphaned namespace is not deleted, so it does not wait for its contents.
func TestOrphanedNamespaceDoesNotWait(t *testing.T) {
	for name, test := range map[string]struct {
		change func(c *component)
		want   []string
	}{
		"with the component": {func(c *component) { c.deleting = true }, []string{"delete foo", "orphan app"}},
		"what is in it goes": {
			func(c *component) { c.desired, c.allowEmpty = nil, true }, []string{"delete foo", "orphan app"},
		},
		"what is in it stays": {func(c *component) { c.desired = c.desired[1:] }, []string{"orphan app"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newComponent(t, with(namespace("app"), policy(apis.DeleteOrphan)), foo("foo"))
			c.rollOutAll(t)
			c.cluster.finalized[foo("foo").Key], c.cluster.trace = true, nil
			test.change(c)
			c.pass()
			same(t, "operations", c.cluster.trace, test.want)
		})
	}
}

// Our labels are removed from an orphan even if another client deletes it.
func TestOrphanThatIsBeingDeleted(t *testing.T) {
	d := with(configMap("c"), policy(apis.DeleteOrphan))
	r, s := asIs(d), live(d)
	r.DeletePolicy, s.Terminating = apis.DeleteOrphan, true
	for _, deleting := range []bool{true, false} {
		in := plan.Input{Deleting: deleting, AllowEmpty: true, Inventory: []apis.InventoryRecord{r},
			Observed: map[plan.Key]plan.Observed{d.Key: s}}
		same(t, "operations", actions(plan.Make(in)), []string{"orphan c"})
	}
}

// Progress counts objects that are gone since the last plan, also of an earlier wave.
func TestProgressCountsWhatIsGone(t *testing.T) {
	a, b := configMap("a"), with(foo("b"), order(0, 1))
	records := []apis.InventoryRecord{asIs(a), asIs(b)}
	records[1].DeleteOrder = 1
	p := plan.Make(plan.Input{Deleting: true, Inventory: records,
		Observed: map[plan.Key]plan.Observed{a.Key: {Presence: plan.Absent}, b.Key: live(b)}})
	if want := (plan.Progress{Wave: 1, Waves: 1, Ready: 1, Total: 2}); p.Progress != want {
		t.Errorf("progress is %+v, want %+v", p.Progress, want)
	}
}

// An object that defines types goes after all instances of managed types, even if it is one of them.
func TestTypeThatIsManagedGoesLast(t *testing.T) {
	c := newComponent(t, crd("baz"), foo("foo"))
	c.patterns = []plan.Pattern{{Group: "*", Kind: "*"}}
	c.rollOutAll(t)
	c.deleting, c.cluster.trace = true, nil
	c.pass()
	same(t, "operations", c.cluster.trace, []string{"check baz.test.local", "check ", "delete foo",
		"delete type baz.test.local"})
}

// TestObstaclesOfADeletion shows which obstacle an object has that is to be deleted.
func TestObstaclesOfADeletion(t *testing.T) {
	type change func(r *apis.InventoryRecord, s *plan.Observed, in *plan.Input)
	for name, test := range map[string]struct {
		definer  plan.Desired
		change   change
		obstacle string
	}{
		"not observed": {
			namespace("app"), func(_ *apis.InventoryRecord, s *plan.Observed, _ *plan.Input) { *s = plan.Observed{} },
			"waiting app: it is not known yet whether it exists",
		},
		"deleted, and not observed since": {
			namespace("app"), func(r *apis.InventoryRecord, s *plan.Observed, _ *plan.Input) {
				r.Digest, r.Phase, *s = "", apis.PhaseDeleting, plan.Observed{}
			},
			"waiting app: it is being deleted",
		},
		"being deleted, with contents": {
			namespace("app"), func(_ *apis.InventoryRecord, s *plan.Observed, _ *plan.Input) { s.Terminating = true },
			"waiting app: it is being deleted",
		},
		"with contents": {
			namespace("app"), func(*apis.InventoryRecord, *plan.Observed, *plan.Input) {},
			"waiting app: what depends on it has to go first: 1 left",
		},
		"in use by others, with instances": {
			crd("baz"), func(_ *apis.InventoryRecord, _ *plan.Observed, in *plan.Input) {
				in.Uses = map[plan.Key]plan.Use{crd("baz").Key: {State: plan.ForeignBlocking}}
			},
			"waiting baz.test.local: what depends on it has to go first: 1 left",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, s := asIs(test.definer), live(test.definer)
			in := plan.Input{AllowEmpty: true}
			test.change(&r, &s, &in)
			in.Inventory = []apis.InventoryRecord{r, asIs(baz("instance"))}
			in.Observed = map[plan.Key]plan.Observed{test.definer.Key: s, baz("instance").Key: live(baz("instance"))}
			same(t, "obstacles", obstacles(plan.Make(in)), []string{test.obstacle})
		})
	}
}

// A record of a kind whose objects are not kept, as an earlier version wrote it, does not hold up the deletion.
func TestRecordOfWhatIsNotKept(t *testing.T) {
	d := object1("authentication.k8s.io", "TokenReview", "question")
	p := plan.Make(plan.Input{Deleting: true, Inventory: []apis.InventoryRecord{asIs(d)}})
	if !p.Done || len(p.Inventory) > 0 {
		t.Errorf("the plan is done: %t, with the records %v, want it done without any", p.Done, p.Inventory)
	}
}
