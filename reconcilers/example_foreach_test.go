package reconcilers_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
)

func ExampleForEach() {
	node := &reconcilers.ForEach[*resources.Widget, string]{
		Items: func(_ context.Context, widget *resources.Widget) ([]string, error) {
			return strings.Fields(widget.Spec.Fields["colors"]), nil
		},
		Reconciler: &reconcilers.SyncReconciler[*resources.Widget]{
			Sync: func(ctx context.Context, widget *resources.Widget) error {
				cursor := reconcilers.CursorStasher[string]().RetrieveOrDie(ctx)
				fmt.Printf("paint %s %s (%d of %d)\n", widget.Name, cursor.Item, cursor.Index+1, cursor.Length)
				return nil
			},
		},
	}
	gadget := &resources.Widget{Spec: resources.WidgetSpec{Fields: map[string]string{"colors": "red green blue"}}}
	gadget.Name = "gadget"
	// A root gives each request a stash.
	ctx := reconcilers.WithStash(context.Background())
	if _, err := node.Reconcile(ctx, gadget); err != nil {
		fmt.Println(err)
	}
	fmt.Println("still there:", reconcilers.CursorStasher[string]().Has(ctx))
	// Output:
	// paint gadget red (1 of 3)
	// paint gadget green (2 of 3)
	// paint gadget blue (3 of 3)
	// still there: false
}
