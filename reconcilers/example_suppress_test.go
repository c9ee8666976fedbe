package reconcilers_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The first two errors on end are quiet: the request comes back, and no alarm follows.
func ExampleSuppressTransientErrors() {
	node := &reconcilers.SuppressTransientErrors[*resources.Widget, *resources.WidgetList]{
		Reconciler: &reconcilers.SyncReconciler[*resources.Widget]{
			Sync: func(_ context.Context, widget *resources.Widget) error {
				fmt.Println("ask the directory about", widget.Name)
				return errors.New("the directory is busy")
			},
		},
	}
	ctx, config := exampleCluster()
	nodes := reconcilers.Embed(config, reconcilers.SubReconciler[*resources.Widget](node))
	gadget := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Name: "gadget", UID: "gadget-uid"}}
	for range 3 {
		_, err := nodes.Reconcile(ctx, gadget)
		fmt.Println("error:", err)
	}
	// Output:
	// ask the directory about gadget
	// error: <nil>
	// ask the directory about gadget
	// error: <nil>
	// ask the directory about gadget
	// error: Embedded/SuppressTransientErrors/SyncReconciler: the directory is busy
}
