package execute_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/execute"
	"github.com/espalier-dev/espalier/internal/component/manifest"
	"github.com/espalier-dev/espalier/internal/component/plan"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

var adoptions = []struct {
	name      string
	id, owner string
	ownership plan.Ownership
	allowed   map[apis.AdoptionPolicy]bool
}{
	{"without owner", "", "", plan.Unowned, map[apis.AdoptionPolicy]bool{apis.AdoptIfUnowned: true,
		apis.AdoptAlways: true}},
	{"another's, without label", "", otherOwner, plan.Foreign, map[apis.AdoptionPolicy]bool{apis.AdoptAlways: true}},
	{"ours", myID, myOwner, plan.Ours, map[apis.AdoptionPolicy]bool{apis.AdoptNever: true, apis.AdoptIfUnowned: true,
		apis.AdoptAlways: true}},
	{"a predecessor's", predecessorID, predecessor, plan.Predecessor,
		map[apis.AdoptionPolicy]bool{apis.AdoptIfUnowned: true, apis.AdoptAlways: true}},
	{"another's", otherID, otherOwner, plan.Foreign, map[apis.AdoptionPolicy]bool{apis.AdoptAlways: true}},
	{"another's, without name", otherID, "", plan.Foreign, map[apis.AdoptionPolicy]bool{apis.AdoptAlways: true}},
}

// Whose object may be adopted, by each policy, and what it is then; one that would be recreated can be
// adopted too.
func TestAdopt(t *testing.T) {
	b := newBench(t)
	b.nothingToMerge()
	for i, test := range adoptions {
		for _, policy := range []apis.AdoptionPolicy{apis.AdoptNever, apis.AdoptIfUnowned, apis.AdoptAlways} {
			for _, update := range []apis.UpdatePolicy{apis.UpdateApply, apis.UpdateReplace, apis.UpdateRecreate} {
				t.Run(test.name+" "+string(policy)+" "+string(update), func(t *testing.T) {
					name := strings.ToLower(string(policy)+string(update)) + string(rune('a'+i))
					there := b.put(`{apiVersion: v1, kind: ConfigMap, metadata: {name: `+name+`, finalizers: [example.com/f]},
						data: {a: theirs, z: "9"}}`, func(o *unstructured.Unstructured) {
						ownedBy(test.id, test.owner)(o)
					})
					o := b.desire(`{apiVersion: v1, kind: ConfigMap, metadata: {name: `+name+`}, data: {a: "1"}}`, "d1",
						func(m *manifest.Object) {
							m.Desired.AdoptionPolicy, m.Desired.UpdatePolicy = policy, update
						})
					o.SetUID(there.GetUID())
					op := operation(plan.ActionAdopt, o)
					if !test.allowed[policy] {
						result := b.run(op)
						wantOwner(t, result, test.ownership)
						if result.Gone || b.live(o).GetResourceVersion() != there.GetResourceVersion() {
							t.Errorf("gone is %t and the resource version %s, want false and %s", result.Gone,
								b.live(o).GetResourceVersion(), there.GetResourceVersion())
						}
						return
					}
					b.do(op, 2)
					live := b.live(o)
					want := map[string]string{"a": "1", "z": "9"}
					if update == apis.UpdateReplace {
						want = map[string]string{"a": "1"}
					}
					if got := dataOf(live); !maps.Equal(got, want) {
						t.Errorf("got the data %v, want %v", got, want)
					}
					if live.GetLabels()[ownerLabel] != myID || live.GetAnnotations()[ownerNote] != myOwner ||
						live.GetUID() != there.GetUID() || len(live.GetFinalizers()) != 1 {
						t.Errorf("the metadata are %v, want the owner %s (%s), the UID %s and one finalizer",
							live.Object["metadata"], myID, myOwner, there.GetUID())
					}
				})
			}
		}
	}
}

// Whose an object is, is looked at whenever it is written.
func TestAdoptRefusals(t *testing.T) {
	b := newBench(t)
	there := b.put(configMap, ownedBy(otherID, otherOwner))
	o := b.desire(configMap, "d1")
	o.SetUID(there.GetUID())
	op := operation(plan.ActionAdopt, o)
	b.wantText(b.run(op).Err, "unable to adopt ConfigMap NS/x: it belongs to App.example.com shop/db")
	b.patch(t.Context(), there, "somebody", `{"metadata":{"annotations":{"`+ownerNote+`":"nonsense"}}}`)
	b.wantText(b.run(op).Err, "unable to adopt ConfigMap NS/x: it belongs to nonsense")
	// An object that is applied because the plan says that it is ours has to be ours, with any adoption policy.
	b.executor.Objects[op.Key].Desired.AdoptionPolicy = apis.AdoptAlways
	op.Action = plan.ActionApply
	wantOwner(t, b.run(op), plan.Foreign)
	op.Action = plan.ActionReplace
	wantOwner(t, b.run(op), plan.Foreign)
	b.patch(t.Context(), there, "somebody", `{"metadata":{"labels":{"`+ownerLabel+`":null}}}`)
	result := b.run(op)
	wantOwner(t, result, plan.Unowned)
	b.wantText(result.Err, "unable to replace ConfigMap NS/x: it does not belong to the component")
}

