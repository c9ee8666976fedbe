package execute_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/component/plan"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

var removals = []plan.Action{plan.ActionDelete, plan.ActionPurge, plan.ActionRecreate}

func TestDelete(t *testing.T) {
	var options client.DeleteOptions
	b := newBench(t, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			options = client.DeleteOptions{}
			options.ApplyOptions(opts)
			return c.Delete(ctx, o, opts...)
		},
	})
	for _, action := range removals {
		o := b.desire(configMap, "d1")
		o.SetUID(b.create(o).GetUID())
		// What is deleted need not be desired any more.
		if action != plan.ActionRecreate {
			delete(b.executor.Objects, keyOf(o))
		}
		if b.do(operation(action, o), 1).Gone {
			t.Errorf("%s: the object counts as gone, which nobody has seen", action)
		}
		b.absent(o)
		if p := options.PropagationPolicy; p == nil || *p != metav1.DeletePropagationBackground {
			t.Errorf("%s: the dependents were treated by %v", action, p)
		}
		if !b.do(operation(action, o), 1).Gone {
			t.Errorf("%s: the object does not count as gone", action)
		}
	}
}

// A finalizer holds the object, which does not count as gone.
func TestDeleteOfWhatLingers(t *testing.T) {
	b := newBench(t)
	o := b.desire(`{apiVersion: v1, kind: ConfigMap, metadata: {name: x, finalizers: [example.com/f]}}`, "d1")
	o.SetUID(b.create(o).GetUID())
	for range 2 {
		if b.do(operation(plan.ActionDelete, o), 1).Gone {
			t.Error("the object counts as gone")
		}
	}
	if b.live(o).GetDeletionTimestamp() == nil {
		t.Error("the object is not being deleted")
	}
}

func TestDeleteOfTypeThatIsNotServed(t *testing.T) {
	b := newBench(t)
	o := b.object(`{apiVersion: nobody.example.com/v1, kind: Thing, metadata: {name: x, uid: "1"}}`)
	for _, action := range append(removals, plan.ActionOrphan) {
		if result := b.run(operation(action, o)); result.Err != nil || !result.Gone {
			t.Errorf("%s: got the error %v, and gone is %t", action, result.Err, result.Gone)
		}
	}
}

// G-09: a conflict about the object that is meant is tried again, a few times, as long as the object is ours.
func TestDeleteConflicts(t *testing.T) {
	conflicts, calls := 4, 0
	b := newBench(t, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if calls++; calls <= conflicts {
				return conflict("x")
			}
			return c.Delete(ctx, o, opts...)
		},
	})
	o := b.desire(configMap, "d1")
	o.SetUID(b.create(o).GetUID())
	conflicts = 1000
	if result := b.run(operation(plan.ActionDelete, o)); !isConflict(result.Err) || result.Gone || calls != 5 {
		t.Errorf("got the error %v after %d calls", result.Err, calls)
	}
	conflicts, calls = 4, 0
	if result := b.run(operation(plan.ActionDelete, o)); result.Err != nil || calls != 5 {
		t.Errorf("got the error %v after %d calls", result.Err, calls)
	}
	b.absent(o)
	calls = 0
	theirs := b.put(configMap, ownedBy(otherID, otherOwner))
	wantOwner(t, b.run(operation(plan.ActionDelete, theirs)), plan.Foreign)
}

// A delete whose answer is lost is an error; trying again finds that the object is gone.
func TestDeleteWhoseAnswerIsLost(t *testing.T) {
	b := newBench(t, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if err := c.Delete(ctx, o, opts...); err != nil {
				return err
			}
			return errors.New("the answer was lost")
		},
	})
	o := b.desire(configMap, "d1")
	o.SetUID(b.create(o).GetUID())
	op := operation(plan.ActionRecreate, o)
	result := b.run(op)
	b.wantText(result.Err, "unable to delete ConfigMap NS/x to create it anew: the answer was lost")
	if result.Gone {
		t.Error("the object counts as gone")
	}
	if result := b.run(op); result.Err != nil || !result.Gone {
		t.Errorf("got the error %v, and gone is %t", result.Err, result.Gone)
	}
}

