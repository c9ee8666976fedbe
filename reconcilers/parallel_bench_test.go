package reconcilers_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
)

// Ten nodes that wait five milliseconds each take as long as one. The time is virtual, so the figures are exact.
func TestParallelTakesAsLongAsOneNode(t *testing.T) {
	slow := func() []widgetNode {
		nodes := make([]widgetNode, 10)
		for i := range nodes {
			nodes[i] = syncing(func(_ context.Context, w *resources.Widget) {
				time.Sleep(5 * time.Millisecond)
				w.Status.AddField(fmt.Sprint(i), "done")
			})
		}
		return nodes
	}
	for name, test := range map[string]struct {
		node func() widgetNode
		want time.Duration
	}{
		"Sequence": {func() widgetNode { return widgetSequence(slow()) }, 50 * time.Millisecond},
		"Parallel": {func() widgetNode { return parallel(slow()...) }, 5 * time.Millisecond},
		"Parallel, four at a time": {
			func() widgetNode { return &widgetParallel{Nodes: slow(), Limit: 4} }, 15 * time.Millisecond,
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			began, w := time.Now(), widget.Object()
			if _, err := test.node().Reconcile(t.Context(), w); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took != test.want || len(w.Status.Fields) != 10 {
				t.Errorf("%s takes %s and leaves %d fields, want %s and 10", name, took, len(w.Status.Fields), test.want)
			}
		})
	}
}

// BenchmarkParallel is what ten nodes cost that do nothing, or set a field each, compared with a Sequence of them.
func BenchmarkParallel(b *testing.B) {
	ctx := treeContext(b)
	for _, what := range []string{"idle", "a field each"} {
		nodes := make([]widgetNode, 10)
		for i := range nodes {
			key := fmt.Sprint("field ", i)
			if nodes[i] = widgetNode(idle{}); what != "idle" {
				nodes[i] = syncing(func(_ context.Context, w *resources.Widget) { w.Status.AddField(key, "done") })
			}
		}
		for name, node := range map[string]widgetNode{
			"Sequence": widgetSequence(nodes), "Parallel": parallel(nodes...), "InOrder": &widgetParallel{Nodes: nodes, Limit: 1},
		} {
			b.Run(name+"/"+what, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := node.Reconcile(ctx, widget.Object()); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
