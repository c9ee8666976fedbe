package reconcilers_test

import (
	"context"
	"slices"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
)

// The first node of a tree that claims a key has it, wherever the other node stands. Another tree has claims of its
// own.
func TestClaim(t *testing.T) {
	type color string
	type size string
	var got []string
	claims := func(name string, key any) widgetNode {
		return &widgetSync{Name: name, Setup: func(ctx context.Context, _ reconcilers.Manager, _ *reconcilers.Builder) error {
			claimant, taken := reconcilers.Claim(ctx, key)
			if taken {
				got = append(got, reconcilers.RetrievePath(ctx)+" after "+claimant)
			} else if claimant != "" {
				t.Errorf("%s is not taken, and the claimant is %q, want none", name, claimant)
			}
			return nil
		}, Sync: func(context.Context, *resources.Widget) error { return nil }}
	}
	for range 2 {
		root := &widgetRoot{Name: "root", ControllerName: "claims", Config: expectWidget().Config(), Reconciler: widgetSequence{
			claims("a", color("red")), claims("b", size("red")), widgetSequence{claims("c", color("red"))}, claims("d", color("blue")),
		}}
		if err := root.SetupWithManager(t.Context(), idleManager(t)); err != nil {
			t.Log(err)
		}
	}
	if want := []string{"root/2/0/c after root/0/a", "root/2/0/c after root/0/a"}; !slices.Equal(got, want) {
		t.Errorf("taken: %q, want %q", got, want)
	}
	if claimant, taken := reconcilers.Claim(t.Context(), color("red")); taken {
		t.Errorf("outside of a root, %q has it, want it free", claimant)
	}
}
