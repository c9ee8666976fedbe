package story

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// steadyRounds is how often in a row all tenants are reconciled without an API request.
const steadyRounds = 5

// isSteady has all tenants reconciled several times by changing nothing about them but an annotation, and holds when the
// operator asks nothing of the API server meanwhile. What it still had to do when it is first called, such as to send the
// last events, makes a round fail; a tree that always has something to do never passes.
func isSteady(ctx context.Context, w *World) error {
	for range steadyRounds {
		w.operator.requests.Reset()
		w.operator.hubRequests.Reset()
		if err := w.reconcileAll(ctx); err != nil {
			return err
		}
		if total := w.operator.requests.Total() + w.operator.hubRequests.Total(); total != 0 {
			return fmt.Errorf("%d API requests:\n%s\nand on the hub:\n%s", total, w.operator.requests, w.operator.hubRequests)
		}
	}
	return nil
}

// reconcileAll returns when each tenant was reconciled after its annotation changed.
func (w *World) reconcileAll(ctx context.Context) error {
	before := w.operator.reconciles()
	for _, name := range tenants {
		change := fmt.Sprintf(`{"metadata":{"annotations":{"example.com/touched":%q}}}`, strconv.Itoa(w.touches))
		if err := patchTenant(ctx, w, name, change); err != nil {
			return err
		}
	}
	w.touches++
	return wait.PollUntilContextTimeout(ctx, time.Millisecond, w.options.Patience, true, func(context.Context) (bool, error) {
		now := w.operator.reconciles()
		for _, name := range tenants {
			if now[name] == before[name] {
				return false, w.operator.failure()
			}
		}
		return true, nil
	})
}
