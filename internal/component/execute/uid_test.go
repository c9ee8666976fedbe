package execute_test

import (
	"testing"

	"github.com/espalier-dev/espalier/internal/component/plan"
)

// G-15: whatever the operation, an object of the same name that is not the one meant is left alone.
func TestAnotherObjectOfTheName(t *testing.T) {
	b := newBench(t)
	created := b.create(b.desire(configMap, "d1"))
	b.observeManaged(created)
	there := b.another(created)
	o := b.desire(configMap, "d2")
	o.SetUID(created.GetUID())
	for _, action := range []plan.Action{plan.ActionApply, plan.ActionAdopt, plan.ActionReplace} {
		result := b.run(operation(action, o))
		wantStale(t, result, true)
		b.wantText(result.Err, "unable to "+string(action)+" ConfigMap NS/x: another object has taken its place")
	}
	for _, action := range []plan.Action{plan.ActionDelete, plan.ActionPurge, plan.ActionRecreate, plan.ActionOrphan} {
		if result := b.run(operation(action, o)); result.Err != nil || !result.Gone {
			t.Errorf("%s: got the error %v, and gone is %t", action, result.Err, result.Gone)
		}
	}
	if live := b.live(o); live.GetUID() != there.GetUID() || live.GetResourceVersion() != there.GetResourceVersion() {
		t.Error("the object was written")
	}
	if err := b.Delete(t.Context(), named(o)); err != nil {
		t.Fatal(err)
	}
	for _, action := range []plan.Action{plan.ActionApply, plan.ActionAdopt, plan.ActionReplace} {
		result := b.run(operation(action, o))
		wantStale(t, result, false)
		b.wantText(result.Err, "unable to "+string(action)+" ConfigMap NS/x: it does not exist any more")
	}
	for _, action := range []plan.Action{plan.ActionDelete, plan.ActionPurge, plan.ActionRecreate, plan.ActionOrphan} {
		if result := b.run(operation(action, o)); result.Err != nil || !result.Gone {
			t.Errorf("%s: got the error %v, and gone is %t", action, result.Err, result.Gone)
		}
	}
	b.absent(o)
}

// An operation that does not say which object it means is none.
func TestNoUID(t *testing.T) {
	b := newBench(t)
	created := b.create(b.desire(configMap, "d1"))
	o := b.desire(configMap, "d2")
	b.requests.Reset()
	for _, action := range []plan.Action{
		plan.ActionApply, plan.ActionAdopt, plan.ActionReplace, plan.ActionDelete, plan.ActionPurge, plan.ActionRecreate, plan.ActionOrphan, plan.ActionDeleteType,
	} {
		if result := b.run(operation(action, o)); result.Err == nil || result.Gone {
			t.Errorf("%s: got the error %v", action, result.Err)
		}
	}
	if b.requests.Total() != 0 || b.live(o).GetResourceVersion() != created.GetResourceVersion() {
		t.Error("something was done")
	}
}
