package simulation_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	openapi "k8s.io/client-go/openapi/cached"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-dev/espalier/testing/simulation"
)

// TestMutexOfDiscovery has many goroutines ask at once what there is, by each library that holds a mutex meanwhile.
func TestMutexOfDiscovery(t *testing.T) {
	t.Parallel()
	simulation.Run(t, simulation.Options{Operator: func(ctx context.Context, mgr ctrl.Manager) error {
		d, err := discovery.NewDiscoveryClientForConfig(mgr.GetConfig())
		if err != nil {
			return err
		}
		cached := memory.NewMemCacheClient(d)
		mapper, schemas := restmapper.NewDeferredDiscoveryRESTMapper(cached), openapi.NewClient(d.OpenAPIV3())
		return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					for _, kind := range []string{"Deployment", "Nothing"} {
						of := schema.GroupKind{Group: "apps", Kind: kind}
						_, _ = mapper.RESTMapping(of)
						_, _ = mgr.GetRESTMapper().RESTMapping(of)
					}
					cached.Invalidate()
					_, _ = cached.ServerGroups()
					if paths, err := schemas.Paths(); err == nil && paths["apis/apps/v1"] != nil {
						_, _ = paths["apis/apps/v1"].Schema("application/json")
					}
				})
			}
			all.Wait()
			<-ctx.Done()
			return nil
		}))
	}, Plan: simulation.Plan{Latency: 2 * time.Second}}, func(w *simulation.World) { w.Rest() })
}

// TestMutexOfWarmup has controllers start while they warm up: one that waits to be elected, and one that does not.
func TestMutexOfWarmup(t *testing.T) {
	t.Parallel()
	for _, elected := range []bool{false, true} {
		options := simulation.Options{Operator: setUp, Replicas: 2}
		options.Manager.LeaderElection, options.Manager.LeaderElectionID = elected, "backup"
		options.Manager.Controller.EnableWarmup, options.Manager.Controller.NeedLeaderElection = ptr.To(true), &elected
		simulation.Run(t, options, func(w *simulation.World) {
			w.Create(backup("one"))
			w.Rest()
			w.Kill()
			w.Create(backup("two"))
			w.Rest()
			jobs := &batchv1.JobList{}
			if w.List(jobs); elected && len(jobs.Items) != 2 {
				w.Errorf("%d jobs", len(jobs.Items))
			}
		})
	}
}

func backup(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, Labels: map[string]string{"backup": "once"},
	}}
}

// TestMutexOfReadYourWrites has workers read a kind for the first time at once, by a client that waits for its own
// writes.
func TestMutexOfReadYourWrites(t *testing.T) {
	t.Parallel()
	var read atomic.Int32
	options := simulation.Options{Operator: func(_ context.Context, mgr ctrl.Manager) error {
		return ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(reconcile.Func(
			func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
				copied := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name}}
				err := mgr.GetClient().Get(ctx, r.NamespacedName, copied)
				if !apierrors.IsNotFound(err) {
					return reconcile.Result{}, err
				}
				read.Add(1)
				return reconcile.Result{}, mgr.GetClient().Create(ctx, copied)
			}))
	}}
	options.Manager.Controller.MaxConcurrentReconciles = 4
	options.Manager.NewClient = func(config *rest.Config, o client.Options) (client.Client, error) {
		o.Cache.EnableReadYourWritesConsistency = ptr.To(true)
		return client.New(config, o)
	}
	simulation.Run(t, options, func(w *simulation.World) {
		for _, name := range []string{"one", "two", "three"} {
			w.Create(backup(name))
		}
		w.Rest()
		if n := read.Load(); n < 3 {
			w.Errorf("%d apps were read", n)
		}
	})
}
