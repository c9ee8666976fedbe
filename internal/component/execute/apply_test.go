package execute_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/manifest"
	"github.com/espalier-dev/espalier/internal/component/plan"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func dataOf(o *unstructured.Unstructured) map[string]string {
	data, _, _ := unstructured.NestedStringMap(o.Object, "data")
	return data
}

// G-08: one changed object is one request, as long as no field goes.
func TestApplyInOneRequest(t *testing.T) {
	b := newBench(t)
	created := b.create(b.desire(configMap, "d1"))
	b.observeManaged(created)
	b.patch(t.Context(), created, "somebody", `{"data":{"theirs":"3"}}`)
	o := b.desire(`{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: "1", b: "changed", c: "new"}}`, "d2")
	o.SetUID(created.GetUID())
	before := o.DeepCopy()
	result := b.do(operation(plan.ActionApply, o), 1)
	want := map[string]string{"a": "1", "b": "changed", "c": "new", "theirs": "3"}
	if got := dataOf(result.Object); !maps.Equal(got, want) || !maps.Equal(dataOf(b.live(o)), want) {
		t.Errorf("got the data %v, want %v", got, want)
	}
	if got := b.live(o).GetAnnotations()[digestNote]; got != "d2" {
		t.Errorf("the digest is %q", got)
	}
	if result.Unchanged {
		t.Error("the object counts as unchanged")
	}
	if !equal(o.Object, before.Object) {
		t.Error("the manifest was changed")
	}
}

// Fields that were created, and are not desired any more, go: in three requests at first, in one from then on.
func TestApplyTakesAwayWhatWasCreated(t *testing.T) {
	b := newBench(t)
	created := b.create(b.desire(`
apiVersion: v1
kind: ConfigMap
metadata: {name: x, labels: {old: "true", app: web}}
data: {a: "1", b: "2", c: "3"}
`, "d1"))
	b.observeManaged(created)
	o := b.desire(`{apiVersion: v1, kind: ConfigMap, metadata: {name: x, labels: {app: web}}, data: {a: "1", b: "2"}}`, "d2")
	o.SetUID(created.GetUID())
	b.do(operation(plan.ActionApply, o), 3)
	live := b.live(o)
	if got, want := dataOf(live), map[string]string{"a": "1", "b": "2"}; !maps.Equal(got, want) {
		t.Errorf("got the data %v, want %v", got, want)
	}
	if got, want := slices.Sorted(maps.Keys(live.GetLabels())), []string{"app", ownerLabel}; !slices.Equal(got, want) {
		t.Errorf("got the labels %v, want %v", got, want)
	}
	if got, want := managersOf(live), []string{prefix + " Apply v1"}; !slices.Equal(got, want) {
		t.Errorf("the managers are %v, want %v", got, want)
	}

	o = b.desire(`{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: "1"}}`, "d3")
	o.SetUID(created.GetUID())
	b.do(operation(plan.ActionApply, o), 1)
	if got, want := dataOf(b.live(o)), map[string]string{"a": "1"}; !maps.Equal(got, want) {
		t.Errorf("got the data %v, want %v", got, want)
	}
}

// When nothing is known of the managed fields, the object is read; and what the API server then finds not to be a
// change is told.
func TestApplyWithoutKnowledge(t *testing.T) {
	b := newBench(t)
	created := b.create(b.desire(`{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: "1", b: "2"}}`, "d1"))
	o := b.desire(`{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: "1"}}`, "d2")
	o.SetUID(created.GetUID())
	if b.do(operation(plan.ActionApply, o), 3).Unchanged {
		t.Error("the object counts as unchanged")
	}
	if got, want := dataOf(b.live(o)), map[string]string{"a": "1"}; !maps.Equal(got, want) {
		t.Errorf("got the data %v, want %v", got, want)
	}
	if !b.do(operation(plan.ActionApply, o), 2).Unchanged {
		t.Error("the object does not count as unchanged")
	}
	b.executor.Managed = func(plan.Key) []metav1.ManagedFieldsEntry { return nil }
	b.do(operation(plan.ActionApply, o), 2)
}

