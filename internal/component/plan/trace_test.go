package plan_test

import (
	"maps"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/plan"
)

const (
	scheduled = "ScheduledForApplication/InProgress"
	creating  = "Creating/InProgress"
	updating  = "Updating/InProgress"
	ready     = "Ready/Current"
	completed = "Completed/"
	deleting  = "Deleting/Terminating"
	dropped   = "ScheduledForDeletion/Terminating"
)

func newComponent(t testing.TB, desired ...plan.Desired) *component {
	c := newCluster(t)
	c.slow["Foo"], c.slow["Bar"], c.slow["Baz"] = true, true, true
	return &component{cluster: c, desired: desired, unobserved: map[plan.Key]bool{}}
}

// TestTraceOneConfigMap: an object without a status is ready in the request that creates it.
func TestTraceOneConfigMap(t *testing.T) {
	c := newComponent(t, configMap("c"))
	c.expect(c.pass(), true, map[string]string{"c": ready})
	c.expect(c.pass(), true, map[string]string{"c": ready})
	same(t, "operations", c.cluster.trace, []string{"create c"})
}

// TestTraceOneFoo: an object with a status is waited for.
func TestTraceOneFoo(t *testing.T) {
	c := newComponent(t, foo("foo"))
	c.expect(c.pass(), false, map[string]string{"foo": creating})
	c.expect(c.pass(), false, map[string]string{"foo": creating})
	c.cluster.makeReady(foo("foo").Key)
	c.expect(c.pass(), true, map[string]string{"foo": ready})
	c.expect(c.pass(), true, map[string]string{"foo": ready})
	same(t, "operations", c.cluster.trace, []string{"create foo"})
}

// TestTraceOrdersAndPurge: waves, and objects that are purged between them.
func TestTraceOrdersAndPurge(t *testing.T) {
	c := newComponent(t, with(configMap("c"), purged(1)), with(foo("foo"), order(1, 0), purged(1)),
		with(secret("s"), order(2, 0)))
	c.cluster.finalized[foo("foo").Key] = true
	c.expect(c.pass(), false, map[string]string{"c": ready, "foo": creating, "s": scheduled})
	c.expect(c.pass(), false, map[string]string{"c": ready, "foo": creating, "s": scheduled})
	c.cluster.makeReady(foo("foo").Key)
	c.expect(c.pass(), false, map[string]string{"c": completed, "foo": "Completing/Terminating", "s": scheduled})
	c.cluster.finalize(foo("foo").Key)
	c.expect(c.pass(), true, map[string]string{"c": completed, "foo": completed, "s": ready})
	c.expect(c.pass(), true, map[string]string{"c": completed, "foo": completed, "s": ready})
	same(t, "operations", c.cluster.trace, []string{"create c", "create foo", "purge foo", "purge c", "create s"})
}

// TestTraceManagedInstancesArePostponed: instances of managed types come last in their wave.
func TestTraceManagedInstancesArePostponed(t *testing.T) {
	c := newComponent(t, baz("baz"), bar("bar"), foo("foo"), crd("baz"))
	c.patterns = []plan.Pattern{{Group: "test.local", Kind: "Bar"}}
	c.expect(c.pass(), false, map[string]string{"foo": creating, "baz.test.local": ready, "bar": scheduled,
		"baz": scheduled})
	c.cluster.makeReady(foo("foo").Key)
	c.expect(c.pass(), false, map[string]string{"foo": ready, "baz.test.local": ready, "bar": creating,
		"baz": creating})
	c.cluster.makeReady(bar("bar").Key, baz("baz").Key)
	c.expect(c.pass(), true, map[string]string{"foo": ready, "baz.test.local": ready, "bar": ready, "baz": ready})
	same(t, "operations", c.cluster.trace, []string{"create baz.test.local", "create foo", "create baz", "create bar"})
}

// TestTraceUpdate: only changed objects are written, and waited for again.
func TestTraceUpdate(t *testing.T) {
	c := newComponent(t, foo("a"), foo("b"), foo("c"))
	c.pass()
	c.cluster.makeReady(foo("a").Key, foo("b").Key)
	c.expect(c.pass(), false, map[string]string{"a": ready, "b": ready, "c": creating})
	c.desired[0].Digest, c.desired[2].Digest = "2", "2"
	c.expect(c.pass(), false, map[string]string{"a": updating, "b": ready, "c": updating})
	c.cluster.makeReady(foo("a").Key, foo("c").Key)
	c.expect(c.pass(), true, map[string]string{"a": ready, "b": ready, "c": ready})
	if digest := c.cluster.objects[foo("c").Key].digest; digest != "2" {
		t.Errorf("c has the digest %s, want 2", digest)
	}
}

