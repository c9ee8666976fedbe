package plugins_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/plugins"
	"github.com/espalier-dev/espalier/reconcilers"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
)

// asksForFive is an owner with five dependents.
var asksForFive = plugins.Owner{
	APIVersion: "test.espalier.dev/v1", Kind: "Widget", Namespace: "default", Name: "gadget",
	Spec: []byte(`{"fields":{"do":"five","value":"x"}}`),
}

// BenchmarkCall asks a plugin for the five dependents of an owner, with nothing remembered: one in another process, by
// gRPC over a Unix socket, and one in the process of the operator. The floor is the smallest call of the same
// connection. answer-B is the live memory of one answer that is remembered.
func BenchmarkCall(b *testing.B) {
	_, program := withPlugin(b, "program")
	for name, host := range map[string]*plugins.Host{
		"program": program, "in-process": {InProcess: []plugins.Plugin{testPlugin("local", &calls{})}},
	} {
		b.Run(name, func(b *testing.B) {
			asker := askerOf(b, host, asksForFive)
			for b.Loop() {
				if count, err := asker.Ask(b.Context()); err != nil || count != 5 {
					b.Fatalf("there are %d dependents (%v), want 5", count, err)
				}
			}
			if name != "program" {
				return
			}
			took, began := b.Elapsed(), time.Now()
			for range b.N {
				if err := asker.Floor(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(took.Seconds()/time.Since(began).Seconds(), "call/floor")
			b.ReportMetric(answerBytes(b, asker), "answer-B")
			b.ReportMetric(16<<10, "answer-B-target")
		})
	}
}

// answerBytes returns how much memory an answer takes.
func answerBytes(b *testing.B, asker *plugins.Asker) float64 {
	answers := make([]any, 500)
	before := liveHeap()
	for i := range answers {
		answer, err := asker.Remember(b.Context(), corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		if err != nil {
			b.Fatal(err)
		}
		answers[i] = answer
	}
	after := liveHeap()
	goruntime.KeepAlive(answers)
	return float64(after-before) / float64(len(answers))
}

// BenchmarkProcess starts a small plugin, asks it a hundred times, and ends it.
//
//	start-ms     from the start of the host until the plugin serves
//	rss-MiB      memory of the idle process, of which private-MiB is shared with nobody
//	program-MiB  the program, without debugging information, of which the host keeps a copy in memory
func BenchmarkProcess(b *testing.B) {
	f := newFolder(b)
	program := filepath.Join(f.path, "databases")
	command := exec.Command("go", "build", "-ldflags=-s -w", "-o", program, "./testdata/small")
	if output, err := command.CombinedOutput(); err != nil {
		b.Fatalf("unable to build the plugin: %s\n%s", err, output)
	}
	text, err := os.ReadFile(program)
	if err != nil {
		b.Fatal(err)
	}
	f.write(map[string]string{"databases": fmt.Sprintf("%x", sha256.Sum256(text))})
	var start time.Duration
	var all, private int
	for b.Loop() {
		known := children(b)
		began := time.Now()
		asker := askerOf(b, &plugins.Host{Folder: f.path, List: f.list}, asksForFive)
		start += time.Since(began)
		for range 100 {
			if _, err := asker.Ask(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		for pid := range children(b) {
			if !known[pid] {
				all += memoryOf(b, pid, "VmRSS")
				private += memoryOf(b, pid, "RssAnon")
			}
		}
	}
	n := float64(b.N)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(start.Milliseconds())/n, "start-ms")
	b.ReportMetric(float64(all)/n/(1<<10), "rss-MiB")
	b.ReportMetric(float64(private)/n/(1<<10), "private-MiB")
	b.ReportMetric(float64(len(text))/(1<<20), "program-MiB")
}

// children returns the processes that this one has started.
func children(b *testing.B) map[string]bool {
	b.Helper()
	files, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil || len(files) == 0 {
		b.Skipf("the system does not say which processes were started (%v)", err)
	}
	found := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // the thread is gone
		}
		if err != nil {
			b.Fatal(err)
		}
		for pid := range strings.FieldsSeq(string(text)) {
			found[pid] = true
		}
	}
	return found
}

// memoryOf returns how much memory a process has, in KiB.
func memoryOf(b *testing.B, pid, field string) int {
	b.Helper()
	text, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n"+field+":")
	value, err := strconv.Atoi(strings.Fields(rest + " ?")[0])
	if err != nil {
		b.Fatalf("the memory of the process is not known: %s", err)
	}
	return value
}

// askerOf starts a host, and returns who asks its plugin.
func askerOf(b *testing.B, host *plugins.Host, owner plugins.Owner) *plugins.Asker {
	b.Helper()
	ctx, cancel := context.WithCancel(logr.NewContext(context.Background(), logr.Discard()))
	done := make(chan error)
	go func() { done <- host.Start(ctx) }()
	b.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			b.Errorf("the host ended with %v, want no error", err)
		}
	})
	var asker *plugins.Asker
	controlplanetest.Eventually(b, "there is no plugin", func(context.Context) (err error) {
		asker, err = plugins.NewAsker(host, "database", "postgres", owner)
		return err
	})
	return asker
}

