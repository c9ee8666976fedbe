package plan_test

import (
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/plan"
)

func claim(name string) plan.Desired {
	return with(object1("", "PersistentVolumeClaim", name), policy(apis.PrunePolicy("")))
}

// renamed is a component whose object has another name from now on.
func renamed(t *testing.T, old, successor plan.Desired, others ...plan.Desired) *component {
	t.Helper()
	c := newComponent(t, append([]plan.Desired{old}, others...)...)
	c.rollOutAll(t)
	c.desired, c.cluster.trace = append([]plan.Desired{successor}, others...), nil
	return c
}

// keptUntil checks that the old object is left and why, and that it goes once that has passed.
func (c *component) keptUntil(t *testing.T, old plan.Desired, why string, pass func()) {
	t.Helper()
	p := c.pass()
	if c.cluster.objects[old.Key] == nil {
		t.Errorf("%s is pruned, want it kept:\n%s", old.Key, p)
	}
	for _, o := range p.Obstacles {
		if o.Key == old.Key && (!o.Kept || why != "" && o.Message != why) {
			t.Errorf("the obstacle is %+v, want it kept: %q", o, why)
		}
	}
	if why != "" && len(p.Obstacles) < 2 {
		t.Errorf("the obstacles are %q, want the old object among them", obstacles(p))
	}
	pass()
	c.rollOutAll(t)
	if c.cluster.objects[old.Key] != nil {
		t.Errorf("%s is left, want it pruned:\n%s", old.Key, c.pass())
	}
}

// Nothing is pruned in a wave in which a required object could not be written or is not ours.
func TestPruneWithWaitsForWhatCannotBeWritten(t *testing.T) {
	for _, kind := range []func(string) plan.Desired{configMap, foo, claim} {
		old, successor := kind("old"), kind("new")
		why := "it is kept until these are written: " + successor.Key.String()
		if old.Kind == "PersistentVolumeClaim" {
			why = "it is kept until these are ready: " + successor.Key.String()
		}
		t.Run(old.Kind, func(t *testing.T) {
			t.Run("refused", func(t *testing.T) {
				c := renamed(t, old, successor)
				c.cluster.broken[successor.Key] = true
				c.keptUntil(t, old, why, func() { c.cluster.broken[successor.Key] = false })
			})
			t.Run("not ours", func(t *testing.T) {
				c := renamed(t, old, with(successor, policy(apis.AdoptNever)))
				c.cluster.put(successor.Key, plan.Unowned)
				c.keptUntil(t, old, why, func() { delete(c.cluster.objects, successor.Key) })
			})
			t.Run("somebody else's", func(t *testing.T) {
				c := renamed(t, old, successor)
				c.cluster.put(successor.Key, plan.Foreign)
				c.keptUntil(t, old, why, func() { delete(c.cluster.objects, successor.Key) })
			})
			t.Run("in a namespace that is being deleted", func(t *testing.T) {
				home := with(namespace("elsewhere"), order(-1, 0))
				moved := with(successor, func(d *plan.Desired) { d.Namespace = "elsewhere" })
				c := renamed(t, old, moved, home)
				c.cluster.objects[home.Key].terminating, c.cluster.finalized[home.Key] = true, true
				c.keptUntil(t, old, "", func() { c.cluster.finalize(home.Key) })
			})
		})
	}
}

// An instance whose type has to be ready first takes the place of another one when it is written.
func TestPruneWithWaitsForWhatIsHeld(t *testing.T) {
	c := renamed(t, baz("old"), baz("new"), crd("baz"), foo("server"))
	c.desired[2].Digest = "2"
	c.cluster.slow["Foo"] = true
	c.keptUntil(t, baz("old"), "", func() {})
	same(t, "operations", c.cluster.trace, []string{"apply server", "create new", "delete old"})
}

// What the component does without, or has written once, keeps nothing.
func TestPruneWithDoesNotWait(t *testing.T) {
	dashboard := with(foo("dashboard"), func(d *plan.Desired) { d.Auxiliary = true })
	for name, change := range map[string]func(c *component){
		"for an auxiliary object": func(c *component) {
			c.desired = append(c.desired, dashboard)
			c.cluster.put(dashboard.Key, plan.Foreign)
		},
		"for an object that is not ready": func(c *component) {
			c.cluster.objects[configMap("kept").Key].status = apis.ObjectFailed
		},
		"for its own object that is being deleted": func(c *component) {
			c.cluster.objects[configMap("kept").Key].terminating = true
			c.desired[0].Digest = "2"
		},
	} {
		c := newComponent(t, configMap("kept"), foo("old"))
		c.rollOutAll(t)
		c.desired = c.desired[:1:1]
		change(c)
		same(t, name+": operations", actions(plan.Make(c.input())), []string{"delete old"})
	}
}

// An object that holds data is pruned once all required objects of the component are ready, in whichever wave.
func TestDataIsPrunedOnceAllIsReady(t *testing.T) {
	set, home := object1("apps", "StatefulSet", "old"), namespace("old")
	generated := with(secret("old"), func(d *plan.Desired) { d.ReconcilePolicy = apis.ReconcileOnce })
	for _, old := range []plan.Desired{claim("old"), set, home, crd("baz"), generated} {
		old.PrunePolicy = ""
		t.Run(old.Kind, func(t *testing.T) {
			c := newComponent(t, old, configMap("kept"))
			c.rollOutAll(t)
			late := with(foo("late"), order(3, 0))
			c.desired = []plan.Desired{configMap("kept"), late}
			c.cluster.slow["Foo"] = true
			c.keptUntil(t, old, "it is kept until these are ready: Foo app/late", func() {})
		})
		t.Run(old.Kind+", and one is volatile", func(t *testing.T) {
			c := newComponent(t, old, foo("volatile"))
			c.rollOutAll(t)
			c.desired = c.desired[1:]
			o := c.cluster.objects[foo("volatile").Key]
			o.status, o.volatile = apis.ObjectInProgress, true
			c.keptUntil(t, old, "it is kept until these are ready: Foo app/volatile", func() {})
		})
		t.Run(old.Kind+", and an auxiliary one is not ready", func(t *testing.T) {
			c := newComponent(t, old, foo("dashboard"))
			c.rollOutAll(t)
			c.desired = c.desired[1:]
			c.desired[0].Auxiliary = true
			c.cluster.objects[foo("dashboard").Key].status = apis.ObjectFailed
			if operations := actions(plan.Make(c.input())); len(operations) != 1 {
				t.Errorf("the operations are %q, want the old object pruned", operations)
			}
		})
		for _, explicit := range []apis.PrunePolicy{apis.PruneBefore, apis.PruneWith, apis.PruneAfter} {
			t.Run(old.Kind+", policy "+string(explicit), func(t *testing.T) {
				c := newComponent(t, with(old, policy(explicit)), configMap("kept"))
				c.rollOutAll(t)
				c.desired = []plan.Desired{configMap("kept"), with(foo("late"), order(3, 0))}
				c.cluster.slow["Foo"] = true
				if c.pass(); c.cluster.objects[old.Key] != nil {
					t.Errorf("%s is left, want it pruned by its own policy", old.Key)
				}
			})
		}
	}
}