// Of two components that adopt an object at the same time, one does.
func TestAdoptionRace(t *testing.T) {
	for _, update := range []apis.UpdatePolicy{apis.UpdateApply, apis.UpdateReplace} {
		t.Run(string(update), func(t *testing.T) {
			var b *bench
			others := func(ctx context.Context) {
				there, err := b.executor.Objects[plan.Key{Kind: "ConfigMap", Namespace: b.namespace,
					Name: "x"}].Manifest()
				if err != nil {
					t.Error(err)
				}
				b.patch(ctx, there, "another",
					`{"metadata":{"labels":{"`+ownerLabel+`":"`+otherID+`"},`+
						`"annotations":{"`+ownerNote+`":"`+otherOwner+`"}}}`)
			}
			b = newBench(t, interceptor.Funcs{
				Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration,
					opts ...client.ApplyOption) error {
					others(ctx)
					return c.Apply(ctx, o, opts...)
				},
				Update: func(ctx context.Context, c client.WithWatch, o client.Object,
					opts ...client.UpdateOption) error {
					others(ctx)
					return c.Update(ctx, o, opts...)
				},
			})
			there := b.put(configMap)
			o := b.desire(configMap, "d1", func(m *manifest.Object) { m.Desired.UpdatePolicy = update })
			o.SetUID(there.GetUID())
			wantOwner(t, b.run(operation(plan.ActionAdopt, o)), plan.Foreign)
			if b.live(o).GetLabels()[ownerLabel] != otherID {
				t.Errorf("the owner is %q, want the other component %q", b.live(o).GetLabels()[ownerLabel], otherID)
			}
		})
	}
}

// What is adopted by being recreated need not be ours, and not even on a conflict becomes an error about its
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
				t.Fatalf("%s, %s: the error is %v after %d calls, want none after 2", test.name, policy, result.Err,
					calls)
			}
			b.absent(o)
			if created := b.create(o); created.GetUID() == there.GetUID() || created.GetLabels()[ownerLabel] != myID {
				t.Errorf("%s, %s: the metadata are %v, want another UID than %s and the owner %s", test.name, policy,
					created.Object["metadata"], there.GetUID(), myID)
			}
			if err := b.Delete(t.Context(), named(o)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Components of one name and different kinds are two owners.
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

// An unknown policy allows nothing.
func TestUnknownPolicyAdoptsNothing(t *testing.T) {
	b := newBench(t)
	there := b.put(configMap)
	o := b.desire(configMap, "d1", func(m *manifest.Object) { m.Desired.AdoptionPolicy = "Sometimes" })
	o.SetUID(there.GetUID())
	wantOwner(t, b.run(operation(plan.ActionAdopt, o)), plan.Unowned)
}

// Another component adopts what was orphaned as an object without owner. The first component cannot orphan it again.
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
		t.Errorf("the metadata are %v, want the owner %s and the UID %s", got.Object["metadata"], otherID, o.GetUID())
	}
}

// L4: each attempt to write or delete an object names its UID.
func TestEveryWriteNamesTheUID(t *testing.T) {
	var uids []string
	note := func(uid string) { uids = append(uids, uid) }
	b := newBench(t, interceptor.Funcs{
		Apply: func(_ context.Context, _ client.WithWatch, o runtime.ApplyConfiguration,
			_ ...client.ApplyOption) error {
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
		Patch: func(_ context.Context, _ client.WithWatch, o client.Object, p client.Patch,
			_ ...client.PatchOption) error {
			data, err := p.Data(o)
			content := &unstructured.Unstructured{}
			if err = errors.Join(err, content.UnmarshalJSON(append([]byte(`{"apiVersion":"v1","kind":"ConfigMap",`),
				data[1:]...))); err != nil {
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
		plan.ActionApply, plan.ActionAdopt, plan.ActionReplace, plan.ActionOrphan, plan.ActionDelete, plan.ActionPurge,
		plan.ActionRecreate,
	} {
		uids = nil
		if result := b.run(operation(action, o)); !isConflict(result.Err) {
			t.Errorf("%s: the error is %v, want a conflict", action, result.Err)
		}
		if len(uids) != 5 {
			t.Errorf("%s was tried %d times, want 5", action, len(uids))
		}
		for _, uid := range uids {
			if uid != string(created.GetUID()) {
				t.Errorf("%s names the UID %q, want %q", action, uid, created.GetUID())
			}
		}
	}
	if got := b.live(o); got.GetResourceVersion() != created.GetResourceVersion() ||
		!maps.Equal(dataOf(got), dataOf(created)) {
		t.Errorf("the object was written: resource version %s and data %v, want %s and %v", got.GetResourceVersion(),
			dataOf(got), created.GetResourceVersion(), dataOf(created))
	}
}

// No operation touches another object of the same name.
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
			t.Errorf("%s: the error is %v and gone is %t, want no error and true", action, result.Err, result.Gone)
		}
	}
	if live := b.live(o); live.GetUID() != there.GetUID() || live.GetResourceVersion() != there.GetResourceVersion() {
		t.Errorf("the object was written: UID %s and resource version %s, want %s and %s", live.GetUID(),
			live.GetResourceVersion(), there.GetUID(), there.GetResourceVersion())
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
			t.Errorf("%s: the error is %v and gone is %t, want no error and true", action, result.Err, result.Gone)
		}
	}
	b.absent(o)
}

