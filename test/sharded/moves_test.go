package sharded_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/sharder/sharderstest"

	"k8s.io/client-go/rest"
)

const (
	// shared is how many Widgets the shards of BenchmarkMoves share. Each has three children.
	shared = 300
	// begun is how many shards there are before a shard comes or goes.
	begun = 3
)

// BenchmarkMoves has shards come and go, with the stand-in of the sharder and, if ESPALIER_SHARDER has its path, with the
// sharder itself. 300 Widgets have three children each. A shard that goes releases its Lease.
//
//   - join: a fourth shard joins.
//   - leave: a fourth shard leaves.
//   - deployment: one shard after the other joins with a new name, and an old one leaves as soon as it is ready.
//   - statefulset: one shard after the other leaves, and joins again at once with its name.
//   - slow-deployment, slow-statefulset: the same, but after a shard has joined or left, nothing happens until each object
//     has the shard that it stays with.
//
// It reports of Widgets and of children:
//
//	moved-%  how many were given to another shard, at least once
//	moves    how often each was, on average
//	ms       how long it took until each had the shard that it stays with
func BenchmarkMoves(b *testing.B) {
	for _, by := range []struct {
		name  string
		start func(testing.TB, *rest.Config)
	}{{"stand-in", sharderstest.StandIn}, {"sharder", sharderstest.Original}} {
		b.Run(by.name, func(b *testing.B) {
			if by.name == "sharder" && os.Getenv(sharderstest.Variable) == "" {
				b.Skip("it needs the path of the sharder in " + sharderstest.Variable)
			}
			r := newReplicas(b, by.start)
			for _, event := range []struct {
				name   string
				begun  int
				happen func()
			}{
				{"join", begun, func() { r.join() }},
				{"leave", begun + 1, func() { r.leave() }},
				{"deployment", begun, func() { r.replace(func() {}) }},
				{"slow-deployment", begun, func() { r.replace(r.untilAssigned) }},
				{"statefulset", begun, func() { r.restart(func() {}) }},
				{"slow-statefulset", begun, func() { r.restart(r.untilAssigned) }},
			} {
				b.Run(event.name, func(b *testing.B) {
					for b.Loop() {
						r.begin(event.begun)
						r.measure(b, event.happen)
					}
				})
			}
		})
	}
}

// newReplicas starts shards, and makes the Widgets that they share.
func newReplicas(b *testing.B, start func(testing.TB, *rest.Config)) *replicas {
	b.Helper()
	r := &replicas{scene: newScene(b, start)}
	r.of = r.replica("moves", "", 15)
	r.ring(r.of)
	r.begin(begun)
	for i := range shared {
		r.create(map[string]string{"color": fmt.Sprint(i), "parts": "2"})
	}
	r.settle("the Widgets are made")
	return r
}

// begin has that many shards, of which each has its objects.
func (r *replicas) begin(n int) {
	r.Helper()
	for len(r.running) < n {
		r.join()
	}
	for len(r.running) > n {
		r.leave()
	}
	r.untilAssigned()
}

// join starts a shard with a new name, and waits until the sharder takes it for ready.
func (r *replicas) join() {
	r.Helper()
	r.named++
	r.start(fmt.Sprintf("shard-%d", r.named))
}

// replace replaces each shard by one with a new name, and waits after each that has joined or left.
func (r *replicas) replace(wait func()) {
	for range r.running {
		r.join()
		wait()
		r.leave()
		wait()
	}
}

// restart has each shard leave and join again, and waits after each that has joined or left.
func (r *replicas) restart(wait func()) {
	for range r.running {
		name := r.leave()
		wait()
		r.start(name)
		wait()
	}
}

// measure reports what moves when something happens.
func (r *replicas) measure(b *testing.B, happen func()) {
	before := r.revision()
	began := time.Now()
	happen()
	r.untilAssigned()
	took := time.Since(began)
	m := movesOf(r.of.Ring, r.history.complete(b, r.Client), before)
	children := float64(3 * shared)
	b.ReportMetric(100*float64(m.movedWidgets)/shared, "widgets-moved-%")
	b.ReportMetric(float64(m.widgets)/shared, "moves/widget")
	b.ReportMetric(100*float64(m.movedChildren)/children, "children-moved-%")
	b.ReportMetric(float64(m.children)/children, "moves/child")
	b.ReportMetric(float64(took.Milliseconds()), "ms")
	for _, law := range broken(r.history.complete(b, r.Client)) {
		b.Error(law)
	}
}