// What the API server or a controller has filled in is left or filled in again when fields are merged.
func TestApplyLeavesWhatTheServerFilledIn(t *testing.T) {
	for _, test := range []struct {
		name, before, after string
		check               func(before, after *unstructured.Unstructured) bool
	}{{
		name: "Service",
		before: `{apiVersion: v1, kind: Service, metadata: {name: x, labels: {old: "true"}},
			spec: {type: NodePort, selector: {app: web}, ports: [{name: a, port: 80}, {name: b, port: 80, protocol: UDP}]}}`,
		after: `{apiVersion: v1, kind: Service, metadata: {name: x},
			spec: {type: NodePort, selector: {app: web}, ports: [{name: a, port: 80}]}}`,
		check: func(before, after *unstructured.Unstructured) bool {
			portsBefore, _, _ := unstructured.NestedSlice(before.Object, "spec", "ports")
			portsAfter, _, _ := unstructured.NestedSlice(after.Object, "spec", "ports")
			return field(after, "spec", "clusterIP") == field(before, "spec", "clusterIP") && len(portsAfter) == 1 && equal(portsAfter[0], portsBefore[0])
		},
	}, {
		name: "Deployment",
		before: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: x, labels: {old: "true"}}, spec: {minReadySeconds: 5, selector: {matchLabels: {app: web}},
			template: {metadata: {labels: {app: web}}, spec: {containers: [{name: a, image: a, env: [{name: OLD, value: "1"}]}]}}}}`,
		after: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: x}, spec: {selector: {matchLabels: {app: web}},
			template: {metadata: {labels: {app: web}}, spec: {containers: [{name: a, image: a}]}}}}`,
		check: func(before, after *unstructured.Unstructured) bool {
			containers, _, _ := unstructured.NestedSlice(after.Object, "spec", "template", "spec", "containers")
			container, _ := containers[0].(map[string]any)
			return container["env"] == nil && container["imagePullPolicy"] == "Always" && number(after, "spec", "minReadySeconds") == 0 &&
				field(after, "spec", "strategy", "type") == "RollingUpdate"
		},
	}, {
		name: "Pod, whose spec must not change",
		before: `{apiVersion: v1, kind: Pod, metadata: {name: x, labels: {old: "true"}}, spec: {automountServiceAccountToken: false,
			containers: [{name: a, image: a}]}}`,
		after: `{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {automountServiceAccountToken: false,
			containers: [{name: a, image: b}]}}`,
		check: func(before, after *unstructured.Unstructured) bool {
			tolerations, _, _ := unstructured.NestedSlice(after.Object, "spec", "tolerations")
			return len(tolerations) == 2
		},
	}, {
		name: "PersistentVolumeClaim, with class and finalizer by admission",
		before: `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: x, labels: {old: "true"}},
			spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`,
		after: `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: x},
			spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`,
		check: func(before, after *unstructured.Unstructured) bool {
			return field(before, "spec", "storageClassName") == "standard" && field(after, "spec", "storageClassName") == "standard" &&
				slices.Equal(after.GetFinalizers(), []string{"kubernetes.io/pvc-protection"})
		},
	}, {
		name: "Ingress, with class by admission",
		before: `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: x, labels: {old: "true"}},
			spec: {defaultBackend: {service: {name: x, port: {number: 80}}}}}`,
		after: `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: x},
			spec: {defaultBackend: {service: {name: x, port: {number: 80}}}}}`,
		check: func(before, after *unstructured.Unstructured) bool {
			return field(before, "spec", "ingressClassName") == "standard" && field(after, "spec", "ingressClassName") == "standard"
		},
	}} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t)
			b.defaults()
			created := b.create(b.desire(test.before, "d1"))
			o := b.desire(test.after, "d2")
			o.SetUID(created.GetUID())
			b.do(operation(plan.ActionApply, o), 3)
			live := b.live(o)
			if live.GetLabels()["old"] != "" {
				t.Error("the old label is still there")
			}
			if !test.check(created, live) {
				t.Errorf("got\n%v\nfrom\n%v", live.Object, created.Object)
			}
		})
	}
}