// TestTraceRecreate: only a changed desired state recreates an object.
func TestTraceRecreate(t *testing.T) {
	c := newComponent(t, with(configMap("c"), policy(apis.UpdateRecreate)))
	c.pass()
	c.pass()
	before := c.cluster.objects[configMap("c").Key].uid
	if c.expect(c.pass(), true, map[string]string{"c": ready}); c.cluster.objects[configMap("c").Key].uid != before {
		t.Errorf("c has the UID %s, want %s: it was recreated for nothing", c.cluster.objects[configMap("c").Key].uid,
			before)
	}
	c.desired[0].Digest = "2"
	c.expect(c.pass(), true, map[string]string{"c": ready})
	if after := c.cluster.objects[configMap("c").Key]; after.uid == before || after.digest != "2" {
		t.Errorf("the object is %+v, want another UID than %s and the digest 2", after, before)
	}
	same(t, "operations", c.cluster.trace, []string{"create c", "recreate c", "create c"})
}

// TestTraceFieldReclaim: the update policy ApplyOverride asks to take over the fields of certain managers.
func TestTraceFieldReclaim(t *testing.T) {
	c := newComponent(t, with(configMap("c"), policy(apis.UpdateApplyOverride)))
	c.pass()
	c.cluster.objects[configMap("c").Key].fields = "fewer"
	p := plan.Make(c.input())
	same(t, "operations", actions(p), []string{"apply c"})
	if !p.Next.Operations[0].Override {
		t.Errorf("the operation is %+v, want an override, which takes the fields of others", p.Next.Operations[0])
	}
}

// TestTraceOnce: an object with the policy Once is not written again.
func TestTraceOnce(t *testing.T) {
	c := newComponent(t, with(configMap("c"), digest(plan.DigestOnce)))
	c.pass()
	c.cluster.objects[configMap("c").Key].fields = "fewer"
	c.expect(c.pass(), true, map[string]string{"c": ready})
	same(t, "operations", c.cluster.trace, []string{"create c"})
}

func redundant(t *testing.T) *component {
	c := newComponent(t, with(configMap("c1"), policy(apis.DeleteOrphan), order(0, 2)),
		with(configMap("c2"), policy(apis.DeleteOrphanOnApply), order(0, 2)),
		with(configMap("c3"), policy(apis.DeleteOrphanOnDelete), order(0, 2)),
		with(secret("s"), order(0, 1)), foo("foo"))
	c.cluster.finalized[foo("foo").Key] = true
	c.pass()
	c.cluster.makeReady(foo("foo").Key)
	if !c.pass().Done {
		t.Fatal("the pass is not done, want it rolled out")
	}
	return c
}

func (c *component) there(t *testing.T, want ...plan.Desired) {
	t.Helper()
	objects := map[plan.Key]bool{}
	for key := range c.cluster.objects {
		objects[key] = true
	}
	wanted := map[plan.Key]bool{}
	for _, d := range want {
		wanted[d.Key] = true
	}
	if !maps.Equal(objects, wanted) {
		t.Errorf("the cluster has %v, want %v", objects, wanted)
	}
}

// TestTraceRedundantObjects: undesired objects are deleted in order, or orphaned.
func TestTraceRedundantObjects(t *testing.T) {
	c := redundant(t)
	c.desired = []plan.Desired{with(secret("s"), order(0, 1))}
	want := map[string]string{"c1": dropped, "c2": dropped, "c3": dropped, "foo": deleting, "s": ready}
	c.expect(c.pass(), false, want)
	c.expect(c.pass(), false, want)
	c.cluster.finalize(foo("foo").Key)
	c.expect(c.pass(), true, map[string]string{"s": ready})
	c.there(t, secret("s"), configMap("c1"), configMap("c2"))
}

func managed(t *testing.T) *component {
	c := newComponent(t, foo("foo"), bar("bar"), baz("baz"), crd("baz"))
	c.patterns = []plan.Pattern{{Group: "test.local", Kind: "Bar"}}
	for _, d := range c.desired[:3] {
		c.cluster.finalized[d.Key] = true
	}
	c.pass()
	c.cluster.makeReady(foo("foo").Key)
	c.pass()
	c.cluster.makeReady(bar("bar").Key, baz("baz").Key)
	if !c.pass().Done {
		t.Fatal("the pass is not done, want it rolled out")
	}
	c.cluster.trace = nil
	return c
}

