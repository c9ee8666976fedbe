package tenant_test

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/testing/simulation"
	"github.com/espalier-dev/espalier/testing/simulation/internal/stories"
)

var resources = flag.Int("stories.resources", 300, "how many resources there are in the story of many")

// accounts gives each ConfigMap a ServiceAccount.
func accounts(ctx context.Context, mgr ctrl.Manager) error {
	config := reconcilers.NewConfig(mgr, &corev1.ConfigMap{}, syncPeriod)
	return (&reconcilers.ResourceReconciler[*corev1.ConfigMap]{
		Name:   "Accounts",
		Config: config,
		Reconciler: &reconcilers.ChildReconciler[
			*corev1.ConfigMap, *corev1.ServiceAccount, *corev1.ServiceAccountList]{
			Name: "Account",
			DesiredChild: func(_ context.Context, parent *corev1.ConfigMap) (*corev1.ServiceAccount, error) {
				return &corev1.ServiceAccount{
					ObjectMeta:       stories.Named(parent.Namespace, parent.Name),
					ImagePullSecrets: []corev1.LocalObjectReference{{Name: parent.Data["secret"]}},
				}, nil
			},
			MergeBeforeUpdate: func(current, desired *corev1.ServiceAccount) {
				current.ImagePullSecrets = desired.ImagePullSecrets
			},
			ReflectChildStatusOnParent: func(context.Context, *corev1.ConfigMap, *corev1.ServiceAccount, error) {},
		},
	}).SetupWithManager(ctx, mgr)
}

// TestMany has many resources. At rest, they cost no requests, also when all are looked at again. One that changes
// costs as much as if it were alone.
func TestMany(t *testing.T) {
	options := simulation.Options{Operator: accounts}
	options.Manager.Cache.SyncPeriod = new(syncPeriod)
	parents := make([]client.Object, *resources)
	for i := range parents {
		parents[i] = &corev1.ConfigMap{
			ObjectMeta: stories.Named("default", fmt.Sprintf("parent-%d", i)),
			Data:       map[string]string{"secret": "first"},
		}
	}
	options.Objects = parents
	began := time.Now()
	simulation.Run(t, options, func(w *simulation.World) {
		w.Rest()
		if n := len(w.Writes()); n != len(parents) {
			w.Errorf("%d writes for %d resources", n, len(parents))
		}
		w.Idle(2 * syncPeriod)
		w.Update(parents[7], func() { parents[7].(*corev1.ConfigMap).Data["secret"] = "second" })
		w.Rest()
		w.Wrote("update ServiceAccount default/parent-7")
		var memory runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&memory)
		w.Logf("%d resources: %d MiB", len(parents), memory.HeapAlloc>>20)
	})
	t.Logf("%v", time.Since(began))
}