// defaults makes classes that admission gives to what is created without one, and the account that pods have to have.
func (b *bench) defaults() {
	b.Helper()
	for _, text := range []string{
		`{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: standard, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}, provisioner: nobody.example.com}`,
		`{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: standard, annotations: {ingressclass.kubernetes.io/is-default-class: "true"}}, spec: {controller: nobody.example.com/x}}`,
		`{apiVersion: v1, kind: ServiceAccount, metadata: {name: default}}`,
	} {
		if err := b.Create(b.Context(), b.object(text)); client.IgnoreAlreadyExists(err) != nil {
			b.Fatal(err)
		}
	}
	// Admission reads them from a cache.
	for range 100 {
		claim := b.object(`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: probe}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`)
		ingress := b.object(`{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: probe}, spec: {defaultBackend: {service: {name: x, port: {number: 80}}}}}`)
		for _, o := range []*unstructured.Unstructured{claim, ingress} {
			if err := b.Create(b.Context(), o, client.DryRunAll); err != nil {
				b.Fatal(err)
			}
		}
		if field(claim, "spec", "storageClassName") != "" && field(ingress, "spec", "ingressClassName") != "" {
			return
		}
	}
	b.Fatal("admission does not set classes")
}

// A type whose version changes: what was applied in the old version goes too.
func TestApplyInAnotherVersion(t *testing.T) {
	b := newBench(t)
	text := func(version, labels string) string {
		return `{apiVersion: autoscaling/` + version + `, kind: HorizontalPodAutoscaler, metadata: {name: x, labels: {` + labels + `}},
			spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: x}}}`
	}
	created := b.create(b.desire(text("v1", `old: "1", older: "1"`), "d1"))
	o := b.desire(text("v1", `old: "1"`), "d2")
	o.SetUID(created.GetUID())
	b.do(operation(plan.ActionApply, o), 3)
	o = b.desire(text("v2", ``), "d3")
	o.SetUID(created.GetUID())
	b.do(operation(plan.ActionApply, o), 3)
	live := b.live(o)
	if got := live.GetLabels(); len(got) != 1 {
		t.Errorf("got the labels %v", got)
	}
	if got, want := managersOf(live), []string{prefix + " Apply autoscaling/v2"}; !slices.Equal(got, want) {
		t.Errorf("the managers are %v, want %v", got, want)
	}
}

// The fields of reclaimed managers go, those of others stay.
func TestOverride(t *testing.T) {
	b := newBench(t)
	created := b.create(b.desire(configMap, "d1"))
	for _, manager := range []string{"kubectl", "kubectl-actor", "other-actor"} {
		b.patch(t.Context(), created, manager, `{"data":{"`+manager+`":"x"},"metadata":{"annotations":{"`+manager+`":"x"},"finalizers":["example.com/`+manager+`"]}}`)
	}
	o := b.desire(configMap, "d2")
	o.SetUID(created.GetUID())
	op := operation(plan.ActionApply, o)
	b.nothingToMerge()
	b.do(op, 1)
	if got := dataOf(b.live(o)); len(got) != 5 {
		t.Errorf("without override, the data are %v", got)
	}
	op.Override = true
	b.do(op, 3)
	live := b.live(o)
	if got, want := dataOf(live), map[string]string{"a": "1", "b": "2", "other-actor": "x"}; !maps.Equal(got, want) {
		t.Errorf("got the data %v, want %v", got, want)
	}
	if got, want := slices.Sorted(maps.Keys(live.GetAnnotations())), []string{"other-actor", digestNote, ownerNote}; !slices.Equal(got, want) {
		t.Errorf("got the annotations %v, want %v", got, want)
	}
	if got := live.GetFinalizers(); len(got) != 1 {
		t.Errorf("got the finalizers %v", got)
	}
	if !b.do(op, 2).Unchanged {
		t.Error("the second time, the object does not count as unchanged")
	}
}

// A finalizer of a reclaimed manager stays.
func TestOverrideLeavesFinalizers(t *testing.T) {
	b := newBench(t)
	created := b.create(b.desire(configMap, "d1"))
	b.patch(t.Context(), created, "kubectl", `{"data":{"c":"x"},"metadata":{"finalizers":["example.com/theirs"]}}`)
	o := b.desire(configMap, "d2")
	o.SetUID(created.GetUID())
	op := operation(plan.ActionApply, o)
	op.Override = true
	b.do(op, 3)
	live := b.live(o)
	if got, want := dataOf(live), map[string]string{"a": "1", "b": "2"}; !maps.Equal(got, want) {
		t.Errorf("got the data %v, want %v", got, want)
	}
	if got := live.GetFinalizers(); !slices.Equal(got, []string{"example.com/theirs"}) {
		t.Errorf("got the finalizers %v", got)
	}
}

