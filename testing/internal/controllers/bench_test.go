package controllers_test

import (
	"fmt"
	"io"
	"log"
	"runtime"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/controllers"
	"github.com/espalier-dev/espalier/testing/internal/server"
	"github.com/espalier-dev/espalier/testing/internal/storage"
)

// startServer starts a server without a bubble, which a benchmark cannot have.
func startServer(b *testing.B) (*server.Server, *storage.Storage) {
	b.Helper()
	log.SetOutput(io.Discard)
	kept := storage.New(storage.Options{})
	b.Cleanup(kept.Close)
	s, err := server.Start(b.Context(), server.Options{Storage: kept.Decorator()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Stop)
	return s, kept
}

// BenchmarkStart starts and stops the controllers at a server.
func BenchmarkStart(b *testing.B) {
	s, _ := startServer(b)
	b.ReportAllocs()
	for b.Loop() {
		running, err := controllers.Start(b.Context(), config(server.RoundTripper(s.Handler())), controllers.Options{})
		if err != nil {
			b.Fatal(err)
		}
		running.Stop()
	}
}

// BenchmarkScale creates Deployments of one replica with a Service and a ConfigMap each, which makes that many
// ReplicaSets, Pods and EndpointSlices, too, and deletes the Deployments. The figures are for one object, those of the
// server and the client included: the CPU time until all is there and until it is gone, and the memory that is kept
// while it is there.
func BenchmarkScale(b *testing.B) {
	for _, objects := range []int{600, 2400, 9600} {
		b.Run(fmt.Sprint(objects), func(b *testing.B) {
			for b.Loop() {
				scale(b, objects)
			}
		})
	}
}

func scale(b *testing.B, objects int) {
	s, kept := startServer(b)
	transport := server.RoundTripper(s.Handler())
	running, err := controllers.Start(b.Context(), config(transport), controllers.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer running.Stop()
	user, err := client.New(config(transport), client.Options{})
	if err != nil {
		b.Fatal(err)
	}
	create := func(obj client.Object) {
		if err := user.Create(b.Context(), obj); err != nil {
			b.Fatal(err)
		}
	}
	before, begin := memory(), processorTime(b)
	var owners []client.Object
	for i := range objects / 6 {
		name := fmt.Sprintf("a-%d", i)
		d := deployment(name, 1)
		create(d)
		create(configMap(name, d))
		create(&corev1.Service{ObjectMeta: configMap(name, d).ObjectMeta, Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": name}, Ports: []corev1.ServicePort{{Port: 80}},
		}})
		owners = append(owners, d)
	}
	settle(kept)
	there := processorTime(b)
	b.ReportMetric(float64((there-begin).Microseconds())/float64(objects), "cpu-µs/create")
	b.ReportMetric(float64(memory()-before)/1024/float64(objects), "KiB/object")
	there = processorTime(b)
	for _, owner := range owners {
		if err := user.Delete(b.Context(), owner); err != nil {
			b.Fatal(err)
		}
	}
	settle(kept)
	b.ReportMetric(float64((processorTime(b)-there).Microseconds())/float64(objects), "cpu-µs/delete")
	left := &corev1.ConfigMapList{}
	if err := user.List(b.Context(), left, client.InNamespace("default")); err != nil || len(left.Items) > 1 {
		b.Fatalf("%d ConfigMaps are left, %v", len(left.Items), err)
	}
}

// settle waits until nothing is written for a second.
func settle(kept *storage.Storage) {
	for last := int64(-1); last != kept.Revision(); time.Sleep(time.Second) {
		last = kept.Revision()
	}
}

// memory returns the bytes that are in use.
func memory() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapInuse)
}

// processorTime is that of the process.
func processorTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
