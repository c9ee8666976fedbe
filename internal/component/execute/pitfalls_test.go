package execute_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/execute"
	"github.com/espalier-dev/espalier/internal/component/manifest"
	"github.com/espalier-dev/espalier/internal/component/plan"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// G-05: what is written is what was generated: nothing goes that a Go type would not know, and nothing is added that it
// would write.
func TestWritesHoldWhatWasGenerated(t *testing.T) {
	var sent []map[string]any
	b := newBench(t, interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			sent = append(sent, o.(*unstructured.Unstructured).Object)
			return nil
		},
		Apply: func(_ context.Context, _ client.WithWatch, o runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
			sent = append(sent, content)
			return err
		},
	})
	b.nothingToMerge()
	o := b.desire(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: x, uid: "1"}, spec: {tomorrow: {a: true}, template: {spec: {alsoTomorrow: [1]}}}}`, "d1")
	for _, action := range []plan.Action{plan.ActionCreate, plan.ActionApply} {
		if result := b.run(operation(action, o)); result.Err != nil {
			t.Fatal(result.Err)
		}
	}
	for _, content := range sent {
		if _, ok := content["status"]; ok || !equal(content["spec"], o.Object["spec"]) {
			t.Errorf("sent %v", content)
		}
	}
	if len(sent) != 2 {
		t.Errorf("sent %d times", len(sent))
	}
}

// G-08: an apply leaves what others have set: the replicas of an autoscaler, the bundle that was injected into a
// webhook, labels and annotations of other controllers.
func TestApplyLeavesWhatOthersSet(t *testing.T) {
	b := newBench(t)
	const text = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: x}, spec: {selector: {matchLabels: {app: web}},
		template: {metadata: {labels: {app: web}}, spec: {containers: [{name: a, image: IMAGE}]}}}}`
	created := b.create(b.desire(strings.ReplaceAll(text, "IMAGE", "a:1"), "d1"))
	b.autoscale(t.Context(), created, "7")
	b.patch(t.Context(), created, "mesh", `{"metadata":{"labels":{"mesh":"1"},"annotations":{"mesh":"1"}},"spec":{"template":{"metadata":{"annotations":{"inject":"yes"}}}}}`)
	o := b.desire(strings.ReplaceAll(text, "IMAGE", "a:2"), "d2")
	o.SetUID(created.GetUID())
	b.do(operation(plan.ActionApply, o), 3)
	live := b.live(o)
	if got := number(live, "spec", "replicas"); got != 7 {
		t.Errorf("got %d replicas", got)
	}
	if live.GetLabels()["mesh"] != "1" || live.GetAnnotations()["mesh"] != "1" || field(live, "spec", "template", "metadata", "annotations", "inject") != "yes" {
		t.Errorf("got %v", live.Object)
	}

	name := "hook-" + b.namespace
	hook := `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: ` + name + `}, webhooks: [
		{name: a.example.com, admissionReviewVersions: [v1], sideEffects: None, failurePolicy: POLICY, clientConfig: {url: "https://example.com"}}]}`
	created = b.create(b.desire(strings.ReplaceAll(hook, "POLICY", "Ignore"), "d1"))
	t.Cleanup(func() { _ = b.Delete(context.Background(), named(created)) })
	injected := b.live(created)
	webhooks, _, _ := unstructured.NestedSlice(injected.Object, "webhooks")
	if err := unstructured.SetNestedField(webhooks[0].(map[string]any), "Cg==", "clientConfig", "caBundle"); err != nil {
		t.Fatal(err)
	}
	injected.Object["webhooks"] = webhooks
	if err := b.Update(t.Context(), injected, client.FieldOwner("injector")); err != nil {
		t.Fatal(err)
	}
	o = b.desire(strings.ReplaceAll(hook, "POLICY", "Fail"), "d2")
	o.SetUID(created.GetUID())
	if result := b.run(operation(plan.ActionApply, o)); result.Err != nil {
		t.Fatal(result.Err)
	}
	webhooks, _, _ = unstructured.NestedSlice(b.live(o).Object, "webhooks")
	webhook := webhooks[0].(map[string]any)
	if bundle, _, _ := unstructured.NestedString(webhook, "clientConfig", "caBundle"); bundle != "Cg==" || webhook["failurePolicy"] != "Fail" {
		t.Errorf("the webhook is %v", webhook)
	}
}

