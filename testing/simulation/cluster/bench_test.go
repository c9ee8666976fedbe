package cluster_test

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/simulation/cluster"
)

// BenchmarkStart measures the time from the start to the first answer, and what a cluster holds in memory.
func BenchmarkStart(b *testing.B) {
	var held uint64
	processor := processorTime(b)
	for b.Loop() {
		before := heap()
		env := &cluster.Environment{CRDDirectoryPaths: []string{shops}}
		config, err := env.Start()
		if err != nil {
			b.Fatal(err)
		}
		if err := newClient(b, config).List(b.Context(), &corev1.NamespaceList{}); err != nil {
			b.Fatal(err)
		}
		held += max(heap(), before) - before
		if err := env.Stop(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(held)/float64(b.N)/(1<<20), "MiB/cluster")
	b.ReportMetric(float64((processorTime(b)-processor).Milliseconds())/float64(b.N), "cpu-ms/op")
}

// BenchmarkRequests measures requests of one client over TLS.
func BenchmarkRequests(b *testing.B) {
	c := newClient(b, start(b, &cluster.Environment{}))
	live := configMap("live")
	if err := c.Create(b.Context(), live); err != nil {
		b.Fatal(err)
	}
	n := 0
	for _, request := range []struct {
		name string
		do   func() error
	}{
		{"get", func() error { return c.Get(b.Context(), client.ObjectKeyFromObject(live), live) }},
		{"list 1000", func() error {
			return c.List(b.Context(), &corev1.ConfigMapList{}, client.InNamespace("kube-public"))
		}},
		{"create", func() error { n++; return c.Create(b.Context(), configMap(fmt.Sprint("a", n))) }},
	} {
		b.Run(request.name, func(b *testing.B) {
			for i := range 1000 {
				obj := configMap(fmt.Sprint("listed", i))
				obj.Namespace = "kube-public"
				if err := c.Create(b.Context(), obj); client.IgnoreAlreadyExists(err) != nil {
					b.Fatal(err)
				}
			}
			processor := processorTime(b)
			for b.Loop() {
				if err := request.do(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
			b.ReportMetric(float64((processorTime(b)-processor).Microseconds())/float64(b.N), "cpu-µs/op")
		})
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

func processorTime(t testing.TB) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
