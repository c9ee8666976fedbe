package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
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

// While the directory does not answer, the node is tried again later. TryCatch is around the node with the finalizer:
// inside of it, Catch would hide the error of the clean-up, and the entry would stay in the directory.
func ExampleTryCatch_outage() {
	ctx, config := exampleCluster(&resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "gadget"}})
	errOutage := errors.New("the directory does not answer")
	var outage error
	call := func(what string) func(context.Context, *resources.Widget) error {
		return func(_ context.Context, widget *resources.Widget) error {
			if outage == nil {
				fmt.Println("-", what, widget.Name)
			}
			return outage
		}
	}
	node := &reconcilers.TryCatch[*resources.Widget]{
		Try: &reconcilers.WithFinalizer[*resources.Widget]{
			Finalizer: "example.com/directory",
			Reconciler: &reconcilers.SyncReconciler[*resources.Widget]{
				Sync: call("register"), Finalize: call("deregister"),
			},
		},
		Catch: func(_ context.Context, _ *resources.Widget, result reconcilers.Result, err error) (reconcilers.Result, error) {
			if errors.Is(err, errOutage) {
				fmt.Println("-", err)
				return reconcilers.Result{RequeueAfter: time.Minute}, nil
			}
			return result, err
		},
	}
	gadget := &resources.Widget{}
	reconcile := func(after string, now, err error) {
		fmt.Println(after)
		outage = now
		if err == nil {
			err = config.Get(ctx, client.ObjectKey{Namespace: "default", Name: "gadget"}, gadget)
		}
		if err == nil {
			_, err = node.Reconcile(ctx, gadget)
		}
		fmt.Println("- finalizers:", gadget.Finalizers, err)
	}

	reconcile("a gadget in an outage", errOutage, nil)
	reconcile("a minute later", nil, nil)
	reconcile("it is deleted in an outage", errOutage, config.Delete(ctx, gadget))
	reconcile("a minute later", nil, nil)
	// Output:
	// a gadget in an outage
	// - the directory does not answer
	// - finalizers: [example.com/directory] <nil>
	// a minute later
	// - register gadget
	// - finalizers: [example.com/directory] <nil>
	// it is deleted in an outage
	// - the directory does not answer
	// - finalizers: [example.com/directory] <nil>
	// a minute later
	// - deregister gadget
	// - finalizers: [] <nil>
}
