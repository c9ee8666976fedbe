package reconcilers_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
)

func ExampleWhile() {
	pages := []string{"first", "second", "third"}
	node := &reconcilers.While[*resources.Widget]{
		Condition: func(ctx context.Context, _ *resources.Widget) bool {
			more := reconcilers.RetrieveIteration(ctx) < len(pages)
			fmt.Println("more?", more)
			return more
		},
		Reconciler: &reconcilers.SyncReconciler[*resources.Widget]{
			Sync: func(ctx context.Context, _ *resources.Widget) error {
				fmt.Println("the", pages[reconcilers.RetrieveIteration(ctx)], "page")
				return nil
			},
		},
		MaxIterations: new(3),
	}
	_, err := node.Reconcile(context.Background(), &resources.Widget{})
	fmt.Println(err)

	pages = append(pages, "fourth")
	_, err = node.Reconcile(context.Background(), &resources.Widget{})
	fmt.Println(err)
	var limit *reconcilers.ErrMaxIterations
	fmt.Println("at the limit:", errors.As(err, &limit))
	// Output:
	// more? true
	// the first page
	// more? true
	// the second page
	// more? true
	// the third page
	// more? false
	// <nil>
	// more? true
	// the first page
	// more? true
	// the second page
	// more? true
	// the third page
	// more? true
	// exceeded max iterations: 3
	// at the limit: true
}
