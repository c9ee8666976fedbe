package reconcilers_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
)

func ExampleAdvice() {
	attempts := 0
	node := &reconcilers.Advice[*resources.Widget]{
		Before: func(ctx context.Context, widget *resources.Widget) (context.Context, reconcilers.Result, error) {
			fmt.Println("before", widget.Name)
			return ctx, reconcilers.Result{}, nil
		},
		// One more attempt, at once.
		Around: func(ctx context.Context, widget *resources.Widget, node reconcilers.SubReconciler[*resources.Widget]) (reconcilers.Result, error) {
			result, err := node.Reconcile(ctx, widget)
			if err != nil {
				fmt.Println("again, because of:", err)
				result, err = node.Reconcile(ctx, widget)
			}
			return result, err
		},
		After: func(_ context.Context, _ *resources.Widget, result reconcilers.Result, err error) (reconcilers.Result, error) {
			fmt.Println("after:", err)
			return result, err
		},
		Reconciler: &reconcilers.SyncReconciler[*resources.Widget]{
			Sync: func(context.Context, *resources.Widget) error {
				fmt.Println("register")
				if attempts++; attempts == 1 {
					return errors.New("the line is bad")
				}
				return nil
			},
		},
	}
	gadget := &resources.Widget{}
	gadget.Name = "gadget"
	if _, err := node.Reconcile(context.Background(), gadget); err != nil {
		fmt.Println(err)
	}
	// Output:
	// before gadget
	// register
	// again, because of: the line is bad
	// register
	// after: <nil>
}
