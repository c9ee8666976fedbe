package execute_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
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

// One changed object is one request, as long as no field goes.
func TestApplyInOneRequest(t *testing.T) {
	b := newBench(t)
	created := b.create(b.desire(configMap, "d1"))
	b.observeManaged(created)
	b.patch(t.Context(), created, "somebody", `{"data":{"theirs":"3"}}`)
	o := b.desire(`{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: "1", b: "changed", c: "new"}}`,
		"d2")
	o.SetUID(created.GetUID())
	before := o.DeepCopy()
	result := b.do(operation(plan.ActionApply, o), 1)
	want := map[string]string{"a": "1", "b": "changed", "c": "new", "theirs": "3"}
	if got := dataOf(result.Object); !maps.Equal(got, want) || !maps.Equal(dataOf(b.live(o)), want) {
		t.Errorf("got the data %v, want %v", got, want)
	}
	if got := b.live(o).GetAnnotations()[digestNote]; got != "d2" {
		t.Errorf(`the digest is %q, want "d2"`, got)
	}
	if result.Unchanged {
		t.Error("the object counts as unchanged, want that it was written")
	}
	if !equal(o.Object, before.Object) {
		t.Errorf("the manifest was changed to %v, want %v", o.Object, before.Object)
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
	o := b.desire(`{apiVersion: v1, kind: ConfigMap, metadata: {name: x, labels: {app: web}}, data: {a: "1", b: "2"}}`,
		"d2")
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
	created := b.create(b.desire(`{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: "1", b: "2"}}`,
		"d1"))
	o := b.desire(`{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: "1"}}`, "d2")
	o.SetUID(created.GetUID())
	if b.do(operation(plan.ActionApply, o), 3).Unchanged {
		t.Error("the object counts as unchanged, want that it was written")
	}
	if got, want := dataOf(b.live(o)), map[string]string{"a": "1"}; !maps.Equal(got, want) {
		t.Errorf("got the data %v, want %v", got, want)
	}
	if !b.do(operation(plan.ActionApply, o), 2).Unchanged {
		t.Error("the object does not count as unchanged, want that it does")
	}
	b.executor.Managed = func(plan.Key) []metav1.ManagedFieldsEntry { return nil }
	b.do(operation(plan.ActionApply, o), 2)
}

// What the API server or a controller has filled in is left or filled in again when fields are merged.
func TestApplyLeavesWhatTheServerFilledIn(t *testing.T) {
	controlplanetest.Real(t, "admission has to set default classes")
	for _, test := range []struct {
		name, before, after string
		check               func(before, after *unstructured.Unstructured) bool
	}{{
		name: "Service",
		before: `{apiVersion: v1, kind: Service, metadata: {name: x, labels: {old: "true"}},
			spec: {type: NodePort, selector: {app: web}, 
			ports: [{name: a, port: 80}, {name: b, port: 80, protocol: UDP}]}}`,
		after: `{apiVersion: v1, kind: Service, metadata: {name: x},
			spec: {type: NodePort, selector: {app: web}, ports: [{name: a, port: 80}]}}`,
		check: func(before, after *unstructured.Unstructured) bool {
			portsBefore, _, _ := unstructured.NestedSlice(before.Object, "spec", "ports")
			portsAfter, _, _ := unstructured.NestedSlice(after.Object, "spec", "ports")
			return field(after, "spec", "clusterIP") == field(before, "spec", "clusterIP") && len(portsAfter) == 1 &&
				equal(portsAfter[0], portsBefore[0])
		},
	}, {
		name: "Deployment",
		before: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: x, labels: {old: "true"}},
			spec: {minReadySeconds: 5, selector: {matchLabels: {app: web}},
			template: {metadata: {labels: {app: web}},
			spec: {containers: [{name: a, image: a, env: [{name: OLD, value: "1"}]}]}}}}`,
		after: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: x}, spec: {selector: {matchLabels: {app: web}},
			template: {metadata: {labels: {app: web}}, spec: {containers: [{name: a, image: a}]}}}}`,
		check: func(before, after *unstructured.Unstructured) bool {
			containers, _, _ := unstructured.NestedSlice(after.Object, "spec", "template", "spec", "containers")
			container, _ := containers[0].(map[string]any)
			return container["env"] == nil && container["imagePullPolicy"] == "Always" &&
				number(after, "spec", "minReadySeconds") == 0 &&
				field(after, "spec", "strategy", "type") == "RollingUpdate"
		},
	}, {
		name: "Pod, whose spec must not change",
		before: `{apiVersion: v1, kind: Pod, metadata: {name: x, labels: {old: "true"}},
			spec: {automountServiceAccountToken: false,
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
			return field(before, "spec", "storageClassName") == "standard" &&
				field(after, "spec", "storageClassName") == "standard" &&
				slices.Equal(after.GetFinalizers(), []string{"kubernetes.io/pvc-protection"})
		},
	}, {
		name: "Ingress, with class by admission",
		before: `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: x, labels: {old: "true"}},
			spec: {defaultBackend: {service: {name: x, port: {number: 80}}}}}`,
		after: `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: x},
			spec: {defaultBackend: {service: {name: x, port: {number: 80}}}}}`,
		check: func(before, after *unstructured.Unstructured) bool {
			return field(before, "spec", "ingressClassName") == "standard" &&
				field(after, "spec", "ingressClassName") == "standard"
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
				t.Errorf("the label old is still %q, want none", live.GetLabels()["old"])
			}
			if !test.check(created, live) {
				t.Errorf("the object is\n%v\nwant what the server filled in kept from\n%v", live.Object, created.Object)
			}
		})
	}
}

// defaults makes classes that admission gives to what is created without one, and the account that pods have to have.
func (b *bench) defaults() {
	b.Helper()
	for _, text := range []string{
		`{apiVersion: storage.k8s.io/v1, kind: StorageClass,
			metadata: {name: standard, annotations: {storageclass.kubernetes.io/is-default-class: "true"}},
			provisioner: nobody.example.com}`,
		`{apiVersion: networking.k8s.io/v1, kind: IngressClass,
			metadata: {name: standard, annotations: {ingressclass.kubernetes.io/is-default-class: "true"}},
			spec: {controller: nobody.example.com/x}}`,
		`{apiVersion: v1, kind: ServiceAccount, metadata: {name: default}}`,
	} {
		if err := b.Create(b.Context(), b.object(text)); client.IgnoreAlreadyExists(err) != nil {
			b.Fatal(err)
		}
	}
	// Admission reads them from a cache.
	for range 100 {
		claim := b.object(`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: probe},
			spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`)
		ingress := b.object(`{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: probe},
			spec: {defaultBackend: {service: {name: x, port: {number: 80}}}}}`)
		for _, o := range []*unstructured.Unstructured{claim, ingress} {
			if err := b.Create(b.Context(), o, client.DryRunAll); err != nil {
				b.Fatal(err)
			}
		}
		if field(claim, "spec", "storageClassName") != "" && field(ingress, "spec", "ingressClassName") != "" {
			return
		}
	}
	b.Fatal("admission sets no classes after 100 tries, want it to set both")
}

// Fields that were applied in another version of the type are removed too.
func TestApplyInAnotherVersion(t *testing.T) {
	b := newBench(t)
	text := func(version, labels string) string {
		return `{apiVersion: autoscaling/` + version +
			`, kind: HorizontalPodAutoscaler, metadata: {name: x, labels: {` + labels + `}},
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
		t.Errorf("the labels are %v, want one", got)
	}
	if got, want := managersOf(live), []string{prefix + " Apply autoscaling/v2"}; !slices.Equal(got, want) {
		t.Errorf("the managers are %v, want %v", got, want)
	}
}

