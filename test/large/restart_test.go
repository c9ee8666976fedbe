package large_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"

	clientfeatures "k8s.io/client-go/features"
	featuretesting "k8s.io/client-go/features/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// settings are what changes the memory and the requests of a start.
var settings = map[string]setting{
	"default":    {},
	"10-workers": {workers: 10},
	"lists":      {lists: true},
	"pages":      {lists: true, pages: true},
	"resources-without-managed-fields": {cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
		&resources.Widget{}: {Transform: cache.TransformStripManagedFields()},
	}}},
	"without-managed-fields": {cache: cache.Options{DefaultTransform: cache.TransformStripManagedFields()}, writes: 9},
}

// An operator that is started again writes nothing if nothing has changed, and asks for nothing beyond its caches.
func TestRestartWritesNothing(t *testing.T) {
	const n = 1200 // more than two pages
	for name, s := range settings {
		t.Run(name, func(t *testing.T) {
			s.apply(t)
			o := restart(t, n, s)
			o.await(t)
			counts, others := o.server.taken()
			types := len(o.server.templates)
			watches, lists := types, 0
			if s.lists {
				lists = types
			}
			if s.pages {
				lists = 3 * types
			}
			if counts["watch"] != watches || counts["list"] != lists {
				t.Errorf("the operator sends %d watches and %d lists, want %d and %d",
					counts["watch"], counts["list"], watches, lists)
			}
			if got, want := counts["other"], s.writes*n; got != want {
				t.Errorf("the operator sends %d requests that are no reads, want %d, such as %q", got, want, others)
			}
		})
	}
}

// BenchmarkRestart starts an operator that has resources with five children each, all as desired.
//
//	live-B/resource  live memory of the process afterwards, by resource with its children
//	live-B/object    the same by object
//	peak-B/resource  the most that the heap took meanwhile, with garbage
//	cached-ms        time from the start until the caches had everything
//	idle-ms          time from the start until each resource was reconciled
//	cpu-us/resource  processor time until then, with that of the server, which is in the process
//	reads, watches, writes
func BenchmarkRestart(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		for name, s := range settings {
			b.Run(fmt.Sprintf("resources=%d/%s", n, name), func(b *testing.B) {
				s.apply(b)
				for b.Loop() {
					measure(b, n, s)
				}
			})
		}
	}
}

// BenchmarkReplicas starts one of several replicas that share 100,000 resources with five children each. The others are
// elsewhere, with processors of their own. It takes up to 6 GiB, so it runs with ESPALIER_LARGE=1 alone.
func BenchmarkReplicas(b *testing.B) {
	if os.Getenv("ESPALIER_LARGE") != "1" {
		b.Skip("it needs ESPALIER_LARGE=1: it takes 6 GiB")
	}
	for _, replicas := range []int{4, 2, 1} {
		b.Run(fmt.Sprintf("replicas=%d", replicas), func(b *testing.B) {
			for b.Loop() {
				measure(b, 100_000/replicas, setting{workers: 10})
			}
		})
	}
}

// measure starts an operator, and reports what that takes.
func measure(b *testing.B, n int, s setting) {
	templates(b)
	before := liveHeap()
	o := restart(b, n, s)
	o.await(b)
	live := liveHeap() - before
	counts, others := o.server.taken()
	o.stop()
	if s.writes == 0 && counts["other"] > 0 {
		b.Errorf("the operator sends %d requests that are no reads, such as %q, want none", counts["other"], others)
	}
	each := float64(n)
	b.ReportMetric(float64(live)/each, "live-B/resource")
	b.ReportMetric(float64(live)/each/float64(len(o.server.templates)), "live-B/object")
	b.ReportMetric(float64(o.peak-before)/each, "peak-B/resource")
	b.ReportMetric(float64(o.cached.Milliseconds()), "cached-ms")
	b.ReportMetric(float64(o.idle.Milliseconds()), "idle-ms")
	b.ReportMetric(float64(o.used.Microseconds())/each, "cpu-us/resource")
	b.ReportMetric(float64(counts["list"]), "reads")
	b.ReportMetric(float64(counts["watch"]), "watches")
	b.ReportMetric(float64(counts["other"]), "writes")
}

// apply switches what the process has in common.
func (s *setting) apply(t testing.TB) {
	featuretesting.SetFeatureDuringTest(t, clientfeatures.WatchListClient, !s.lists)
}
