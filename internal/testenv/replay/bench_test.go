package replay_test

import (
	"context"
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/testenv/replay"
	"github.com/espalier-dev/espalier/internal/testenv/store"
)

// BenchmarkExplore explores code that creates twelve ConfigMaps and writes its status, as a row of a table is explored.
func BenchmarkExplore(b *testing.B) {
	s := given(b, widget())
	program := programOf(s, func(ctx context.Context, p *process) error {
		w, err := p.widget(ctx)
		if err != nil {
			return err
		}
		for i := range 12 {
			if err := p.ensure(ctx, fmt.Sprint("child-", i)); err != nil {
				return err
			}
		}
		return p.note(ctx, w, "made", "yes")
	})
	replays := 0
	for b.Loop() {
		report := explore(b, program, replay.Options{})
		if len(report.Findings) > 0 {
			b.Fatal(told(report.Findings[0]))
		}
		replays = report.Replays
	}
	b.ReportMetric(float64(replays), "replays/op")
}

// BenchmarkRequest makes the same requests without replays, to compare.
func BenchmarkRequest(b *testing.B) {
	s := given(b, widget())
	for b.Loop() {
		c := s.Fork().Client(store.ClientOptions{})
		for i := range 12 {
			_ = c.Get(context.Background(), client.ObjectKey{Namespace: "ns", Name: fmt.Sprint("child-", i)}, configMap(""))
			if err := c.Create(context.Background(), configMap(fmt.Sprint("child-", i))); err != nil {
				b.Fatal(err)
			}
		}
	}
}
