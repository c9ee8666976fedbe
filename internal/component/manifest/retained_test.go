package manifest_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/component/manifest"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// configMaps returns objects made anew, as a generator does in each request.
func configMaps(n int) []client.Object {
	objects := make([]client.Object, n)
	for i := range objects {
		objects[i] = object(strings.Clone("v1 ConfigMap"), fmt.Sprintf("config-%05d", i), m{
			"data": m{"number": fmt.Sprint(i), "text": fmt.Sprintf("some text of number %d", i)},
		})
	}
	return objects
}

// BenchmarkRetained reports how much memory an object takes between two requests.
func BenchmarkRetained(b *testing.B) {
	const n = 10_000
	for b.Loop() {
		cache, before := &manifest.Cache{}, heap()
		for range 2 {
			if _, err := manifest.Prepare(configMaps(n), options(), cache); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(heap()-before)/n, "retained-B/object")
		runtime.KeepAlive(cache)
	}
}

func heap() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