// G-14: an orphan has no marks.
func TestOrphan(t *testing.T) {
	b := newBench(t)
	o := b.desire(`{apiVersion: v1, kind: ConfigMap, metadata: {name: x, labels: {app: web}, annotations: {note: text}}, data: {a: "1"}}`, "d1")
	o.SetUID(b.create(o).GetUID())
	delete(b.executor.Objects, keyOf(o))
	result := b.do(operation(plan.ActionOrphan, o), 2)
	live := b.live(o)
	if got, want := live.GetLabels(), map[string]string{"app": "web"}; !maps.Equal(got, want) {
		t.Errorf("got the labels %v, want %v", got, want)
	}
	if got, want := live.GetAnnotations(), map[string]string{"note": "text"}; !maps.Equal(got, want) {
		t.Errorf("got the annotations %v, want %v", got, want)
	}
	if got, want := dataOf(live), map[string]string{"a": "1"}; !maps.Equal(got, want) {
		t.Errorf("got the data %v, want %v", got, want)
	}
	if result.Gone || result.Object == nil || result.Object.GetResourceVersion() != live.GetResourceVersion() {
		t.Errorf("got the object %v, and gone is %t", result.Object, result.Gone)
	}
	// Once more, there is nothing to do.
	b.do(operation(plan.ActionOrphan, o), 1)
}

func TestOrphanOfWhatIsNotOurs(t *testing.T) {
	b := newBench(t)
	there := b.put(configMap, ownedBy(otherID, otherOwner))
	if b.do(operation(plan.ActionOrphan, there), 1).Gone {
		t.Error("the object counts as gone")
	}
	if b.live(there).GetResourceVersion() != there.GetResourceVersion() {
		t.Error("the object was written")
	}
}

// G-14: an object that another component adopts between the look and the write keeps the marks of that one.
func TestOrphanRace(t *testing.T) {
	var b *bench
	var disturb func(ctx context.Context, o client.Object)
	b = newBench(t, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			disturb(ctx, o)
			return c.Patch(ctx, o, p, opts...)
		},
	})
	o := b.desire(configMap, "d1")
	o.SetUID(b.create(o).GetUID())
	disturb = func(ctx context.Context, o client.Object) {
		b.patch(ctx, o, "another", `{"metadata":{"labels":{"`+ownerLabel+`":"`+otherID+`"},"annotations":{"`+ownerNote+`":"`+otherOwner+`"}}}`)
	}
	if result := b.run(operation(plan.ActionOrphan, o)); result.Err != nil || result.Gone {
		t.Errorf("got the error %v, and gone is %t", result.Err, result.Gone)
	}
	if live := b.live(o); live.GetLabels()[ownerLabel] != otherID || live.GetAnnotations()[ownerNote] != otherOwner {
		t.Errorf("got the metadata %v", live.Object["metadata"])
	}
	b.patch(t.Context(), o, "another", `{"metadata":{"labels":{"`+ownerLabel+`":"`+myID+`"}}}`)
	disturb = func(ctx context.Context, o client.Object) {
		if err := b.Delete(ctx, named(o)); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	}
	if result := b.run(operation(plan.ActionOrphan, o)); result.Err != nil || !result.Gone {
		t.Errorf("got the error %v, and gone is %t", result.Err, result.Gone)
	}
}

// The fence of an object that is orphaned is lifted first, once. If that fails, the object keeps its marks.
func TestOrphanOfWhatIsFenced(t *testing.T) {
	b := newBench(t)
	o := b.desire(configMap, "d1")
	o.SetUID(b.create(o).GetUID())
	g := &guard{fenced: true, err: errors.New("because")}
	b.executor.Guard = g
	b.wantText(b.run(operation(plan.ActionOrphan, o)).Err, "unable to orphan ConfigMap NS/x: because")
	if b.live(o).GetLabels()[ownerLabel] != myID {
		t.Error("the marks are gone, and the fence is not")
	}
	for _, fenced := range []bool{true, false} {
		b.patch(t.Context(), o, "us", `{"metadata":{"labels":{"`+ownerLabel+`":"`+myID+`"}}}`)
		*g = guard{fenced: fenced}
		if result := b.run(operation(plan.ActionOrphan, o)); result.Err != nil {
			t.Errorf("fenced %t: got the error %v", fenced, result.Err)
		}
		want := ""
		if fenced {
			want = "lift ConfigMap " + b.namespace + "/x"
		}
		if got := strings.Join(g.calls, "\n"); got != want {
			t.Errorf("fenced %t: the guard was asked %q, want %q", fenced, got, want)
		}
		if b.live(o).GetLabels()[ownerLabel] != "" {
			t.Errorf("fenced %t: the marks are left", fenced)
		}
	}
}

