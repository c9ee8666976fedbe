package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
)

func ExampleTryCatch() {
	errBusy := errors.New("the directory is busy")

	node := &reconcilers.TryCatch[*resources.Widget]{
		Try: &reconcilers.SyncReconciler[*resources.Widget]{
			Sync: func(context.Context, *resources.Widget) error {
				fmt.Println("register")
				return errBusy
			},
		},
		// Being busy is no failure: come back later.
		Catch: func(_ context.Context, _ *resources.Widget, result reconcilers.Result, err error) (reconcilers.Result, error) {
			fmt.Println("caught:", err)
			if errors.Is(err, errBusy) {
				return reconcilers.Result{RequeueAfter: time.Minute}, nil
			}
			return result, err
		},
		Finally: &reconcilers.SyncReconciler[*resources.Widget]{
			Sync: func(context.Context, *resources.Widget) error {
				fmt.Println("close the connection")
				return nil
			},
		},
	}
	result, err := node.Reconcile(context.Background(), &resources.Widget{})
	fmt.Println(result.RequeueAfter, err)
	// Output:
	// register
	// caught: the directory is busy
	// close the connection
	// 1m0s <nil>
}
