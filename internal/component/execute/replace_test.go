package execute_test

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestReplace(t *testing.T) {
	b := newBench(t)
	created := b.create(b.desire(`{apiVersion: v1, kind: ConfigMap, metadata: {name: x, finalizers: [example.com/ours]}, data: {a: "1", old: "2"}}`, "d1"))
	b.patch(t.Context(), created, "other", `{"data":{"theirs":"1"},"metadata":{"labels":{"theirs":"1"},"finalizers":["example.com/ours","example.com/theirs"]}}`)
	o := b.desire(`{apiVersion: v1, kind: ConfigMap, metadata: {name: x, finalizers: [example.com/new]}, data: {a: "2"}}`, "d2")
	o.SetUID(created.GetUID())
	before := o.DeepCopy()
	if b.do(operation(plan.ActionReplace, o), 2).Unchanged {
		t.Error("the object counts as unchanged, want that it was written")
	}
	live := b.live(o)
	if got, want := dataOf(live), map[string]string{"a": "2"}; !maps.Equal(got, want) {
		t.Errorf("got the data %v, want %v", got, want)
	}
	if got, want := live.GetFinalizers(), []string{"example.com/new", "example.com/ours", "example.com/theirs"}; !slices.Equal(got, want) {
		t.Errorf("got the finalizers %v, want %v", got, want)
	}
	if got, want := live.GetLabels(), map[string]string{ownerLabel: myID}; !maps.Equal(got, want) {
		t.Errorf("got the labels %v, want %v", got, want)
	}
	if got, want := live.GetAnnotations(), map[string]string{ownerNote: myOwner, digestNote: "d2"}; !maps.Equal(got, want) {
		t.Errorf("got the annotations %v, want %v", got, want)
	}
	if !b.do(operation(plan.ActionReplace, o), 2).Unchanged {
		t.Error("the second time, the object does not count as unchanged, want that it does")
	}
	if !equal(o.Object, before.Object) {
		t.Errorf("the manifest was changed to %v, want %v", o.Object, before.Object)
	}
}

// Fields that the API server assigned, and does not let a client take away, are sent back.
func TestReplaceKeepsWhatWasAssigned(t *testing.T) {
	controlplanetest.Real(t, "admission has to set default classes")
	for _, test := range []struct {
		name, before, after string
		// bind is a patch on behalf of a controller.
		bind string
		same [][]string
	}{{
		name:   "Service",
		before: `{apiVersion: v1, kind: Service, metadata: {name: x}, spec: {type: LoadBalancer, externalTrafficPolicy: Local, ports: [{name: a, port: 80}]}}`,
		after:  `{apiVersion: v1, kind: Service, metadata: {name: x}, spec: {type: LoadBalancer, externalTrafficPolicy: Local, ports: [{name: a, port: 81}]}}`,
		same:   [][]string{{"spec", "clusterIP"}, {"spec", "clusterIPs"}, {"spec", "healthCheckNodePort"}},
	}, {
		name:   "Service that becomes external",
		before: `{apiVersion: v1, kind: Service, metadata: {name: x}, spec: {ports: [{name: a, port: 80}]}}`,
		after:  `{apiVersion: v1, kind: Service, metadata: {name: x}, spec: {type: ExternalName, externalName: example.com}}`,
	}, {
		name:   "Service of another type",
		before: `{apiVersion: v1, kind: Service, metadata: {name: x}, spec: {type: LoadBalancer, externalTrafficPolicy: Local, ports: [{name: a, port: 80}]}}`,
		after:  `{apiVersion: v1, kind: Service, metadata: {name: x}, spec: {ports: [{name: a, port: 80}]}}`,
		same:   [][]string{{"spec", "clusterIP"}, {"spec", "clusterIPs"}},
	}, {
		name:   "PersistentVolumeClaim",
		before: `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: x}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`,
		after:  `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: x, labels: {app: web}}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`,
		bind:   `{"spec":{"volumeName":"v"}}`,
		same:   [][]string{{"spec", "volumeName"}, {"spec", "storageClassName"}},
	}, {
		name:   "Job",
		before: `{apiVersion: batch/v1, kind: Job, metadata: {name: x}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}}`,
		after:  `{apiVersion: batch/v1, kind: Job, metadata: {name: x, labels: {app: web}}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}}`,
		same:   [][]string{{"spec", "selector"}, {"spec", "template"}},
	}} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t)
			b.defaults()
			created := b.create(b.desire(test.before, "d1"))
			if test.bind != "" {
				b.patch(t.Context(), created, "binder", test.bind)
				created = b.live(created)
			}
			o := b.desire(test.after, "d2")
			o.SetUID(created.GetUID())
			b.do(operation(plan.ActionReplace, o), 2)
			live := b.live(o)
			for _, path := range test.same {
				before, _, _ := unstructured.NestedFieldNoCopy(created.Object, path...)
				after, _, _ := unstructured.NestedFieldNoCopy(live.Object, path...)
				if before == nil || !equal(before, after) {
					t.Errorf("%v is %v after the replacement, want %v as before", path, after, before)
				}
			}
		})
	}
}

// A write of another client between the look and the update leads to another look.
func TestReplaceRace(t *testing.T) {
	var b *bench
	calls, disturbed := 0, 1
	b = newBench(t, interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			if calls++; calls <= disturbed {
				b.patch(ctx, o, "other", `{"metadata":{"finalizers":["example.com/theirs"],"labels":{"n":"`+string(rune('a'+calls))+`"}}}`)
			}
			return c.Update(ctx, o, opts...)
		},
	})
	created := b.create(b.desire(configMap, "d1"))
	o := b.desire(configMap, "d2")
	o.SetUID(created.GetUID())
	if result := b.run(operation(plan.ActionReplace, o)); result.Err != nil || calls != 2 {
		t.Fatalf("the error is %v after %d calls, want none after 2", result.Err, calls)
	}
	live := b.live(o)
	if got := live.GetFinalizers(); !slices.Equal(got, []string{"example.com/theirs"}) {
		t.Errorf("the finalizers are %v, want [example.com/theirs]", got)
	}
	if got := live.GetLabels(); !maps.Equal(got, map[string]string{ownerLabel: myID}) {
		t.Errorf("the labels are %v, want %s=%s alone", got, ownerLabel, myID)
	}
	calls, disturbed = 0, 1000
	if result := b.run(operation(plan.ActionReplace, o)); !isConflict(result.Err) || calls != 5 {
		t.Errorf("the error is %v after %d calls, want a conflict after 5", result.Err, calls)
	}
}

// An object that goes between the look and the update is not made anew.
func TestReplaceOfWhatGoes(t *testing.T) {
	var b *bench
	b = newBench(t, interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			if err := b.Delete(ctx, named(o)); client.IgnoreNotFound(err) != nil {
				return err
			}
			return c.Update(ctx, o, opts...)
		},
	})
	created := b.create(b.desire(configMap, "d1"))
	o := b.desire(configMap, "d2")
	o.SetUID(created.GetUID())
	wantStale(t, b.run(operation(plan.ActionReplace, o)), false)
	b.absent(o)
}
