package simulation

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/reconcilers"
)

// Branches of a tree begin in an order that the seed decides, and at the same time nonetheless.
func TestBranchesBeginAsTheSeedDecides(t *testing.T) {
	const branches = 4
	told := func(seed uint64) []string {
		var mu sync.Mutex
		var begun []string
		var nodes []reconcilers.SubReconciler[*corev1.ConfigMap]
		for i := range branches {
			nodes = append(nodes, &reconcilers.SyncReconciler[*corev1.ConfigMap]{
				Sync: func(context.Context, *corev1.ConfigMap) error {
					mu.Lock()
					begun = append(begun, fmt.Sprint(i))
					mu.Unlock()
					time.Sleep(time.Second)
					mu.Lock()
					defer mu.Unlock()
					begun = append(begun, fmt.Sprint("end of ", i))
					return nil
				},
			})
		}
		tree := &reconcilers.Parallel[*corev1.ConfigMap]{Nodes: nodes}
		options := reconciles(func(ctx context.Context, _ client.Client, app *corev1.ConfigMap) error {
			_, err := tree.Reconcile(ctx, app)
			return err
		})
		options.Plan.Seed = seed
		attempt(t, options, func(w *World) {
			w.Create(newApp("web"))
			w.Rest()
		}).must(t)
		return begun
	}
	orders := map[string]bool{}
	for seed := range uint64(5) {
		first, again := told(seed), told(seed)
		if len(first) < 2*branches || !slices.Equal(first, again) {
			t.Fatalf("with the seed %d there is %q, and then %q, want the same twice", seed, first, again)
		}
		inOrder := slices.Sorted(slices.Values(first[:branches]))
		if want := []string{"0", "1", "2", "3"}; !slices.Equal(inOrder, want) {
			t.Errorf("with the seed %d there is %q, want all branches to begin before one ends", seed, first)
		}
		orders[fmt.Sprint(first[:branches])] = true
	}
	if len(orders) < 2 {
		t.Errorf("with five seeds there is one order, %v, want several", orders)
	}
}
