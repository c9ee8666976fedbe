package reconcilers_test

import (
	"context"
	"fmt"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
)

func ExampleOverrideSetup() {
	// A node from elsewhere, which watches more than is wanted here.
	registration := &reconcilers.SyncReconciler[*resources.Widget]{
		Setup: func(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
			fmt.Println("watch all Secrets")
			return nil
		},
		Sync: func(context.Context, *resources.Widget) error {
			fmt.Println("register")
			return nil
		},
	}
	node := &reconcilers.OverrideSetup[*resources.Widget]{
		Setup: func(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
			fmt.Println("watch some Secrets")
			return nil
		},
		Reconciler: registration,
	}
	// A root does this, with its manager and builder.
	if err := node.SetupWithManager(context.Background(), nil, nil); err != nil {
		fmt.Println(err)
	}
	if _, err := node.Reconcile(context.Background(), &resources.Widget{}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// watch some Secrets
	// register
}