// An operation without a UID is an error.
func TestNoUID(t *testing.T) {
	b := newBench(t)
	created := b.create(b.desire(configMap, "d1"))
	o := b.desire(configMap, "d2")
	b.requests.Reset()
	for _, action := range []plan.Action{
		plan.ActionApply, plan.ActionAdopt, plan.ActionReplace, plan.ActionDelete, plan.ActionPurge,
		plan.ActionRecreate, plan.ActionOrphan, plan.ActionDeleteType,
	} {
		if result := b.run(operation(action, o)); result.Err == nil || result.Gone {
			t.Errorf("%s: the error is %v and gone is %t, want an error and false", action, result.Err, result.Gone)
		}
	}
	if b.requests.Total() != 0 || b.live(o).GetResourceVersion() != created.GetResourceVersion() {
		t.Errorf("there are %d requests and the resource version is %s, want none and %s", b.requests.Total(),
			b.live(o).GetResourceVersion(), created.GetResourceVersion())
	}
}

// An object that was ours and lost its label is written, with any policy, unless another manager took it over. A record
// alone does not show that it was ours.
func TestRelabel(t *testing.T) {
	b := newBench(t)
	b.nothingToMerge()
	for _, action := range []plan.Action{plan.ActionRelabel, plan.ActionRecreate} {
		if action == plan.ActionRecreate {
			b.executor.Managed = func(plan.Key) []metav1.ManagedFieldsEntry { return nil }
		}
		there := b.put(configMap)
		o := b.desire(configMap, "d1", func(m *manifest.Object) { m.Desired.AdoptionPolicy = apis.AdoptNever })
		o.SetUID(there.GetUID())
		op := operation(action, o)
		wantOwner(t, b.run(op), plan.Unowned)
		b.executor.Records = map[plan.Key]apis.InventoryRecord{op.Key: {UID: there.GetUID()}}
		wantOwner(t, b.run(op), plan.Unowned)
		b.patch(t.Context(), there, "somebody", `{"metadata":{"annotations":{"`+ownerNote+`":"`+myOwner+`"}}}`)
		b.executor.Records = map[plan.Key]apis.InventoryRecord{op.Key: {UID: "another"}}
		wantOwner(t, b.run(op), plan.Unlabelled)
		b.executor.Records = map[plan.Key]apis.InventoryRecord{op.Key: {UID: there.GetUID()}}
		helm := `{"metadata":{"annotations":{"meta.helm.sh/release-name":%s,"meta.helm.sh/release-namespace":%[1]s}}}`
		b.patch(t.Context(), there, "helm", fmt.Sprintf(helm, `"web"`))
		result := b.run(op)
		wantOwner(t, result, plan.Foreign)
		if !strings.HasSuffix(result.Err.Error(), ": it belongs to the Helm release web/web") {
			t.Errorf("the error is %v, want that it belongs to the Helm release web/web", result.Err)
		}
		b.patch(t.Context(), there, "helm", fmt.Sprintf(helm, "null"))
		if result := b.run(op); result.Err != nil {
			t.Errorf("%s: got the error %v", action, result.Err)
		}
		if action == plan.ActionRecreate {
			b.absent(o)
			return
		}
		if live := b.live(o); live.GetLabels()[ownerLabel] != myID || live.GetUID() != there.GetUID() {
			t.Errorf("the object is %v, want the owner %s and the UID %s", live.Object, myID, there.GetUID())
		}
		if err := b.Delete(t.Context(), named(o)); err != nil {
			t.Fatal(err)
		}
		b.executor.Records = nil
	}
}
