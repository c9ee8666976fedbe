package reconcilers_test

import (
	"context"
	"fmt"
	"maps"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A ConfigMap that lists all widgets by their color, as long as there are any.
func ExampleAggregateReconciler() {
	ctx, config := exampleCluster()
	key := types.NamespacedName{Namespace: "default", Name: "catalog"}
	root := &reconcilers.AggregateReconciler[*corev1.ConfigMap]{
		Request: reconcilers.Request{NamespacedName: key},
		Reconciler: &reconcilers.SyncReconciler[*corev1.ConfigMap]{
			Sync: func(ctx context.Context, catalog *corev1.ConfigMap) error {
				// A controller that was set up also runs when a widget changes, given a watch with EnqueueTracked.
				widgets := &resources.WidgetList{}
				if err := reconcilers.RetrieveConfigOrDie(ctx).TrackAndList(ctx, widgets, client.InNamespace(catalog.Namespace)); err != nil {
					return err
				}
				catalog.Data = map[string]string{}
				for _, widget := range widgets.Items {
					catalog.Data[widget.Name] = widget.Spec.Fields["color"]
				}
				fmt.Println("- found", catalog.Data)
				return nil
			},
		},
		DesiredResource: func(_ context.Context, catalog *corev1.ConfigMap) (*corev1.ConfigMap, error) {
			if len(catalog.Data) == 0 {
				fmt.Println("- no catalog is desired")
				return nil, nil
			}
			return catalog, nil
		},
		MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) {
			current.Data = maps.Clone(desired.Data)
		},
		Config: config,
	}
	reconcile := func(after string, err error) {
		fmt.Println(after)
		if err == nil {
			_, err = root.Reconcile(ctx, root.Request)
		}
		if err != nil {
			fmt.Println(err)
		}
		catalog := &corev1.ConfigMap{}
		if err := config.Get(ctx, key, catalog); err != nil {
			fmt.Println("- there is no catalog")
			return
		}
		fmt.Println("- the catalog has", catalog.Data)
	}

	reconcile("the controller starts", nil)
	gadget := &resources.Widget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "gadget"},
		Spec:       resources.WidgetSpec{Fields: map[string]string{"color": "blue"}},
	}
	reconcile("a blue gadget", config.Create(ctx, gadget))
	gadget.Spec.Fields["color"] = "green"
	reconcile("the gadget turns green", config.Update(ctx, gadget))
	reconcile("the catalog is deleted", config.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}))
	reconcile("the gadget is gone", config.Delete(ctx, gadget))
	// Output:
	// the controller starts
	// - found map[]
	// - no catalog is desired
	// - there is no catalog
	// a blue gadget
	// - found map[gadget:blue]
	// - the catalog has map[gadget:blue]
	// the gadget turns green
	// - found map[gadget:green]
	// - the catalog has map[gadget:green]
	// the catalog is deleted
	// - found map[gadget:green]
	// - the catalog has map[gadget:green]
	// the gadget is gone
	// - found map[]
	// - no catalog is desired
	// - there is no catalog
}
