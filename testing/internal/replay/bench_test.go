package replay_test

import (
	"context"
	"fmt"
	"testing"

	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/replay"
)

// BenchmarkExplore explores code that writes twelve ConfigMaps and its status, as a row of a table is explored.
func BenchmarkExplore(b *testing.B) {
	ways := map[string]func(ctx context.Context, p *process, name string) error{
		"create": func(ctx context.Context, p *process, name string) error { return p.ensure(ctx, name) },
		"apply": func(ctx context.Context, p *process, name string) error {
			config := corev1apply.ConfigMap(name, "ns").WithData(map[string]string{"color": "blue"})
			return p.Apply(ctx, config, client.FieldOwner("test"), client.ForceOwnership)
		},
	}
	for _, name := range []string{"create", "apply"} {
		b.Run(name, func(b *testing.B) {
			program := programOf(given(b, widget()), func(ctx context.Context, p *process) error {
				w, err := p.widget(ctx)
				if err != nil {
					return err
				}
				for i := range 12 {
					if err := ways[name](ctx, p, fmt.Sprint("child-", i)); err != nil {
						return err
					}
				}
				return p.note(ctx, w, "made", "yes")
			})
			benchmark(b, program)
		})
	}
}

func benchmark(b *testing.B, program replay.Program) {
	b.Helper()
	replays := 0
	for b.Loop() {
		report := explore(b, program, replay.Options{})
		if len(report.Findings) > 0 {
			b.Fatalf("there are findings, want none:\n%s", told(report.Findings[0]))
		}
		replays = report.Replays
	}
	b.ReportMetric(float64(replays), "replays/op")
}