// G-09: an object whose status is busy is no conflict, since it is by its UID that a write or a delete names it.
func TestBusyObjectsAreNoConflict(t *testing.T) {
	var b *bench
	beats := 0
	busy := func(ctx context.Context) {
		beats++
		o := b.object(`{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}`)
		b.patch(ctx, o, "busy", `{"metadata":{"annotations":{"beat":"`+strings.Repeat("x", beats)+`"}}}`)
	}
	b = newBench(t, interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			busy(ctx)
			return c.Apply(ctx, o, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			busy(ctx)
			return c.Delete(ctx, o, opts...)
		},
	})
	created := b.create(b.desire(configMap, "d1"))
	b.nothingToMerge()
	o := b.desire(`{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: "2", b: "2"}}`, "d2")
	o.SetUID(created.GetUID())
	b.do(operation(plan.ActionApply, o), 1)
	b.do(operation(plan.ActionDelete, o), 1)
	b.absent(o)
	if beats != 2 {
		t.Errorf("the object was changed %d times in between", beats)
	}
}

// G-12: what is adopted by being recreated need not be ours, and not even on a conflict becomes an error about its
// owner.
func TestRecreateOfWhatIsAdopted(t *testing.T) {
	conflicts, calls := 0, 0
	b := newBench(t, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if calls++; calls <= conflicts {
				return conflict("x")
			}
			return c.Delete(ctx, o, opts...)
		},
	})
	for _, test := range adoptions {
		for policy := range map[apis.AdoptionPolicy]bool{apis.AdoptIfUnowned: true, apis.AdoptAlways: true} {
			there := b.put(configMap, ownedBy(test.id, test.owner))
			o := b.desire(configMap, "d1", func(m *manifest.Object) {
				m.Desired.AdoptionPolicy, m.Desired.UpdatePolicy = policy, apis.UpdateRecreate
			})
			o.SetUID(there.GetUID())
			conflicts, calls = 1, 0
			result := b.run(operation(plan.ActionRecreate, o))
			if !test.allowed[policy] {
				wantOwner(t, result, test.ownership)
				if err := b.Delete(t.Context(), named(o)); err != nil {
					t.Fatal(err)
				}
				continue
			}
			if result.Err != nil || calls != 2 {
				t.Fatalf("%s, %s: got the error %v after %d calls", test.name, policy, result.Err, calls)
			}
			b.absent(o)
			if created := b.create(o); created.GetUID() == there.GetUID() || created.GetLabels()[ownerLabel] != myID {
				t.Errorf("%s, %s: got the metadata %v", test.name, policy, created.Object["metadata"])
			}
			if err := b.Delete(t.Context(), named(o)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// G-13: components of one name and different kinds are two owners.
func TestKindIsPartOfTheOwner(t *testing.T) {
	b := newBench(t)
	for owner, want := range map[string]plan.Ownership{
		"Web.example.com/shop/web/0003": plan.Foreign,
		"App.example.org/shop/web/0003": plan.Foreign,
		"App.example.com/mall/web/0003": plan.Foreign,
		"App.example.com/shop/web/0003": plan.Predecessor,
	} {
		there := b.put(configMap, ownedBy(otherID, owner))
		o := b.desire(configMap, "d1", func(m *manifest.Object) { m.Desired.AdoptionPolicy = apis.AdoptNever })
		o.SetUID(there.GetUID())
		wantOwner(t, b.run(operation(plan.ActionAdopt, o)), want)
		if err := b.Delete(t.Context(), named(o)); err != nil {
			t.Fatal(err)
		}
	}
}

// A policy that nobody knows allows nothing.
func TestUnknownPolicyAdoptsNothing(t *testing.T) {
	b := newBench(t)
	there := b.put(configMap)
	o := b.desire(configMap, "d1", func(m *manifest.Object) { m.Desired.AdoptionPolicy = "Sometimes" })
	o.SetUID(there.GetUID())
	wantOwner(t, b.run(operation(plan.ActionAdopt, o)), plan.Unowned)
}

// G-14: another component adopts what was orphaned as if nobody had ever had it, and to orphan it again is not for the
// first one.
func TestSuccessorAdoptsAnOrphan(t *testing.T) {
	b := newBench(t)
	o := b.desire(configMap, "d1")
	o.SetUID(b.create(o).GetUID())
	b.do(operation(plan.ActionOrphan, o), 2)
	first := b.executor.Mark
	b.executor.Mark = execute.Mark{Prefix: prefix, ID: otherID, Owner: otherOwner}
	if result := b.run(operation(plan.ActionAdopt, o)); result.Err != nil {
		t.Fatal(result.Err)
	}
	b.executor.Mark = first
	b.do(operation(plan.ActionOrphan, o), 1)
	if got := b.live(o); got.GetLabels()[ownerLabel] != otherID || got.GetUID() != o.GetUID() {
		t.Errorf("got the metadata %v", got.Object["metadata"])
	}
}

// G-16: an object that is being deleted, or was restored with our marks under another UID, is deleted again without an
// error.
func TestDeleteAgain(t *testing.T) {
	b := newBench(t)
	o := b.desire(configMap, "d1")
	created := b.create(o)
	o.SetUID(created.GetUID())
	b.do(operation(plan.ActionDelete, o), 1)
	restored := b.put(configMap, ownedBy(myID, myOwner))
	if result := b.run(operation(plan.ActionDelete, o)); result.Err != nil || !result.Gone {
		t.Errorf("the one that is gone: got the error %v, and gone is %t", result.Err, result.Gone)
	}
	if b.live(o).GetUID() != restored.GetUID() {
		t.Error("the restored object was deleted in the place of the one that is gone")
	}
	o.SetUID(restored.GetUID())
	b.do(operation(plan.ActionDelete, o), 1)
	b.absent(o)
}

// G-20: a namespace that somebody else creates at the same time is there, and that is all.
func TestEnsureNamespacesAtTheSameTime(t *testing.T) {
	b := newBench(t)
	name := "both-" + b.namespace
	var wait sync.WaitGroup
	failed := make([]map[string]error, 4)
	for i := range failed {
		wait.Go(func() { failed[i] = b.executor.EnsureNamespaces(t.Context(), []string{name}) })
	}
	wait.Wait()
	for _, errs := range failed {
		if len(errs) != 0 {
			t.Errorf("got the errors %v", errs)
		}
	}
	o := b.desire(`{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: `+name+`}}`, "d1")
	b.create(o)
}

// G-24: operations and objects that make no sense are errors.
func TestNonsenseIsNoPanic(t *testing.T) {
	b := newBench(t)
	for name, content := range map[string]map[string]any{
		"nil":            nil,
		"empty":          {},
		"metadata":       {"apiVersion": "v1", "kind": "ConfigMap", "metadata": []any{"x"}},
		"labels":         {"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x", "labels": "x", "annotations": []any{}}},
		"no version":     {"kind": "ConfigMap", "metadata": map[string]any{"name": "x"}},
		"finalizers":     {"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x", "finalizers": "x"}},
		"not what it is": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x"}, "data": []any{1}},
	} {
		key := plan.Key{Kind: "ConfigMap", Namespace: b.namespace, Name: "x"}
		o := manifest.Given(&unstructured.Unstructured{Object: content})
		o.Desired = plan.Desired{Key: key, Digest: "d"}
		b.executor.Objects[key] = &o
		for _, action := range []plan.Action{plan.ActionCreate, plan.ActionApply, plan.ActionAdopt, plan.ActionReplace} {
			for _, uid := range []types.UID{"", "1"} {
				op := plan.Operation{Action: action, Key: key, Version: "v1", UID: uid, Pattern: -1}
				if result := b.run(op); result.Err == nil && action != plan.ActionCreate {
					t.Errorf("%s: %s was done", name, action)
				}
			}
		}
	}
	b.executor.Objects[plan.Key{}] = &manifest.Object{}
	if b.run(plan.Operation{}).Err == nil || b.run(plan.Operation{Action: plan.ActionCreate}).Err == nil {
		t.Error("an empty operation was done")
	}
}

// A type of which the instances that others have do not matter is deleted plainly, by its UID; for any other the guard
// is asked.
func TestTypeWhoseForeignInstancesDoNotMatter(t *testing.T) {
	b := newBench(t)
	there := b.put(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: plains.test.espalier.dev},
		spec: {group: test.espalier.dev, scope: Namespaced, names: {plural: plains, kind: Plain}, versions: [
		{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`)
	t.Cleanup(func() { _ = b.Delete(context.Background(), named(there)) })
	g := &guard{use: plan.Use{State: plan.ForeignBlocking}}
	b.executor.Guard = g
	record := apis.InventoryRecord{}
	for _, test := range []struct {
		ignore bool
		action plan.Action
		asked  int
	}{{false, plan.ActionDelete, 1}, {true, plan.ActionDeleteType, 1}, {true, plan.ActionRecreate, 1}, {true, plan.ActionDelete, 0}} {
		record.IgnoreForeignInstances = test.ignore
		b.executor.Records[keyOf(there)], g.calls = record, nil
		if result := b.run(operation(test.action, there)); result.Err != nil || len(g.calls) != test.asked {
			t.Errorf("%s (%t): got the error %v, and the guard was asked %q", test.action, test.ignore, result.Err, g.calls)
		}
		live := named(there)
		if err := b.Get(t.Context(), client.ObjectKeyFromObject(there), live); test.asked == 1 && (err != nil || live.GetDeletionTimestamp() != nil) {
			t.Errorf("%s (%t): it was deleted (%v)", test.action, test.ignore, err)
		} else if test.asked == 0 && err == nil && live.GetDeletionTimestamp() == nil {
			t.Errorf("%s (%t): it was not deleted", test.action, test.ignore)
		}
	}
}

// A create that finds an object it may not read says both, and one that finds, again and again, what is gone when it
// looks gives up.
func TestCreateThatCannotLook(t *testing.T) {
	var read error
	creates := 0
	b := newBench(t, interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			creates++
			return apierrs.NewAlreadyExists(configMaps, "x")
		},
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return read
		},
	})
	op := operation(plan.ActionCreate, b.desire(configMap, "d1"))
	var exists *execute.ExistsError
	read = apierrs.NewForbidden(configMaps, "x", errors.New("because"))
	result := b.run(op)
	if !errors.As(result.Err, &exists) || !apierrs.IsForbidden(result.Err) || result.Object != nil || creates != 1 {
		t.Errorf("got the error %v, and the object %v, after %d creates", result.Err, result.Object, creates)
	}
	b.wantText(result.Err, `unable to create ConfigMap NS/x: ConfigMap NS/x exists already, and cannot be read: configmaps "x" is forbidden: because`)
	read, creates = apierrs.NewNotFound(configMaps, "x"), 0
	result = b.run(op)
	if !errors.As(result.Err, &exists) || result.Object != nil || creates != 5 {
		t.Errorf("got the error %v, and the object %v, after %d creates", result.Err, result.Object, creates)
	}
}

// An orphan that cannot be read, or keeps changing, is an error, and keeps its marks.
func TestOrphanThatFails(t *testing.T) {
	var read error
	patches := 0
	b := newBench(t, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
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
		t.Errorf("got the error %v after %d patches", result.Err, patches)
	}
	read, patches = apierrs.NewForbidden(configMaps, "x", errors.New("because")), 0
	result := b.run(operation(plan.ActionOrphan, o))
	b.wantText(result.Err, `unable to orphan ConfigMap NS/x: configmaps "x" is forbidden: because`)
	if result.Gone || patches != 0 || b.live(o).GetLabels()[ownerLabel] != myID {
		t.Errorf("gone is %t, after %d patches", result.Gone, patches)
	}
	// What cannot be read is not written either.
	for _, action := range []plan.Action{plan.ActionApply, plan.ActionAdopt, plan.ActionReplace} {
		if result := b.run(operation(action, o)); !apierrs.IsForbidden(result.Err) || result.Gone {
			t.Errorf("%s: got the error %v", action, result.Err)
		}
	}
}

// L4: whatever is written or deleted names the UID of what is meant, in each attempt.
func TestEveryWriteNamesTheUID(t *testing.T) {
	var uids []string
	note := func(uid string) { uids = append(uids, uid) }
	b := newBench(t, interceptor.Funcs{
		Apply: func(_ context.Context, _ client.WithWatch, o runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
			if err != nil {
				return err
			}
			note(field(&unstructured.Unstructured{Object: content}, "metadata", "uid"))
			return conflict("x")
		},
		Update: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.UpdateOption) error {
			note(string(o.GetUID()))
			return conflict("x")
		},
		Patch: func(_ context.Context, _ client.WithWatch, o client.Object, p client.Patch, _ ...client.PatchOption) error {
			data, err := p.Data(o)
			content := &unstructured.Unstructured{}
			if err = errors.Join(err, content.UnmarshalJSON(append([]byte(`{"apiVersion":"v1","kind":"ConfigMap",`), data[1:]...))); err != nil {
				return err
			}
			note(field(content, "metadata", "uid"))
			return conflict("x")
		},
		Delete: func(_ context.Context, _ client.WithWatch, _ client.Object, opts ...client.DeleteOption) error {
			options := client.DeleteOptions{}
			options.ApplyOptions(opts)
			if options.Preconditions == nil || options.Preconditions.UID == nil {
				note("")
			} else {
				note(string(*options.Preconditions.UID))
			}
			return conflict("x")
		},
	})
	o := b.desire(configMap, "d1")
	created := b.create(o)
	o.SetUID(created.GetUID())
	b.nothingToMerge()
	for _, action := range []plan.Action{
		plan.ActionApply, plan.ActionAdopt, plan.ActionReplace, plan.ActionOrphan, plan.ActionDelete, plan.ActionPurge, plan.ActionRecreate,
	} {
		uids = nil
		if result := b.run(operation(action, o)); !isConflict(result.Err) {
			t.Errorf("%s: got the error %v", action, result.Err)
		}
		if len(uids) != 5 {
			t.Errorf("%s was tried %d times", action, len(uids))
		}
		for _, uid := range uids {
			if uid != string(created.GetUID()) {
				t.Errorf("%s names the UID %q", action, uid)
			}
		}
	}
	if got := b.live(o); got.GetResourceVersion() != created.GetResourceVersion() || !maps.Equal(dataOf(got), dataOf(created)) {
		t.Error("the object was written")
	}
}

// A replacement leaves alone a field that could be assigned and is desired.
func TestReplaceWritesWhatIsDesiredOfAssignedFields(t *testing.T) {
	b := newBench(t)
	const text = `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: x, labels: {n: "N"}}, spec: {storageClassName: mine, volumeName: v, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`
	created := b.create(b.desire(strings.ReplaceAll(text, "N", "1"), "d1"))
	o := b.desire(strings.ReplaceAll(strings.ReplaceAll(text, `"N"`, `"2"`), "mine", "other"), "d2")
	o.SetUID(created.GetUID())
	// That is refused, and not hidden.
	if result := b.run(operation(plan.ActionReplace, o)); !apierrs.IsInvalid(result.Err) {
		t.Errorf("got the error %v", result.Err)
	}
}
