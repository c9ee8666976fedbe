package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
)

// Three services outside are asked at the same time. Each answer is part of the status, and the error of one does not
// keep the others from being asked.
func ExampleParallel() {
	var asked sync.WaitGroup
	asked.Add(3)
	ask := func(service string, err error) reconcilers.SubReconciler[*resources.Widget] {
		return &reconcilers.SyncReconciler[*resources.Widget]{
			Name: service,
			Sync: func(_ context.Context, w *resources.Widget) error {
				// None has answered before all were asked.
				asked.Done()
				asked.Wait()
				w.Status.AddField(service, "answered")
				return err
			},
		}
	}
	tree := &reconcilers.Parallel[*resources.Widget]{Nodes: []reconcilers.SubReconciler[*resources.Widget]{
		ask("dns", nil),
		ask("billing", errors.New("no such account")),
		ask("monitoring", nil),
	}}
	w := &resources.Widget{}
	_, err := tree.Reconcile(context.Background(), w)
	fmt.Println(w.Status.Fields)
	fmt.Println("failed:", err)
	// Output:
	// map[billing:answered dns:answered monitoring:answered]
	// failed: no such account
}
