package reconcilers_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// stepInOrder is a node that says what it needs. The nodes of the short form do this.
type stepInOrder struct {
	reconcilers.SubReconciler[*resources.Widget]
	name  string
	order reconcilers.Order
	err   error
}

func (s *stepInOrder) Reconcile(ctx context.Context, w *resources.Widget) (reconcilers.Result, error) {
	ctx = reconcilers.Enter(ctx, s.name)
	if reconcilers.CleansUp(ctx, w) {
		fmt.Println(s.name, "cleans up")
		return reconcilers.Result{}, nil
	}
	if unmet := reconcilers.Unmet(ctx, &s.order); unmet != "" {
		fmt.Println(s.name, "is", unmet)
		reconcilers.NotDone(ctx)
		return reconcilers.Result{}, nil
	}
	fmt.Println(s.name, "runs")
	return reconcilers.Result{}, s.err
}

func (s *stepInOrder) Describe() reconcilers.Description {
	return reconcilers.Description{Kind: "Step", Name: s.name, Order: &s.order}
}

func ExampleList() {
	after := func(names ...string) reconcilers.Order {
		return reconcilers.Order{Declared: true, After: names}
	}
	tree := &reconcilers.List[*resources.Widget]{Nodes: []reconcilers.SubReconciler[*resources.Widget]{
		&stepInOrder{name: "database", err: errors.New("no storage")},
		&stepInOrder{name: "migration"}, // declares nothing, so it needs the database
		&stepInOrder{name: "app", order: after("migration")},
		&stepInOrder{name: "dashboard", order: after()},
	}}
	widget := &resources.Widget{}
	_, err := tree.Reconcile(context.Background(), widget)
	fmt.Println("error:", err)

	widget.DeletionTimestamp = &metav1.Time{}
	_, err = tree.Reconcile(context.Background(), widget)
	fmt.Println("error:", err)
	// Output:
	// database runs
	// app is waiting for "migration"
	// dashboard runs
	// error: no storage
	// dashboard cleans up
	// app cleans up
	// migration cleans up
	// database cleans up
	// error: <nil>
}
