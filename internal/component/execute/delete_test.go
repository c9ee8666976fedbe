package execute_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/execute"
	"github.com/espalier-dev/espalier/internal/component/foreign"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
			t.Errorf("%s: the object counts as gone, want that it does not, for it is not known", action)
		}
		b.absent(o)
		if p := options.PropagationPolicy; p == nil || *p != metav1.DeletePropagationBackground {
			t.Errorf("%s: the dependents were treated by %v, want %s", action, p, metav1.DeletePropagationBackground)
		}
		if !b.do(operation(action, o), 1).Gone {
			t.Errorf("%s: the object does not count as gone, want that it does", action)
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
			t.Error("the object counts as gone, want that it does not")
		}
	}
	if b.live(o).GetDeletionTimestamp() == nil {
		t.Error("the object is not being deleted, want a deletion timestamp")
	}
}

func TestDeleteOfTypeThatIsNotServed(t *testing.T) {
	b := newBench(t)
	o := b.object(`{apiVersion: nobody.example.com/v1, kind: Thing, metadata: {name: x, uid: "1"}}`)
	for _, action := range append(removals, plan.ActionOrphan) {
		if result := b.run(operation(action, o)); result.Err != nil || !result.Gone {
			t.Errorf("%s: the error is %v and gone is %t, want no error and true", action, result.Err, result.Gone)
		}
	}
}

// A conflict about the object of the operation is tried again, a few times, as long as the object is ours.
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
		t.Errorf("the error is %v and gone is %t after %d calls, want a conflict and false after 5", result.Err,
			result.Gone, calls)
	}
	conflicts, calls = 4, 0
	if result := b.run(operation(plan.ActionDelete, o)); result.Err != nil || calls != 5 {
		t.Errorf("the error is %v after %d calls, want none after 5", result.Err, calls)
	}
	b.absent(o)
	calls = 0
	theirs := b.put(configMap, ownedBy(otherID, otherOwner))
	wantOwner(t, b.run(operation(plan.ActionDelete, theirs)), plan.Foreign)
}

// What was released since it was observed stays, also if the observer does not know yet.
func TestDeleteOfAnotherVersion(t *testing.T) {
	b := newBench(t)
	for _, released := range []bool{true, false} {
		o := b.desire(configMap, "d1")
		created := b.create(o)
		o.SetUID(created.GetUID())
		op := operation(plan.ActionDelete, o)
		op.ResourceVersion = created.GetResourceVersion()
		changed := b.live(o)
		changed.Object["data"] = map[string]any{"changed": "yes"}
		if released {
			changed.SetLabels(nil)
			changed.SetAnnotations(nil)
		}
		if err := b.Update(b.Context(), changed); err != nil {
			t.Fatal(err)
		}
		result := b.run(op)
		if released {
			wantOwner(t, result, plan.Unlabelled)
			if err := b.Delete(b.Context(), changed); err != nil {
				t.Error(err)
			}
		} else if result.Err != nil {
			t.Errorf("the error is %v, want none", result.Err)
		}
		b.absent(o)
	}
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
		t.Error("the object counts as gone, want that it does not")
	}
	if result := b.run(op); result.Err != nil || !result.Gone {
		t.Errorf("the error is %v and gone is %t, want no error and true", result.Err, result.Gone)
	}
}

// An orphan has no marks.
func TestOrphan(t *testing.T) {
	b := newBench(t)
	o := b.desire(`{apiVersion: v1, kind: ConfigMap, metadata: {name: x, labels: {app: web}, annotations: {note: text}},
		data: {a: "1"}}`, "d1")
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
		t.Errorf("the object is %v and gone is %t, want the resource version %s and false", result.Object, result.Gone,
			live.GetResourceVersion())
	}
	// Once more, there is nothing to do.
	b.do(operation(plan.ActionOrphan, o), 1)
}