// The fields of reclaimed managers are removed, the fields of others stay.
func TestOverride(t *testing.T) {
	b := newBench(t)
	created := b.create(b.desire(configMap, "d1"))
	for _, manager := range []string{"kubectl", "kubectl-actor", "other-actor"} {
		b.patch(t.Context(), created, manager,
			`{"data":{"`+manager+`":"x"},"metadata":{"annotations":{"`+manager+`":"x"},`+
				`"finalizers":["example.com/`+manager+`"]}}`)
	}
	o := b.desire(configMap, "d2")
	o.SetUID(created.GetUID())
	op := operation(plan.ActionApply, o)
	b.nothingToMerge()
	b.do(op, 1)
	if got := dataOf(b.live(o)); len(got) != 5 {
		t.Errorf("without override, the data are %v, want five values", got)
	}
	op.Override = true
	b.do(op, 3)
	live := b.live(o)
	if got, want := dataOf(live), map[string]string{"a": "1", "b": "2", "other-actor": "x"}; !maps.Equal(got, want) {
		t.Errorf("got the data %v, want %v", got, want)
	}
	if got, want := slices.Sorted(maps.Keys(live.GetAnnotations())),
		[]string{"other-actor", digestNote, ownerNote}; !slices.Equal(got, want) {
		t.Errorf("got the annotations %v, want %v", got, want)
	}
	if got := live.GetFinalizers(); len(got) != 1 {
		t.Errorf("the finalizers are %v, want one", got)
	}
	if !b.do(op, 2).Unchanged {
		t.Error("the second time, the object does not count as unchanged, want that it does")
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
		t.Errorf("the finalizers are %v, want [example.com/theirs]", got)
	}
}