// BenchmarkOwners takes 1,000 owners with five ConfigMaps each through a roll-out and a resync on a real API server:
// with a plugin in another process, and with the same ConfigMaps made by a Go function for nodes of Each and Owns. The
// ratios are those of the plugin to the function, in the same run. A metric that ends in "-target" is the most that is
// allowed for the metric without that.
//
//	rollout/function           time until all owners are ready
//	requests/function          requests of the operator until then, without watches
//	rollout-calls              calls of the plugin until then
//	resync/function            time to reconcile each owner once when nothing has changed
//	resync-us/owner            the same for one owner with a plugin
//	resync-requests, -calls    requests of the operator and calls of the plugin meanwhile
//	live-B/owner               live memory of the operator for an owner, caches included
//	function-live-B/owner      the same without a plugin
func BenchmarkOwners(b *testing.B) {
	var function, plugin ownersLife
	for b.Loop() {
		function.rollOut(b, nil, func() int { return 0 }, partsOfFunction())
		c, host := newCounted(b)
		plugin.rollOut(b, host, c.calls, capability(host))
		// In turns, so that what else the machine does concerns both.
		for range resyncs {
			function.resyncAll(b)
			plugin.resyncAll(b)
		}
		function.r.stop()
		plugin.r.stop()
	}
	n := float64(b.N)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(plugin.rollout.Seconds()/n, "rollout-s")
	b.ReportMetric(plugin.rollout.Seconds()/function.rollout.Seconds(), "rollout/function")
	b.ReportMetric(float64(plugin.rolloutRequests)/n, "rollout-requests")
	b.ReportMetric(float64(plugin.rolloutRequests)/float64(function.rolloutRequests), "requests/function")
	b.ReportMetric(float64(plugin.rolloutCalls)/n, "rollout-calls")
	b.ReportMetric(float64(plugin.resync.Microseconds())/n/manyOwners/resyncs, "resync-us/owner")
	b.ReportMetric(plugin.resync.Seconds()/function.resync.Seconds(), "resync/function")
	b.ReportMetric(float64(plugin.resyncRequests)/n, "resync-requests")
	b.ReportMetric(float64(plugin.resyncCalls)/n, "resync-calls")
	b.ReportMetric(float64(plugin.live)/n/manyOwners, "live-B/owner")
	b.ReportMetric(float64(function.live)/n/manyOwners, "function-live-B/owner")

	b.ReportMetric(1.15, "rollout/function-target")
	b.ReportMetric(1.01, "requests/function-target")
	b.ReportMetric(manyOwners-1, "rollout-calls-target")
	b.ReportMetric(2, "resync/function-target")
	b.ReportMetric(0, "resync-requests-target")
	b.ReportMetric(0, "resync-calls-target")
}

const (
	// manyOwners is how many owners there are.
	manyOwners = 1_000
	// resyncs is how often each is reconciled when nothing has changed.
	resyncs = 5
)

// ownersLife is what the lives of many owners took.
type ownersLife struct {
	rollout, resync                 time.Duration
	rolloutRequests, resyncRequests int
	rolloutCalls, resyncCalls       int
	live                            int64
	// r is the operator that runs, and calls counts those of its plugin.
	r     *running
	calls func() int
}

// rollOut has many owners rolled out.
func (l *ownersLife) rollOut(
	b *testing.B, host *plugins.Host, calls func() int, tree reconcilers.SubReconciler[*resources.Widget],
) {
	b.Helper()
	before := liveHeap()
	r := startTree(b, plane.Namespace(b), host, tree)
	l.r, l.calls = r, calls
	// That the API server serves a kind for the first time, and that a plugin starts, is no part of it.
	r.createFive(0, 1)
	r.untilFive(1)
	controlplanetest.Rest(r.t, r.requests)
	r.requests.Reset()
	asked := calls()

	began := time.Now()
	r.createFive(1, manyOwners)
	r.untilFive(manyOwners)
	l.rollout += time.Since(began)
	controlplanetest.Rest(r.t, r.requests)
	l.rolloutRequests += r.requests.Total()
	l.rolloutCalls += calls() - asked
	l.live += liveHeap() - before
}

// resyncAll reconciles each owner once.
func (l *ownersLife) resyncAll(b *testing.B) {
	b.Helper()
	asked := l.calls()
	l.r.requests.Reset()
	began := time.Now()
	if err := l.r.resync(b.Context(), manyOwners); err != nil {
		b.Fatal(err)
	}
	l.resync += time.Since(began)
	l.resyncRequests += l.r.requests.Total()
	l.resyncCalls += l.calls() - asked
}

func liveHeap() int64 {
	goruntime.GC()
	goruntime.GC()
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}

// partsOfFunction returns the nodes that keep the five ConfigMaps of an owner without a plugin.
func partsOfFunction() reconcilers.SubReconciler[*resources.Widget] {
	items := func(_ context.Context, w *resources.Widget) ([]*corev1.ConfigMap, error) {
		parts := fiveParts(w.Name, w.Spec.Fields["value"])
		for _, part := range parts {
			part.Namespace = w.Namespace
		}
		return parts, nil
	}
	key := func(part *corev1.ConfigMap) string { return part.Name }
	desired := func(ctx context.Context, _ *resources.Widget) (*corev1.ConfigMap, error) {
		return espalier.ItemOf[*corev1.ConfigMap](ctx), nil
	}
	return espalier.Each("Parts", items, key, espalier.Owns("Part", desired).Labeled().Reports(condition))
}
