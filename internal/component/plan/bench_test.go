package plan_test

import (
	"fmt"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/plan"

	"k8s.io/apimachinery/pkg/types"
)

// unchanged returns n objects in three waves, all as desired.
func unchanged(n int) plan.Input {
	in := plan.Input{Observed: make(map[plan.Key]plan.Observed, n), Now: start}
	for i := range n {
		d := with(configMap(fmt.Sprintf("object-%d", i)), order(int16(i*3/n), 0), digest(fmt.Sprintf("digest-%d", i)))
		in.Desired = append(in.Desired, d)
		in.Observed[d.Key] = plan.Observed{Presence: plan.Present, UID: types.UID(fmt.Sprintf("uid-%d", i)), Generation: 1, Ownership: plan.Ours,
			Digest: d.Digest, Fields: "fields", Status: apis.ObjectCurrent}
		in.Inventory = append(in.Inventory, apis.InventoryRecord{Kind: d.Kind, Version: d.Version, Namespace: d.Namespace, Name: d.Name,
			UID: types.UID(fmt.Sprintf("uid-%d", i)), ApplyOrder: d.ApplyOrder, Digest: d.Digest, Fields: "fields", Generation: 1, Phase: apis.PhaseReady})
	}
	return in
}

// BenchmarkMakeUnchanged: the cost of an object does not grow with their number.
func BenchmarkMakeUnchanged(b *testing.B) {
	for _, n := range []int{100, 1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			in := unchanged(n)
			if p := plan.Make(in); !p.Done {
				b.Fatal(p)
			}
			b.ReportAllocs()
			for b.Loop() {
				plan.Make(in)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/object")
		})
	}
}

// BenchmarkMakeChanged: half of the objects are to be created, and as many are to be deleted.
func BenchmarkMakeChanged(b *testing.B) {
	for _, n := range []int{100, 1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			in := unchanged(n)
			for i := range in.Desired[n/2:] {
				in.Desired[n/2+i].Key.Name += "-new"
				in.Observed[in.Desired[n/2+i].Key] = plan.Observed{Presence: plan.Absent}
			}
			b.ReportAllocs()
			for b.Loop() {
				plan.Make(in)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/object")
		})
	}
}
