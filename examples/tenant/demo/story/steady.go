package story

import (
	"context"
	"fmt"
	"strconv"
)

// isSteady has all tenants reconciled several times by changing nothing about them but an annotation, and holds when
// the operator asks nothing of the API servers meanwhile.
func isSteady(ctx context.Context, w *World) error {
	touch := func(ctx context.Context, name string) error {
		w.touches++
		return patchTenant(ctx, w, name, fmt.Sprintf(`{"metadata":{"annotations":{"example.com/touched":%q}}}`, strconv.Itoa(w.touches)))
	}
	return w.operator.Steady(ctx, w.options.Patience, tenants, touch, w.operator.requests, w.operator.hubRequests)
}
