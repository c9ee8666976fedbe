package tracing_test

import (
	"context"
	"testing"

	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/tracing"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// nodes are a root and a node below it.
func nodes() (root, child *reconcilers.Node) {
	root = &reconcilers.Node{Name: "root", Label: "root"}
	root.Root = root
	return root, &reconcilers.Node{Root: root, Name: "child", Label: "root/child"}
}

// Without a span that is recorded, a node costs no allocation, and the provider may be missing.
func TestNodesCostNothingWithoutASampledRequest(t *testing.T) {
	for name, provider := range map[string]trace.TracerProvider{"none": nil, "no-op": noop.NewTracerProvider()} {
		t.Run(name, func(t *testing.T) {
			o := tracing.New(provider)
			root, child := nodes()
			ctx := o.Start(t.Context(), root)
			n := testing.AllocsPerRun(100, func() {
				within := o.Start(ctx, child)
				o.Note(within, child, saved)
				o.End(within, child, reconcilers.Outcome{})
			})
			if n > 0 {
				t.Errorf("a node makes %v allocations, want none", n)
			}
			o.End(ctx, root, reconcilers.Outcome{State: reconcilers.StateError})
		})
	}
}

// saved is a fact of a node.
var saved any = reconcilers.Saved{Objects: 1}

func BenchmarkNoProvider(b *testing.B) {
	o := tracing.New(noop.NewTracerProvider())
	root, child := nodes()
	ctx := o.Start(context.Background(), root)
	b.Run("request", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			o.End(o.Start(context.Background(), root), root, reconcilers.Outcome{})
		}
	})
	b.Run("node", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			within := o.Start(ctx, child)
			o.Note(within, child, saved)
			o.End(within, child, reconcilers.Outcome{})
		}
	})
}
