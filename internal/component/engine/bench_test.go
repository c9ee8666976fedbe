package engine_test

import (
	"context"
	"fmt"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/engine"
	"github.com/espalier-dev/espalier/internal/component/execute"
	"github.com/espalier-dev/espalier/internal/component/manifest"
	"github.com/espalier-dev/espalier/internal/component/observe"
	"github.com/espalier-dev/espalier/internal/component/plan"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// obedient is a cluster and an observer of it in which each object exists and is ready once it was created.
type obedient struct {
	client.Client
	observe.Observer
	records []apis.InventoryRecord
}

func (o *obedient) Create(_ context.Context, object client.Object, _ ...client.CreateOption) error {
	object.SetUID(types.UID(object.GetName()))
	return nil
}

func (o *obedient) Observe(_ context.Context, _ observe.Component, interests []observe.Interest) (*observe.Observation, error) {
	objects := make(map[plan.Key]plan.Observed, len(interests))
	for i := range interests {
		objects[interests[i].Key] = plan.Observed{Presence: plan.Absent}
	}
	return &observe.Observation{Objects: objects}, nil
}

func (o *obedient) Wrote(_ observe.Component, _ observe.Interest, object *unstructured.Unstructured) plan.Observed {
	return plan.Observed{Presence: plan.Present, UID: object.GetUID(), Ownership: plan.Ours, Fields: "fields", Status: apis.ObjectCurrent,
		Digest: object.GetAnnotations()[prefix+"/digest"]}
}

func (o *obedient) Managed(observe.Component, plan.Key) []metav1.ManagedFieldsEntry { return nil }
func (o *obedient) AwaitDeleted(context.Context, observe.Component) bool            { return false }
func (o *obedient) WatchNames(observe.Component, []plan.Key) bool                   { return true }
func (o *obedient) Unchanged(observe.Component) bool                                { return false }

func (o *obedient) Load(context.Context) ([]apis.InventoryRecord, error) { return o.records, nil }
func (o *obedient) Version() uint64                                      { return 1 }
func (o *obedient) Remove(context.Context) error                         { return nil }
func (o *obedient) Save(_ context.Context, records []apis.InventoryRecord) (bool, error) {
	o.records = records
	return true, nil
}

// BenchmarkWaves rolls out 10,000 objects in few waves and in many, without an API server.
//
//	cpu-ms/op      time of the processors
//	cpu/ten-waves  that of 1,000 waves by that of 10
func BenchmarkWaves(b *testing.B) {
	const objects = 10_000
	var few float64
	for _, waves := range []int{10, 1_000} {
		b.Run(fmt.Sprintf("waves=%d", waves), func(b *testing.B) {
			generated := make([]client.Object, objects)
			for i := range generated {
				generated[i] = configMap(strconv.Itoa(i))
				generated[i].SetAnnotations(map[string]string{prefix + "/apply-order": strconv.Itoa(i % waves)})
			}
			options := manifest.Options{Prefix: prefix, Namespaced: func(schema.GroupVersionKind) (bool, bool, error) { return true, true, nil }}
			before := processorTime()
			for b.Loop() {
				prepared, err := manifest.Prepare(generated, options, nil)
				if err != nil {
					b.Fatal(err)
				}
				world := &obedient{}
				machine := &engine.Engine{
					Client: world, Observer: world, Store: world, Memory: &engine.Memory{},
					Mark: execute.Mark{Prefix: prefix, ID: "id", Owner: "owner"}, FieldManager: prefix,
				}
				report, err := machine.Run(b.Context(), engine.Task{Objects: prepared, Now: time.Unix(1000, 0)})
				if err != nil || !report.Plan.Done || len(report.Results) != objects || len(world.records) != objects {
					b.Fatal(err, report.Plan.Done, len(report.Results))
				}
			}
			took := (processorTime() - before).Seconds() * 1000 / float64(b.N)
			b.ReportMetric(took, "cpu-ms/op")
			if waves == 10 {
				few = took
			} else if few > 0 {
				b.ReportMetric(took/few, "cpu/ten-waves")
				b.ReportMetric(1.3, "cpu/ten-waves-target")
			}
		})
	}
}

func configMap(name string) client.Object {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": name, "namespace": "default"},
		"data":     map[string]any{"a": name},
	}}
}

func processorTime() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage) // never fails
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