var adoptions = []struct {
	name      string
	id, owner string
	ownership plan.Ownership
	allowed   map[apis.AdoptionPolicy]bool
}{
	{"nobody's", "", "", plan.Unowned, map[apis.AdoptionPolicy]bool{apis.AdoptIfUnowned: true, apis.AdoptAlways: true}},
	{"ours", myID, myOwner, plan.Ours, map[apis.AdoptionPolicy]bool{apis.AdoptNever: true, apis.AdoptIfUnowned: true, apis.AdoptAlways: true}},
	{"a predecessor's", predecessorID, predecessor, plan.Predecessor, map[apis.AdoptionPolicy]bool{apis.AdoptIfUnowned: true, apis.AdoptAlways: true}},
	{"another's", otherID, otherOwner, plan.Foreign, map[apis.AdoptionPolicy]bool{apis.AdoptAlways: true}},
	{"of somebody who did not say", otherID, "", plan.Foreign, map[apis.AdoptionPolicy]bool{apis.AdoptAlways: true}},
}

// G-12, G-13: whose object may be adopted, by each policy, and what it is then; one that would be recreated can be
// adopted too.
func TestAdopt(t *testing.T) {
	b := newBench(t)
	b.nothingToMerge()
	for i, test := range adoptions {
		for _, policy := range []apis.AdoptionPolicy{apis.AdoptNever, apis.AdoptIfUnowned, apis.AdoptAlways} {
			for _, update := range []apis.UpdatePolicy{apis.UpdateApply, apis.UpdateReplace, apis.UpdateRecreate} {
				t.Run(test.name+" "+string(policy)+" "+string(update), func(t *testing.T) {
					name := strings.ToLower(string(policy)+string(update)) + string(rune('a'+i))
					there := b.put(`{apiVersion: v1, kind: ConfigMap, metadata: {name: `+name+`, finalizers: [example.com/f]}, data: {a: theirs, z: "9"}}`, func(o *unstructured.Unstructured) {
						if test.id != "" {
							ownedBy(test.id, test.owner)(o)
						}
					})
					o := b.desire(`{apiVersion: v1, kind: ConfigMap, metadata: {name: `+name+`}, data: {a: "1"}}`, "d1", func(m *manifest.Object) {
						m.Desired.AdoptionPolicy, m.Desired.UpdatePolicy = policy, update
					})
					o.SetUID(there.GetUID())
					op := operation(plan.ActionAdopt, o)
					if !test.allowed[policy] {
						result := b.run(op)
						wantOwner(t, result, test.ownership)
						if result.Gone || b.live(o).GetResourceVersion() != there.GetResourceVersion() {
							t.Error("the object was written, or counts as gone")
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
					if live.GetLabels()[ownerLabel] != myID || live.GetAnnotations()[ownerNote] != myOwner || live.GetUID() != there.GetUID() || len(live.GetFinalizers()) != 1 {
						t.Errorf("got the metadata %v", live.Object["metadata"])
					}
				})
			}
		}
	}
}

// G-13: whose an object is, is looked at whenever it is written.
func TestAdoptRefusals(t *testing.T) {
	b := newBench(t)
	there := b.put(configMap, ownedBy(otherID, otherOwner))
	o := b.desire(configMap, "d1")
	o.SetUID(there.GetUID())
	op := operation(plan.ActionAdopt, o)
	b.wantText(b.run(op).Err, "unable to adopt ConfigMap NS/x: it belongs to App.example.com/shop/db")
	b.patch(t.Context(), there, "somebody", `{"metadata":{"annotations":{"`+ownerNote+`":"nonsense"}}}`)
	b.wantText(b.run(op).Err, "unable to adopt ConfigMap NS/x: it belongs to another component")
	// What is applied because the plan took it for ours has to be ours, whatever the adoption policy.
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

// G-13: of two components that adopt an object at the same time, one does.
func TestAdoptionRace(t *testing.T) {
	for _, update := range []apis.UpdatePolicy{apis.UpdateApply, apis.UpdateReplace} {
		t.Run(string(update), func(t *testing.T) {
			var b *bench
			others := func(ctx context.Context) {
				there, err := b.executor.Objects[plan.Key{Kind: "ConfigMap", Namespace: b.namespace, Name: "x"}].Manifest()
				if err != nil {
					t.Error(err)
				}
				b.patch(ctx, there, "another",
					`{"metadata":{"labels":{"`+ownerLabel+`":"`+otherID+`"},"annotations":{"`+ownerNote+`":"`+otherOwner+`"}}}`)
			}
			b = newBench(t, interceptor.Funcs{
				Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
					others(ctx)
					return c.Apply(ctx, o, opts...)
				},
				Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
					others(ctx)
					return c.Update(ctx, o, opts...)
				},
			})
			there := b.put(configMap)
			o := b.desire(configMap, "d1", func(m *manifest.Object) { m.Desired.UpdatePolicy = update })
			o.SetUID(there.GetUID())
			wantOwner(t, b.run(operation(plan.ActionAdopt, o)), plan.Foreign)
			if b.live(o).GetLabels()[ownerLabel] != otherID {
				t.Error("the object was taken from the other component")
			}
		})
	}
}

// G-09: a conflict that is none of the object meant being another one is tried again, a few times.
func TestApplyConflicts(t *testing.T) {
	conflicts, calls := 4, 0
	b := newBench(t, interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			if calls++; calls <= conflicts {
				return conflict("x")
			}
			return c.Apply(ctx, o, opts...)
		},
	})
	created := b.create(b.desire(configMap, "d1"))
	b.observeManaged(created)
	o := b.desire(configMap, "d2")
	o.SetUID(created.GetUID())
	b.requests.Reset()
	if result := b.run(operation(plan.ActionApply, o)); result.Err != nil || calls != 5 {
		t.Errorf("got the error %v after %d calls", result.Err, calls)
	}
	if got := b.requests.Total(); got != 5 {
		t.Errorf("the object was not looked at after each conflict, and so not known to be the one that is meant:\n%s", b.requests)
	}
	conflicts, calls = 1000, 0
	result := b.run(operation(plan.ActionApply, o))
	if !isConflict(result.Err) || result.Gone || calls != 5 {
		t.Errorf("got the error %v after %d calls", result.Err, calls)
	}
}