// The former owner of an object that was adopted can apply it again, without force.
func TestOrphanOfWhatWasAdopted(t *testing.T) {
	b := newBench(t)
	theirs := `{apiVersion: v1, kind: ConfigMap, metadata: {name: x, annotations: {espalier.dev/foreign-instances: ignore}},
		data: {a: theirs}}`
	apply := func() error {
		return b.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(b.object(theirs)), client.FieldOwner("somebody"))
	}
	if err := apply(); err != nil {
		t.Fatal(err)
	}
	o := b.desire(`{apiVersion: v1, kind: ConfigMap, metadata: {name: x, annotations: {espalier.dev/adoption-policy: always}},
		data: {a: ours}}`, "d1")
	o.SetUID(b.live(o).GetUID())
	if result := b.run(operation(plan.ActionAdopt, o)); result.Err != nil {
		t.Fatal(result.Err)
	}
	if got := dataOf(b.live(o))["a"]; got != "ours" {
		t.Fatalf("the data is %q, want it ours", got)
	}
	if err := apply(); !apierrs.IsConflict(err) {
		t.Fatalf("the former owner's apply ends with %v, want a conflict as long as the object is ours", err)
	}
	delete(b.executor.Objects, keyOf(o))
	if result := b.run(operation(plan.ActionOrphan, o)); result.Err != nil {
		t.Fatal(result.Err)
	}
	want := map[string]string{"espalier.dev/foreign-instances": "ignore"}
	if got := b.live(o).GetAnnotations(); !maps.Equal(got, want) {
		t.Errorf("got the annotations %v, want %v", got, want)
	}
	for _, entry := range b.live(o).GetManagedFields() {
		if entry.Manager != "somebody" {
			t.Errorf("the fields %s belong to %s, want them to belong to somebody", entry.FieldsV1, entry.Manager)
		}
	}
	if err := apply(); err != nil {
		t.Errorf("the former owner's apply ends with %v, want no conflict", err)
	}
	if got := dataOf(b.live(o))["a"]; got != "theirs" {
		t.Errorf("the data is %q, want it theirs", got)
	}
}

func TestOrphanOfWhatIsNotOurs(t *testing.T) {
	b := newBench(t)
	there := b.put(configMap, ownedBy(otherID, otherOwner))
	if b.do(operation(plan.ActionOrphan, there), 1).Gone {
		t.Error("the object counts as gone, want that it does not")
	}
	if b.live(there).GetResourceVersion() != there.GetResourceVersion() {
		t.Errorf("the object was written: resource version %s, want %s", b.live(there).GetResourceVersion(),
			there.GetResourceVersion())
	}
}

