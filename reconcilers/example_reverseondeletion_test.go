package reconcilers_test

import (
	"context"
	"fmt"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func ExampleReverseOnDeletion() {
	tenants := 1
	account := &reconcilers.SyncReconciler[*resources.Widget]{
		Name:     "Account",
		Sync:     func(context.Context, *resources.Widget) error { return nil },
		Finalize: func(context.Context, *resources.Widget) error { fmt.Println("the account is closed"); return nil },
	}
	database := &reconcilers.SyncReconciler[*resources.Widget]{
		Name: "Database",
		Sync: func(context.Context, *resources.Widget) error { return nil },
		FinalizeWithResult: func(context.Context, *resources.Widget) (reconcilers.Result, error) {
			if tenants > 0 {
				fmt.Println("the database is still in use")
				return reconcilers.Result{RequeueAfter: time.Minute}, nil
			}
			fmt.Println("the database is dropped")
			return reconcilers.Result{}, nil
		},
	}
	// The database needs the account, so the account is closed when the database is gone.
	tree := reconcilers.ReverseOnDeletion[*resources.Widget]{account, database}

	deleted := &resources.Widget{}
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	for tenants = 1; tenants >= 0; tenants-- {
		if _, err := tree.Reconcile(context.Background(), deleted); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// the database is still in use
	// the database is dropped
	// the account is closed
}