// guard records its calls.
type guard struct {
	calls  []string
	use    plan.Use
	err    error
	fenced bool
}

func (g *guard) Check(_ context.Context, key plan.Key, fence bool) (plan.Use, error) {
	call := "check " + key.String()
	if fence {
		call += " with fence"
	}
	g.calls = append(g.calls, call)
	return g.use, g.err
}

func (g *guard) CheckPattern(_ context.Context, pattern plan.Pattern) (plan.Use, error) {
	g.calls = append(g.calls, "check pattern "+pattern.Kind+"."+pattern.Group)
	return g.use, g.err
}

func (g *guard) Delete(_ context.Context, key plan.Key, uid types.UID) (plan.Use, error) {
	g.calls = append(g.calls, "delete "+key.String()+" "+string(uid))
	return g.use, g.err
}

func (g *guard) Fenced(plan.Key, metav1.Object) bool { return g.fenced }

func (g *guard) Lift(_ context.Context, key plan.Key) error {
	g.calls = append(g.calls, "lift "+key.String())
	return g.err
}

// G-06: types go by the guard, whatever the plan calls it, unless it is recorded that foreign instances do not matter,
// and are not purged.
func TestTypes(t *testing.T) {
	b := newBench(t)
	for _, text := range []string{
		`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.test.espalier.dev, uid: u}}`,
		`{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.test.espalier.dev, uid: u}}`,
	} {
		o := b.object(text)
		b.requests.Reset()
		for _, action := range []plan.Action{plan.ActionDelete, plan.ActionDeleteType, plan.ActionRecreate} {
			g := &guard{use: plan.Use{State: plan.ForeignBlocking, Instances: []string{"a"}}}
			b.executor.Guard = g
			result := b.run(operation(action, o))
			if result.Err != nil || !equal(result.Use, g.use) || result.Gone {
				t.Errorf("%s: got %+v", action, result)
			}
			if got, want := strings.Join(g.calls, "\n"), "delete "+keyOf(o).String()+" u"; got != want {
				t.Errorf("%s: the guard was asked %q, want %q", action, got, want)
			}
		}
		g := &guard{err: errors.New("because")}
		b.executor.Guard = g
		b.wantText(b.run(operation(plan.ActionDeleteType, o)).Err, "unable to delete "+keyOf(o).String()+": because")
		g.calls = nil
		b.wantText(b.run(operation(plan.ActionPurge, o)).Err, "unable to purge "+keyOf(o).String()+": types are not purged")
		if len(g.calls) != 0 {
			t.Errorf("the guard was asked %v", g.calls)
		}
		b.executor.Guard = nil
		for _, action := range []plan.Action{plan.ActionDelete, plan.ActionCheck} {
			if b.run(operation(action, o)).Err == nil {
				t.Errorf("%s: without guard, there was no error", action)
			}
		}
		if got := b.requests.Total(); got != 0 {
			t.Errorf("made %d requests:\n%s", got, b.requests)
		}
	}
}

func TestCheck(t *testing.T) {
	b := newBench(t)
	g := &guard{use: plan.Use{State: plan.ForeignUnknown, Reason: "because"}}
	b.executor.Guard = g
	b.executor.Patterns = []plan.Pattern{{Group: "*.example.com", Kind: "*"}, {Group: "", Kind: "Pod"}}
	o := b.object(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: c}}`)
	check := operation(plan.ActionCheck, o)
	pattern, none := check, check
	pattern.Pattern, none.Pattern = 1, 2
	for _, op := range []plan.Operation{check, pattern} {
		if result := b.run(op); result.Err != nil || !equal(result.Use, g.use) {
			t.Errorf("got %+v", result)
		}
	}
	b.executor.Deleting = true
	b.run(check)
	if b.run(none).Err == nil {
		t.Error("no error for a pattern that is not there")
	}
	want := "check CustomResourceDefinition c\ncheck pattern Pod.\ncheck CustomResourceDefinition c with fence"
	if got := strings.Join(g.calls, "\n"); got != want {
		t.Errorf("the guard was asked\n%s\nwant\n%s", got, want)
	}
	g.err = errors.New("because")
	b.wantText(b.run(check).Err, "unable to find out who uses the types of CustomResourceDefinition c: because")
	b.wantText(b.run(pattern).Err, "unable to find out who uses Pod: because")
	pattern.Pattern = 0
	b.wantText(b.run(pattern).Err, "unable to find out who uses *.*.example.com: because")
}