// An object that another component adopts between the read and the write keeps the marks of that component.
func TestOrphanRace(t *testing.T) {
	var b *bench
	var disturb func(ctx context.Context, o client.Object)
	b = newBench(t, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch,
			opts ...client.PatchOption) error {
			disturb(ctx, o)
			return c.Patch(ctx, o, p, opts...)
		},
	})
	o := b.desire(configMap, "d1")
	o.SetUID(b.create(o).GetUID())
	disturb = func(ctx context.Context, o client.Object) {
		b.patch(ctx, o, "another",
			`{"metadata":{"labels":{"`+ownerLabel+`":"`+otherID+`"},"annotations":{"`+ownerNote+`":"`+otherOwner+`"}}}`)
	}
	if result := b.run(operation(plan.ActionOrphan, o)); result.Err != nil || result.Gone {
		t.Errorf("the error is %v and gone is %t, want no error and false", result.Err, result.Gone)
	}
	if live := b.live(o); live.GetLabels()[ownerLabel] != otherID || live.GetAnnotations()[ownerNote] != otherOwner {
		t.Errorf("the metadata are %v, want the owner %s (%s)", live.Object["metadata"], otherID, otherOwner)
	}
	b.patch(t.Context(), o, "another", `{"metadata":{"labels":{"`+ownerLabel+`":"`+myID+`"}}}`)
	disturb = func(ctx context.Context, o client.Object) {
		if err := b.Delete(ctx, named(o)); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	}
	if result := b.run(operation(plan.ActionOrphan, o)); result.Err != nil || !result.Gone {
		t.Errorf("the error is %v and gone is %t, want no error and true", result.Err, result.Gone)
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
		t.Errorf("the fence is there, and the label of the owner is %q, want %q", b.live(o).GetLabels()[ownerLabel],
			myID)
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
			t.Errorf("fenced %t: the label of the owner is %q, want none", fenced, b.live(o).GetLabels()[ownerLabel])
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

func (g *guard) Check(_ context.Context, key plan.Key) (plan.Use, error) {
	g.calls = append(g.calls, "check "+key.String())
	return g.use, g.err
}

func (g *guard) Fence(_ context.Context, keys []plan.Key, dryRun bool) []foreign.Outcome {
	outcomes := make([]foreign.Outcome, len(keys))
	for i, key := range keys {
		g.calls = append(g.calls, fmt.Sprintf("fence %s (dry run: %t)", key, dryRun))
		outcomes[i] = foreign.Outcome{Use: g.use, Err: g.err}
	}
	return outcomes
}

func (g *guard) CheckPattern(_ context.Context, pattern plan.Pattern) (plan.Use, error) {
	g.calls = append(g.calls, "check pattern "+pattern.Kind+"."+pattern.Group)
	return g.use, g.err
}

func (g *guard) Delete(_ context.Context, targets []foreign.Target) []foreign.Outcome {
	outcomes := make([]foreign.Outcome, len(targets))
	for i, target := range targets {
		g.calls = append(g.calls, "delete "+target.Key.String()+" "+string(target.UID))
		outcomes[i] = foreign.Outcome{Use: g.use, Err: g.err}
	}
	return outcomes
}

func (g *guard) Fenced(plan.Key, metav1.Object) bool { return g.fenced }

func (g *guard) Lift(_ context.Context, key plan.Key) error {
	g.calls = append(g.calls, "lift "+key.String())
	return g.err
}

// The guard deletes types and namespaces for each action, unless the record says that foreign instances do not matter.
// They are not purged.
func TestTypes(t *testing.T) {
	b := newBench(t)
	for _, text := range []string{
		`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition,
			metadata: {name: widgets.test.espalier.dev, uid: u}}`,
		`{apiVersion: v1, kind: Namespace, metadata: {name: shared, uid: u}}`,
	} {
		o := b.object(text)
		b.requests.Reset()
		for _, action := range []plan.Action{
			plan.ActionDelete, plan.ActionDeleteType, plan.ActionDeleteNamespace, plan.ActionRecreate,
		} {
			g := &guard{use: plan.Use{State: plan.ForeignBlocking, Instances: []string{"a"}}}
			b.executor.Guard = g
			result := b.run(operation(action, o))
			if result.Err != nil || !reflect.DeepEqual(result.Use, g.use) || result.Gone {
				t.Errorf("%s: the result is %+v, want the use %+v, no error and not gone", action, result, g.use)
			}
			if got, want := strings.Join(g.calls, "\n"), "delete "+keyOf(o).String()+" u"; got != want {
				t.Errorf("%s: the guard was asked %q, want %q", action, got, want)
			}
		}
		g := &guard{err: errors.New("because")}
		b.executor.Guard = g
		b.wantText(b.run(operation(plan.ActionDeleteType, o)).Err, "unable to delete "+keyOf(o).String()+": because")
		g.calls = nil
		b.wantText(b.run(operation(plan.ActionPurge, o)).Err,
			"unable to purge "+keyOf(o).String()+": types and namespaces are not purged")
		if len(g.calls) != 0 {
			t.Errorf("the guard was asked %v, want no question", g.calls)
		}
		b.executor.Guard = nil
		for _, action := range []plan.Action{plan.ActionDelete, plan.ActionCheck} {
			if b.run(operation(action, o)).Err == nil {
				t.Errorf("%s: there is no error without a guard, want one", action)
			}
		}
		if got := b.requests.Total(); got != 0 {
			t.Errorf("there are %d requests, want none:\n%s", got, b.requests)
		}
	}
}

// An APIService is deleted without the guard: the server behind it keeps the instances.
func TestAPIServiceNeedsNoGuard(t *testing.T) {
	controlplanetest.Real(t, "an APIService has to name another API server")
	b := newBench(t)
	g := &guard{use: plan.Use{State: plan.ForeignBlocking}}
	b.executor.Guard = g
	for _, action := range []plan.Action{plan.ActionDelete, plan.ActionRecreate} {
		there := b.put(`{apiVersion: apiregistration.k8s.io/v1, kind: APIService,
			metadata: {name: v1.unguarded.espalier.dev},
			spec: {group: unguarded.espalier.dev, version: v1, groupPriorityMinimum: 100, versionPriority: 100,
			insecureSkipTLSVerify: true, service: {namespace: default, name: nowhere}}}`, ownedBy(myID, myOwner))
		b.desire(`{apiVersion: apiregistration.k8s.io/v1, kind: APIService,
			metadata: {name: v1.unguarded.espalier.dev}}`, "d1")
		if result := b.run(operation(action, there)); result.Err != nil {
			t.Errorf("%s: %v", action, result.Err)
		}
		b.absent(there)
	}
	if len(g.calls) != 0 {
		t.Errorf("the guard was asked %v, want no question", g.calls)
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
		if result := b.run(op); result.Err != nil || !reflect.DeepEqual(result.Use, g.use) {
			t.Errorf("the result is %+v, want the use %+v and no error", result, g.use)
		}
	}
	if b.run(none).Err == nil {
		t.Error("there is no error for a pattern that is not there, want one")
	}
	b.executor.Fence(t.Context(), []execute.Result{{Operation: check}, {Operation: pattern}}, true)
	b.executor.Fence(t.Context(), []execute.Result{{Operation: check}, {Operation: pattern}}, false)
	want := "check CustomResourceDefinition c\ncheck pattern Pod.\n" +
		"fence CustomResourceDefinition c (dry run: true)\n" +
		"fence CustomResourceDefinition c (dry run: false)\ncheck pattern Pod."
	if got := strings.Join(g.calls, "\n"); got != want {
		t.Errorf("the guard was asked\n%s\nwant\n%s", got, want)
	}
	g.err = errors.New("because")
	b.wantText(b.run(check).Err, "unable to find out who uses the types of CustomResourceDefinition c: because")
	b.wantText(b.run(pattern).Err, "unable to find out who uses Pod: because")
	pattern.Pattern = 0
	b.wantText(b.run(pattern).Err, "unable to find out who uses *.*.example.com: because")
}

// An object that is being deleted, or was restored with our marks under another UID, is deleted again without an
// error.
func TestDeleteAgain(t *testing.T) {
	b := newBench(t)
	o := b.desire(configMap, "d1")
	created := b.create(o)
	o.SetUID(created.GetUID())
	b.do(operation(plan.ActionDelete, o), 1)
	restored := b.put(configMap, ownedBy(myID, myOwner))
	if result := b.run(operation(plan.ActionDelete, o)); result.Err != nil || !result.Gone {
		t.Errorf("the one that is gone: the error is %v and gone is %t, want no error and true", result.Err,
			result.Gone)
	}
	if b.live(o).GetUID() != restored.GetUID() {
		t.Errorf("the restored object has the UID %s, want %s: it was deleted in the place of the one that is gone",
			b.live(o).GetUID(), restored.GetUID())
	}
	o.SetUID(restored.GetUID())
	b.do(operation(plan.ActionDelete, o), 1)
	b.absent(o)
}

// A type is deleted without the guard, by its UID, if the record says that foreign instances do not matter.
func TestTypeWhoseForeignInstancesDoNotMatter(t *testing.T) {
	b := newBench(t)
	there := b.put(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition,
		metadata: {name: plains.test.espalier.dev},
		spec: {group: test.espalier.dev, scope: Namespaced, names: {plural: plains, kind: Plain}, versions: [
		{name: v1, served: true, storage: true,
		schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`)
	t.Cleanup(func() {
		if err := client.IgnoreNotFound(b.Delete(context.Background(), named(there))); err != nil {
			t.Error(err)
		}
	})
	g := &guard{use: plan.Use{State: plan.ForeignBlocking}}
	b.executor.Guard = g
	record := apis.InventoryRecord{}
	for _, test := range []struct {
		ignore bool
		action plan.Action
		asked  int
	}{{false, plan.ActionDelete, 1}, {true, plan.ActionDeleteType, 1}, {true, plan.ActionRecreate, 1},
		{true, plan.ActionDelete, 0}} {
		record.IgnoreForeignInstances = test.ignore
		b.executor.Records[keyOf(there)], g.calls = record, nil
		if result := b.run(operation(test.action, there)); result.Err != nil || len(g.calls) != test.asked {
			t.Errorf("%s (%t): the error is %v and the guard was asked %q, want no error and %d questions",
				test.action, test.ignore, result.Err, g.calls, test.asked)
		}
		live := named(there)
		if err := b.Get(t.Context(), client.ObjectKeyFromObject(there), live); test.asked == 1 &&
			(err != nil || live.GetDeletionTimestamp() != nil) {
			t.Errorf("%s (%t): the object was deleted (%v), want it there", test.action, test.ignore, err)
		} else if test.asked == 0 && err == nil && live.GetDeletionTimestamp() == nil {
			t.Errorf("%s (%t): the object was not deleted, want it gone or being deleted", test.action, test.ignore)
		}
	}
}

// An orphan that cannot be read, or keeps changing, is an error, and keeps its marks.
func TestOrphanThatFails(t *testing.T) {
	var read error
	patches := 0
	b := newBench(t, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
			opts ...client.GetOption) error {
			if read != nil {
				return read
			}
			return c.Get(ctx, key, o, opts...)
		},
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			patches++
			return conflict("x")
		},
	})
	o := b.desire(configMap, "d1")
	o.SetUID(b.create(o).GetUID())
	if result := b.run(operation(plan.ActionOrphan, o)); !isConflict(result.Err) || result.Gone || patches != 5 {
		t.Errorf("the error is %v and gone is %t after %d patches, want a conflict and false after 5", result.Err,
			result.Gone, patches)
	}
	read, patches = apierrs.NewForbidden(configMaps, "x", errors.New("because")), 0
	result := b.run(operation(plan.ActionOrphan, o))
	b.wantText(result.Err, `unable to orphan ConfigMap NS/x: forbidden: because`)
	if result.Gone || patches != 0 || b.live(o).GetLabels()[ownerLabel] != myID {
		t.Errorf("gone is %t after %d patches, and the owner is %q, want false after none, and %q", result.Gone,
			patches, b.live(o).GetLabels()[ownerLabel], myID)
	}
	// What cannot be read is not written either.
	for _, action := range []plan.Action{plan.ActionApply, plan.ActionAdopt, plan.ActionReplace} {
		if result := b.run(operation(action, o)); !apierrs.IsForbidden(result.Err) || result.Gone {
			t.Errorf("%s: the error is %v and gone is %t, want a forbidden one and false", action, result.Err,
				result.Gone)
		}
	}
}
