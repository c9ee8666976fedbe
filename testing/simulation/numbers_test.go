package simulation

import (
	"context"
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// note returns a custom resource.
func note(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Note",
		"metadata": map[string]any{"namespace": "default", "name": name},
		"spec":     map[string]any{"text": "a"},
	}}
}

// small returns options with a definition, and an operator that says in the status that it was there.
func small(tb testing.TB) Options {
	tb.Helper()
	return Options{
		Definitions: ReadDefinitions(tb, "testdata/notes.yaml"),
		Operator: func(_ context.Context, mgr ctrl.Manager) error {
			return ctrl.NewControllerManagedBy(mgr).For(note("")).Complete(reconcile.Func(
				func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
					seen := note(r.Name)
					if err := mgr.GetClient().Get(ctx, r.NamespacedName, seen); err != nil {
						return reconcile.Result{}, err
					}
					seen.Object["status"] = map[string]any{"seen": true}
					return reconcile.Result{}, mgr.GetClient().Status().Update(ctx, seen)
				}))
		},
	}
}

// smallStory has one resource reconciled.
func smallStory(w *World) {
	w.Create(note("a"))
	w.Pass(time.Minute)
	seen := note("a")
	w.Get(seen)
	if is, _, _ := unstructured.NestedBool(seen.Object, "status", "seen"); !is {
		w.Errorf("nobody was there: %v", seen.Object)
	}
}

// used returns how much CPU time the process has used.
func used(tb testing.TB) time.Duration {
	tb.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// heap returns how many bytes are alive.
func heap() int64 {
	// What is in a sync.Pool survives one collection.
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// TestCost runs worlds in a row. It does not run beside other tests: it measures the process.
func TestCost(t *testing.T) {
	if testing.Short() {
		t.Skip("it measures time")
	}
	options := small(t)
	for range 5 {
		Run(t, options, smallStory) // what is made once
	}
	const worlds = 100
	heapBefore, goroutines, before := heap(), runtime.NumGoroutine(), used(t)
	for range worlds {
		Run(t, options, smallStory)
	}
	cost := (used(t) - before) / worlds
	left, more := heap()-heapBefore, runtime.NumGoroutine()-goroutines
	var alive int64
	Run(t, options, func(w *World) {
		smallStory(w)
		alive = heap() - heapBefore
	})
	t.Logf("a world costs %v of CPU time and %.1f MB; %d worlds leave %d KB and %d goroutines",
		cost.Round(100*time.Microsecond), float64(alive)/1e6, worlds, left/1000, more)
	if alive > 5e6 && !raceEnabled {
		t.Errorf("a world has %d bytes", alive)
	}
	if left > 20000*worlds || more > 0 {
		t.Errorf("%d worlds leave %d bytes and %d goroutines", worlds, left, more)
	}
}

// TestParallel runs worlds at the same time.
func TestParallel(t *testing.T) {
	t.Parallel()
	for i := range 8 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			Run(t, small(t), smallStory)
		})
	}
}

// TestCostOfDays lets days pass in which nothing happens. It measures the process, as TestCost.
func TestCostOfDays(t *testing.T) {
	if testing.Short() {
		t.Skip("it measures time")
	}
	const days = 10
	for name, changing := range map[string]bool{"fixed": false, "changing": true} {
		options := small(t)
		options.ChangingDefinitions = changing
		var cost time.Duration
		Run(t, options, func(w *World) {
			smallStory(w)
			before := used(t)
			w.Pass(days * 24 * time.Hour)
			cost = (used(t) - before) / days
		})
		t.Logf("a day with %s definitions costs %v of CPU time", name, cost.Round(time.Millisecond))
	}
}
