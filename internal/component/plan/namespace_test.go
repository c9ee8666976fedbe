package plan_test

import (
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/plan"
)

// A namespace in which others have objects stays. All else of the component goes, even what has a later delete order.
func TestSharedNamespaceStays(t *testing.T) {
	class := with(object1("storage.k8s.io", "StorageClass", "class"), order(0, 1))
	class.Namespace = ""
	c := newComponent(t, namespace("app"), foo("foo"), class)
	c.rollOutAll(t)
	c.cluster.foreign[namespace("app").Key] = []string{"ConfigMap app/theirs"}
	c.deleting, c.cluster.trace = true, nil
	p := c.pass()
	same(t, "operations", c.cluster.trace, []string{"delete foo", "delete if unused app", "delete class"})
	same(t, "obstacles", obstacles(p), []string{"blocked app: in use by ConfigMap app/theirs"})

	c.cluster.trace = nil
	p = c.pass()
	same(t, "operations", c.cluster.trace, []string{"delete if unused app"})
	same(t, "obstacles", obstacles(p), []string{"blocked app: in use by ConfigMap app/theirs"})
	const left = "1 object left to delete, blocked: Namespace app: in use by ConfigMap app/theirs"
	if got := plan.Message(p, 200); got != left {
		t.Errorf("when all but the namespace is gone, the message is %q, want %q", got, left)
	}

	delete(c.cluster.foreign, namespace("app").Key)
	if p = c.pass(); !p.Done {
		t.Errorf("the namespace does not go, want the plan done:\n%s", p)
	}
}

// A namespace that is dropped is not deleted either. The rest of the roll-out goes on.
func TestSharedNamespaceThatIsDropped(t *testing.T) {
	for _, prune := range []apis.PrunePolicy{apis.PruneBefore, apis.PruneWith, apis.PruneAfter} {
		t.Run(string(prune), func(t *testing.T) {
			c := newComponent(t, with(namespace("app"), policy(prune)), foo("foo"))
			c.rollOutAll(t)
			c.cluster.foreign[namespace("app").Key] = []string{"ConfigMap app/theirs"}
			moved, later := configMap("moved"), with(configMap("later"), order(1, 0))
			moved.Namespace, later.Namespace = "other", "other"
			c.desired = []plan.Desired{moved, later}
			p := c.pass()
			same(t, "obstacles", obstacles(p), []string{"blocked app: in use by ConfigMap app/theirs"})
			for _, d := range c.desired {
				if c.cluster.objects[d.Key] == nil {
					t.Errorf("%s is missing, want it there:\n%s", d.Key, p)
				}
			}
			if c.cluster.objects[foo("foo").Key] != nil {
				t.Errorf("what was in the namespace is left (%+v), want it gone", c.cluster.objects[foo("foo").Key])
			}
			delete(c.cluster.foreign, namespace("app").Key)
			if p = c.pass(); !p.Done || c.cluster.objects[namespace("app").Key] != nil {
				t.Errorf("the namespace does not go, want it gone and the plan done:\n%s", p)
			}
		})
	}
}

// What a namespace needs to be deleted is decided from its record.
func TestDeletionOfANamespace(t *testing.T) {
	for name, test := range map[string]struct {
		record func(*apis.InventoryRecord)
		use    plan.Use
		want   []string
	}{
		"unchecked": {want: []string{"delete if unused app"}},
		"unused":    {use: plan.Use{State: plan.ForeignNone}, want: []string{"delete if unused app"}},
		"ignored":   {record: func(r *apis.InventoryRecord) { r.IgnoreForeignInstances = true }, want: []string{"delete app"}},
		"orphaned":  {record: func(r *apis.InventoryRecord) { r.DeletePolicy = apis.DeleteOrphan }, want: []string{"orphan app"}},
		"in use":    {use: plan.Use{State: plan.ForeignBlocking, Instances: []string{"Secret app/s"}}},
		"unknown":   {use: plan.Use{State: plan.ForeignUnknown, Reason: "nobody answers"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := namespace("app")
			for _, deleting := range []bool{true, false} {
				r := asIs(d)
				if test.record != nil {
					test.record(&r)
				}
				p := plan.Make(plan.Input{Deleting: deleting, AllowEmpty: true, Inventory: []apis.InventoryRecord{r},
					Observed: map[plan.Key]plan.Observed{d.Key: live(d)}, Uses: map[plan.Key]plan.Use{d.Key: test.use}})
				same(t, "operations", actions(p), test.want)
				if blocked := len(p.Obstacles) == 1 && p.Obstacles[0].Kind == plan.ObstacleBlocked; blocked != (test.want == nil) {
					t.Errorf("the obstacles are %v, want one that blocks: %t", p.Obstacles, test.want == nil)
				}
			}
		})
	}
}

// A namespace that was adopted is never deleted. One that the component creates again is its own.
func TestAdoptedNamespaceStays(t *testing.T) {
	ignore := func(d *plan.Desired) { d.IgnoreForeignInstances = true }
	for _, deleting := range []bool{true, false} {
		for _, said := range []apis.DeletePolicy{
			"", apis.DeleteDelete, apis.DeleteOrphan, apis.DeleteOrphanOnApply, apis.DeleteOrphanOnDelete,
		} {
			c := newComponent(t, with(namespace("app"), policy(said), ignore))
			c.cluster.put(namespace("app").Key, plan.Unowned)
			c.rollOutAll(t)
			c.deleting, c.desired, c.allowEmpty = deleting, nil, true
			c.rollOutAll(t)
			same(t, "operations", c.cluster.trace, []string{"adopt app", "orphan app"})
		}
	}
	c := newComponent(t, namespace("app"))
	c.cluster.put(namespace("app").Key, plan.Unowned)
	c.rollOutAll(t)
	delete(c.cluster.objects, namespace("app").Key)
	c.rollOutAll(t)
	c.deleting = true
	c.rollOutAll(t)
	same(t, "operations", c.cluster.trace, []string{"adopt app", "create app", "delete if unused app"})
}

// What others have is named, and what could not be read besides.
func TestWordsOfUnreadableTypes(t *testing.T) {
	d := namespace("app")
	p := plan.Make(plan.Input{Deleting: true, Inventory: []apis.InventoryRecord{asIs(d)},
		Observed: map[plan.Key]plan.Observed{d.Key: live(d)}, Uses: map[plan.Key]plan.Use{d.Key: {
			State: plan.ForeignBlocking, Instances: []string{"Pod app/p"}, More: 2, Reason: "Secrets could not be listed: forbidden",
		}}})
	same(t, "obstacles", obstacles(p),
		[]string{"blocked app: in use by Pod app/p and 2 more; Secrets could not be listed: forbidden"})
}
