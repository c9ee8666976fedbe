package reconcilers_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
)

func ExampleAlways() {
	say := func(words string, err error) reconcilers.SubReconciler[*resources.Widget] {
		return &reconcilers.SyncReconciler[*resources.Widget]{
			Sync: func(context.Context, *resources.Widget) error {
				fmt.Println(words)
				return err
			},
		}
	}
	// Three things that do not depend on each other.
	tree := reconcilers.Always[*resources.Widget]{
		say("the dashboard", errors.New("no such dashboard")),
		say("the backup", reconcilers.ErrQuiet),
		say("the mail", nil),
	}
	_, err := tree.Reconcile(context.Background(), &resources.Widget{})
	fmt.Println("failed:", err)
	// Output:
	// the dashboard
	// the backup
	// the mail
	// failed: no such dashboard
}