// A conflict that is none of the object meant being another one is tried again, a few times.
func TestApplyConflicts(t *testing.T) {
	conflicts, calls := 4, 0
	b := newBench(t, interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration,
			opts ...client.ApplyOption) error {
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
		t.Errorf("the error is %v after %d calls, want none after 5", result.Err, calls)
	}
	if got := b.requests.Total(); got != 5 {
		t.Errorf("there are %d requests, want 5, with a look at the object after each conflict:\n%s",
			got, b.requests)
	}
	conflicts, calls = 1000, 0
	result := b.run(operation(plan.ActionApply, o))
	if !isConflict(result.Err) || result.Gone || calls != 5 {
		t.Errorf("the error is %v and gone is %t after %d calls, want a conflict and false after 5", result.Err,
			result.Gone, calls)
	}
}

// A write between the read and the merge of the managed fields is not lost.
func TestMergeConflict(t *testing.T) {
	var b *bench
	calls := 0
	b = newBench(t, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch,
			opts ...client.PatchOption) error {
			if calls++; calls == 1 {
				b.patch(ctx, o, "other", `{"data":{"theirs":"1"}}`)
			}
			return c.Patch(ctx, o, p, opts...)
		},
	})
	created := b.create(b.desire(`{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: "1", b: "2"}}`,
		"d1"))
	o := b.desire(`{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: "1"}}`, "d2")
	o.SetUID(created.GetUID())
	if result := b.run(operation(plan.ActionApply, o)); result.Err != nil || calls != 2 {
		t.Fatalf("the error is %v after %d calls, want none after 2", result.Err, calls)
	}
	live := b.live(o)
	if got, want := dataOf(live), map[string]string{"a": "1", "theirs": "1"}; !maps.Equal(got, want) {
		t.Errorf("got the data %v, want %v", got, want)
	}
	if got := managersOf(live); len(got) != 2 {
		t.Errorf("the managers are %v, want two", got)
	}
}

// A crash between the merging and the apply leaves an object that the next apply puts right.
func TestCrashAfterMerge(t *testing.T) {
	crash := true
	b := newBench(t, interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration,
			opts ...client.ApplyOption) error {
			if crash {
				return errors.New("crash")
			}
			return c.Apply(ctx, o, opts...)
		},
	})
	created := b.create(b.desire(`{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: "1", b: "2"}}`,
		"d1"))
	o := b.desire(`{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: "1"}}`, "d2")
	o.SetUID(created.GetUID())
	b.wantText(b.run(operation(plan.ActionApply, o)).Err, "unable to apply ConfigMap NS/x: crash")
	if got := b.live(o); len(dataOf(got)) != 2 || got.GetAnnotations()[digestNote] != "d1" {
		t.Errorf("the object is %v, want two values of data and the digest d1", got.Object)
	}
	crash = false
	b.do(operation(plan.ActionApply, o), 2)
	if got, want := dataOf(b.live(o)), map[string]string{"a": "1"}; !maps.Equal(got, want) {
		t.Errorf("got the data %v, want %v", got, want)
	}
}