// TestTraceRedundantManagedInstances: instances of managed types are deleted first.
func TestTraceRedundantManagedInstances(t *testing.T) {
	c := managed(t)
	c.desired, c.allowEmpty = nil, true
	want := map[string]string{"foo": dropped, "baz.test.local": dropped, "bar": deleting, "baz": deleting}
	c.expect(c.pass(), false, want)
	c.expect(c.pass(), false, want)
	c.cluster.finalize(bar("bar").Key, baz("baz").Key)
	c.expect(c.pass(), false, map[string]string{"foo": deleting})
	c.cluster.finalize(foo("foo").Key)
	c.expect(c.pass(), true, map[string]string{})
	same(t, "operations", c.cluster.trace, []string{"delete bar", "delete baz", "check baz.test.local",
		"delete type baz.test.local", "delete foo"})
}

// TestTraceAdoption: an existing object is adopted according to the policy.
func TestTraceAdoption(t *testing.T) {
	for policyName, want := range map[apis.AdoptionPolicy][2]string{
		apis.AdoptIfUnowned: {"adopt c", "not ours s: it belongs to Other space/them; adoption-policy: always adopts it"},
		apis.AdoptNever:     {"", "not ours s: it belongs to Other space/them; adoption-policy: always adopts it"},
		apis.AdoptAlways:    {"adopt c", ""},
	} {
		t.Run(string(policyName), func(t *testing.T) {
			c := newComponent(t, with(configMap("c"), policy(policyName)), with(secret("s"), policy(policyName)))
			c.cluster.put(configMap("c").Key, plan.Unowned)
			c.cluster.put(secret("s").Key, plan.Foreign)
			p := plan.Make(c.input())
			var operations, shown []string
			if want[0] != "" {
				operations = []string{want[0]}
			} else {
				shown = []string{"not ours c: it exists already; adoption-policy: if-unowned adopts it"}
			}
			if want[1] != "" {
				shown = append(shown, want[1])
			} else {
				operations = append(operations, "adopt s")
			}
			same(t, "operations", actions(p), operations)
			same(t, "obstacles", obstacles(p), shown)
			if done := c.pass().Done; done != (policyName == apis.AdoptAlways) {
				t.Errorf("done is %v, want %v", done, !done)
			}
		})
	}
}

// TestTraceDelete: all objects are deleted in order, or orphaned.
func TestTraceDelete(t *testing.T) {
	c := redundant(t)
	c.deleting = true
	c.pass()
	if phase := c.phases()["foo"]; phase != deleting {
		t.Errorf("foo is %s, want %s", phase, deleting)
	}
	c.there(t, c.desired...)
	c.cluster.finalize(foo("foo").Key)
	c.expect(c.pass(), true, map[string]string{})
	c.there(t, configMap("c1"), configMap("c3"))
}

// TestTraceDeleteWithManagedInstances: instances of managed types are deleted first.
func TestTraceDeleteWithManagedInstances(t *testing.T) {
	c := managed(t)
	c.deleting = true
	c.pass()
	c.pass()
	c.cluster.finalize(bar("bar").Key, baz("baz").Key)
	if c.pass().Done {
		t.Error("the pass is done, want it to wait for foo")
	}
	c.cluster.finalize(foo("foo").Key)
	c.expect(c.pass(), true, map[string]string{})
	same(t, "operations", c.cluster.trace, []string{"check baz.test.local", "check ", "delete bar", "delete baz",
		"delete type baz.test.local", "delete foo"})
}

// TestTraceDeletionPermission: instances of others prevent the deletion of the component.
func TestTraceDeletionPermission(t *testing.T) {
	t.Run("own instances only", func(t *testing.T) {
		c := managed(t)
		c.deleting = true
		c.pass()
		if phases := c.phases(); phases["bar"] != deleting || phases["baz"] != deleting {
			t.Errorf("the records are %v, want bar and baz %s", phases, deleting)
		}
	})
	t.Run("a foreign instance of an additional type, and no inventory", func(t *testing.T) {
		c := newComponent(t)
		c.deleting, c.patterns = true, []plan.Pattern{{Group: "test.local", Kind: "Bar"}}
		c.cluster.pattern[0] = []string{"Bar app/theirs"}
		p := c.pass()
		c.expect(p, false, map[string]string{})
		same(t, "obstacles", obstacles(p), []string{"blocked : in use by Bar app/theirs"})
	})
	t.Run("a foreign instance of an own type", func(t *testing.T) {
		c := managed(t)
		c.deleting = true
		c.cluster.foreign[crd("baz").Key] = []string{"Baz app/theirs"}
		before := c.phases()
		p := c.pass()
		c.expect(p, false, before)
		same(t, "obstacles", obstacles(p), []string{"blocked baz.test.local: in use by Baz app/theirs"})
		same(t, "operations", c.cluster.trace, []string{"check baz.test.local", "check "})
	})
}
