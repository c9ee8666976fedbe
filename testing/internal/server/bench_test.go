package server_test

import (
	"context"
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/server"
	"github.com/espalier-dev/espalier/testing/internal/storage"
)

// startAndStop runs a server of which nobody asks anything, in a bubble.
func startAndStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := server.Start(t.Context(), server.Options{Storage: storage.New(storage.Options{}).Decorator()})
		if err != nil {
			t.Fatal(err)
		}
		s.Stop()
		time.Sleep(2 * time.Minute)
	})
}

// TestManyServersLeaveNothingBehind starts 100 servers, one after the other.
func TestManyServersLeaveNothingBehind(t *testing.T) {
	startAndStop(t)
	goroutines, memory, cpu := runtime.NumGoroutine(), heap(), processorTime(t)
	const n = 100
	for range n {
		startAndStop(t)
	}
	cpu = processorTime(t) - cpu
	kept := int64(heap()-memory) / n
	// A goroutine that is about to end is counted, maybe with 31 that ended before. The collection has waited for it.
	if got := runtime.NumGoroutine(); got > goroutines {
		t.Errorf("there are %d goroutines after %d servers, and %d before", got, n, goroutines)
	}
	t.Logf("a server takes %v of processor time and keeps %d bytes", cpu/n, kept)
	if kept > 64<<10 {
		t.Errorf("a server keeps %d bytes after its end", kept)
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

// BenchmarkRequest measures requests through client, handler and storage. There is no bubble.
func BenchmarkRequest(b *testing.B) {
	kept := storage.New(storage.Options{})
	defer kept.Close()
	s, err := server.Start(b.Context(), server.Options{
		Storage: kept.Decorator(), Definitions: []*apiextensionsv1.CustomResourceDefinition{widgets()},
	})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Stop()
	c, err := client.New(&rest.Config{
		Host: server.Host, Transport: server.RoundTripper(s.Handler()), QPS: -1,
	}, client.Options{})
	if err != nil {
		b.Fatal(err)
	}
	n := 0
	name := func() string { n++; return fmt.Sprint("a", n) }
	live, custom := configMap("live"), widget("live", 1)
	for _, obj := range []client.Object{live, custom} {
		if err := c.Create(b.Context(), obj); err != nil {
			b.Fatal(err)
		}
	}
	for _, request := range []struct {
		name string
		do   func(ctx context.Context) error
	}{
		{"get", func(ctx context.Context) error { return c.Get(ctx, client.ObjectKeyFromObject(live), live) }},
		{"create", func(ctx context.Context) error { return c.Create(ctx, configMap(name())) }},
		{"update", func(ctx context.Context) error {
			live.Data["a"] = name()
			return c.Update(ctx, live)
		}},
		{"apply", func(ctx context.Context) error {
			config := corev1apply.ConfigMap("applied", "default").WithData(map[string]string{"a": name()})
			return c.Apply(ctx, config, client.FieldOwner("one"))
		}},
		{"get custom", func(ctx context.Context) error { return c.Get(ctx, client.ObjectKeyFromObject(custom), custom) }},
		{"update custom", func(ctx context.Context) error {
			size, _, _ := unstructured.NestedInt64(custom.Object, "spec", "size")
			_ = unstructured.SetNestedField(custom.Object, size+1, "spec", "size")
			return c.Update(ctx, custom)
		}},
	} {
		b.Run(request.name, func(b *testing.B) {
			b.ReportAllocs()
			before := processorTime(b)
			for b.Loop() {
				if err := request.do(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N), "cpu-µs/op")
		})
	}
}