// What is written is what was generated: nothing goes that a Go type would not know, and nothing is added that it
// would write.
func TestWritesHoldWhatWasGenerated(t *testing.T) {
	var sent []map[string]any
	b := newBench(t, interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			sent = append(sent, o.(*unstructured.Unstructured).Object)
			return nil
		},
		Apply: func(_ context.Context, _ client.WithWatch, o runtime.ApplyConfiguration,
			_ ...client.ApplyOption) error {
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
			sent = append(sent, content)
			return err
		},
	})
	b.nothingToMerge()
	o := b.desire(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: x, uid: "1"},
		spec: {tomorrow: {a: true}, template: {spec: {alsoTomorrow: [1]}}}}`, "d1")
	for _, action := range []plan.Action{plan.ActionCreate, plan.ActionApply} {
		if result := b.run(operation(action, o)); result.Err != nil {
			t.Fatal(result.Err)
		}
	}
	for _, content := range sent {
		if _, ok := content["status"]; ok || !equal(content["spec"], o.Object["spec"]) {
			t.Errorf("the write sent %v, want no status and the spec %v", content, o.Object["spec"])
		}
	}
	if len(sent) != 2 {
		t.Errorf("there were %d writes, want 2", len(sent))
	}
}

// An apply leaves what others have set: the replicas of an autoscaler, the bundle that was injected into a
// webhook, labels and annotations of other controllers.
func TestApplyLeavesWhatOthersSet(t *testing.T) {
	b := newBench(t)
	const text = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: x},
		spec: {selector: {matchLabels: {app: web}},
		template: {metadata: {labels: {app: web}}, spec: {containers: [{name: a, image: IMAGE}]}}}}`
	created := b.create(b.desire(strings.ReplaceAll(text, "IMAGE", "a:1"), "d1"))
	b.autoscale(t.Context(), created, "7")
	b.patch(t.Context(), created, "mesh",
		`{"metadata":{"labels":{"mesh":"1"},"annotations":{"mesh":"1"}},`+
			`"spec":{"template":{"metadata":{"annotations":{"inject":"yes"}}}}}`)
	o := b.desire(strings.ReplaceAll(text, "IMAGE", "a:2"), "d2")
	o.SetUID(created.GetUID())
	b.do(operation(plan.ActionApply, o), 3)
	live := b.live(o)
	if got := number(live, "spec", "replicas"); got != 7 {
		t.Errorf("there are %d replicas, want 7", got)
	}
	if live.GetLabels()["mesh"] != "1" || live.GetAnnotations()["mesh"] != "1" ||
		field(live, "spec", "template", "metadata", "annotations", "inject") != "yes" {
		t.Errorf("the object is %v, want the label, the annotation and the template annotation of others", live.Object)
	}

	name := "hook-" + b.namespace
	hook := `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: ` +
		name + `}, webhooks: [
		{name: a.example.com, admissionReviewVersions: [v1], sideEffects: None, failurePolicy: POLICY,
		clientConfig: {url: "https://example.com"}}]}`
	created = b.create(b.desire(strings.ReplaceAll(hook, "POLICY", "Ignore"), "d1"))
	t.Cleanup(func() {
		if err := client.IgnoreNotFound(b.Delete(context.Background(), named(created))); err != nil {
			t.Error(err)
		}
	})
	injected := b.live(created)
	webhooks, _, _ := unstructured.NestedSlice(injected.Object, "webhooks")
	if err := unstructured.SetNestedField(webhooks[0].(map[string]any), "Cg==", "clientConfig",
		"caBundle"); err != nil {
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
	if bundle, _, _ := unstructured.NestedString(webhook, "clientConfig", "caBundle"); bundle != "Cg==" ||
		webhook["failurePolicy"] != "Fail" {
		t.Errorf("the webhook is %v, want the bundle Cg== and the policy Fail", webhook)
	}
}

// Frequent writes of the status are not a conflict, since writes and deletes name the UID of the object only.
func TestBusyObjectsAreNoConflict(t *testing.T) {
	var b *bench
	beats := 0
	busy := func(ctx context.Context) {
		beats++
		o := b.object(`{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}`)
		b.patch(ctx, o, "busy", `{"metadata":{"annotations":{"beat":"`+strings.Repeat("x", beats)+`"}}}`)
	}
	b = newBench(t, interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration,
			opts ...client.ApplyOption) error {
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
		t.Errorf("the object was changed %d times in between, want 2", beats)
	}
}

// A replacement leaves alone a field that could be assigned and is desired.
func TestReplaceWritesWhatIsDesiredOfAssignedFields(t *testing.T) {
	b := newBench(t)
	const text = `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: x, labels: {n: "N"}},
		spec: {storageClassName: mine, volumeName: v, accessModes: [ReadWriteOnce],
		resources: {requests: {storage: 1Gi}}}}`
	created := b.create(b.desire(strings.ReplaceAll(text, `"N"`, `"1"`), "d1"))
	o := b.desire(strings.ReplaceAll(strings.ReplaceAll(text, `"N"`, `"2"`), "mine", "other"), "d2")
	o.SetUID(created.GetUID())
	// That is refused, and not hidden.
	if result := b.run(operation(plan.ActionReplace, o)); !apierrs.IsInvalid(result.Err) {
		t.Errorf("the error is %v, want an invalid one", result.Err)
	}
}
