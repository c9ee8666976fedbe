package observe_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/espalier-dev/espalier/internal/component/observe"
	"github.com/espalier-dev/espalier/internal/component/plan"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const many = 10_000

// dependents returns many interests, and what a watch shows of them.
func dependents() ([]observe.Interest, []any) {
	interests, objects := make([]observe.Interest, many), make([]any, many)
	for i := range many {
		name := fmt.Sprintf("dependent-%05d", i)
		interests[i] = interest(configMaps, name, recorded(types.UID(fmt.Sprintf("0b7e6f0c-5d5c-4f0a-8f6f-%012d", i))))
		objects[i] = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID(fmt.Sprintf("0b7e6f0c-5d5c-4f0a-8f6f-%012d", i)),
			ResourceVersion: fmt.Sprint(100_000 + i), Generation: 1,
			Labels:      map[string]string{prefix + "/owner-id": ourID, "app": "x"},
			Annotations: map[string]string{prefix + "/owner-id": ourOwner, prefix + "/digest": fmt.Sprintf("%052d", i)},
			ManagedFields: []metav1.ManagedFieldsEntry{
				managed(manager, metav1.ManagedFieldsOperationApply, "", `{"f:data":{"f:a":{},"f:b":{}},"f:metadata":{"f:annotations":{"f:x/digest":{},"f:x/owner-id":{}},"f:labels":{"f:x/owner-id":{}}}}`),
			},
		}}
	}
	return interests, objects
}

func BenchmarkObserveIdle(b *testing.B) {
	o := newOffline(b)
	interests, objects := dependents()
	o.observe(nil, interests...)
	o.live(configMaps, "200000", objects...)
	o.observe(nil, interests...)
	b.ReportAllocs()
	for b.Loop() {
		got, err := o.Observe(b.Context(), o.component, interests)
		if err != nil || len(got.Objects) != many {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/many, "ns/object")
}

func BenchmarkEvent(b *testing.B) {
	o := newOffline(b)
	interests, objects := dependents()
	o.observe(nil, interests...)
	o.live(configMaps, "200000", objects...)
	o.observe(nil, interests...)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		object := objects[i%many].(*metav1.PartialObjectMetadata)
		object.ResourceVersion = fmt.Sprint(300_000 + i)
		o.Shown(configMaps, object)
		i++
	}
}

// kept returns how much memory is in use.
func kept() uint64 {
	var stats runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

func TestLittleIsKeptOfAnObject(t *testing.T) {
	o := newOffline(t)
	before := kept()
	func() {
		interests, objects := dependents()
		o.observe(nil, interests...)
		o.live(configMaps, "200000", objects...)
		got := o.observe(nil, interests...)
		if len(got.Objects) != many || got.Objects[interests[0].Key].Presence != plan.Present {
			t.Errorf("there are %d objects, the first one %+v, want %d, and it present", len(got.Objects),
				got.Objects[interests[0].Key], many)
		}
	}()
	after := kept()
	each := (after - before) / many
	t.Logf("%d bytes for each object", each)
	// Half of it is what the watch shows.
	if each > 768 {
		t.Errorf("%d bytes are kept for each object, want at most 768", each)
	}
	runtime.KeepAlive(o)
}

func TestIdleAllocatesLittle(t *testing.T) {
	o := newOffline(t)
	interests, objects := dependents()
	o.observe(nil, interests...)
	o.live(configMaps, "200000", objects...)
	o.observe(nil, interests...)
	allocs := testing.AllocsPerRun(3, func() {
		if _, err := o.Observe(t.Context(), o.component, interests); err != nil {
			t.Fatal(err)
		}
	})
	// The result is a map, which keeps values of this size one by one.
	if allocs > many+many/50 {
		t.Errorf("there are %v allocations to observe %d objects of which none has changed, want at most %d", allocs,
			many, many+many/50)
	}
}
