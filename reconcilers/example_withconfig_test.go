package reconcilers_test

import (
	"context"
	"fmt"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func ExampleWithConfig() {
	settings := func(color string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"},
			Data:       map[string]string{"color": color},
		}
	}
	ctx, _ := exampleCluster(settings("red"))
	// With a cluster, this is config.WithCluster(cluster), made once.
	_, other := exampleCluster(settings("blue"))

	read := &reconcilers.SyncReconciler[*resources.Widget]{
		Sync: func(ctx context.Context, _ *resources.Widget) error {
			found := &corev1.ConfigMap{}
			key := client.ObjectKey{Namespace: "default", Name: "settings"}
			if err := reconcilers.RetrieveConfigOrDie(ctx).Get(ctx, key, found); err != nil {
				return err
			}
			fmt.Println("the settings are", found.Data["color"])
			return nil
		},
	}
	tree := reconcilers.Sequence[*resources.Widget]{
		read,
		&reconcilers.WithConfig[*resources.Widget]{
			Config: func(context.Context, reconcilers.Config) (reconcilers.Config, error) {
				return other, nil
			},
			Reconciler: read,
		},
		read,
	}
	if _, err := tree.Reconcile(ctx, &resources.Widget{}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// the settings are red
	// the settings are blue
	// the settings are red
}
