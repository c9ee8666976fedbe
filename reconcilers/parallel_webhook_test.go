package reconcilers_test

import (
	"context"
	"testing"

	"github.com/espalier-dev/espalier/reconcilers"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
)

// Branches of a webhook run in order, since they share the response, and the patch has what all have changed.
func TestParallelInAWebhook(t *testing.T) {
	var ran trace
	node := func(name string, change func(g *gauge)) reconcilers.SubReconciler[*gauge] {
		return &gaugeSync{Name: name, Sync: func(ctx context.Context, g *gauge) error {
			ran.add("%s sees %v and %q", name, g.Labels, g.Unit)
			change(g)
			reconcilers.Warn(ctx, "warned by %s", name)
			return nil
		}}
	}
	hook := &gaugeHook{Reconciler: &reconcilers.Parallel[*gauge]{Nodes: []reconcilers.SubReconciler[*gauge]{
		node("a", func(g *gauge) { g.Labels = map[string]string{"a": "b"} }),
		node("b", func(g *gauge) { g.Unit = "km" }),
		node("c", func(*gauge) {}),
	}}}
	want := allowed(
		jsonpatch.NewOperation("add", "/metadata/labels", map[string]any{"a": "b"}),
		jsonpatch.NewOperation("replace", "/unit", "km"),
	)
	want.Warnings = []string{"warned by a", "warned by b", "warned by c"}
	for range 20 {
		ran.calls = nil
		answer, _ := handle(t, hook.Build().Handler, gaugeRequest(admissionv1.Create, `"unit":"m"`))
		compareAnswers(t, want, answer)
		ran.compare(t, []string{`a sees map[] and "m"`, `b sees map[] and "m"`, `c sees map[] and "m"`})
	}
}