// G-09: somebody who writes between the look and the merging of the managed fields loses nothing.
func TestMergeConflict(t *testing.T) {
	var b *bench
	calls := 0
	b = newBench(t, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if calls++; calls == 1 {
				b.patch(ctx, o, "other", `{"data":{"theirs":"1"}}`)
			}
			return c.Patch(ctx, o, p, opts...)
		},
	})
	created := b.create(b.desire(`{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: "1", b: "2"}}`, "d1"))
	o := b.desire(`{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: "1"}}`, "d2")
	o.SetUID(created.GetUID())
	if result := b.run(operation(plan.ActionApply, o)); result.Err != nil || calls != 2 {
		t.Fatalf("got the error %v after %d calls", result.Err, calls)
	}
	live := b.live(o)
	if got, want := dataOf(live), map[string]string{"a": "1", "theirs": "1"}; !maps.Equal(got, want) {
		t.Errorf("got the data %v, want %v", got, want)
	}
	if got := managersOf(live); len(got) != 2 {
		t.Errorf("the managers are %v", got)
	}
}

// A crash between the merging and the apply leaves an object that the next apply puts right.
func TestCrashAfterMerge(t *testing.T) {
	crash := true
	b := newBench(t, interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			if crash {
				return errors.New("crash")
			}
			return c.Apply(ctx, o, opts...)
		},
	})
	created := b.create(b.desire(`{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: "1", b: "2"}}`, "d1"))
	o := b.desire(`{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: "1"}}`, "d2")
	o.SetUID(created.GetUID())
	b.wantText(b.run(operation(plan.ActionApply, o)).Err, "unable to apply ConfigMap NS/x: crash")
	if got := b.live(o); len(dataOf(got)) != 2 || got.GetAnnotations()[digestNote] != "d1" {
		t.Errorf("got %v", got.Object)
	}
	crash = false
	b.do(operation(plan.ActionApply, o), 2)
	if got, want := dataOf(b.live(o)), map[string]string{"a": "1"}; !maps.Equal(got, want) {
		t.Errorf("got the data %v, want %v", got, want)
	}
}
