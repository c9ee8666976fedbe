package sharding_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/sharding"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

var plane = controlplanetest.Shared{Options: controlplane.Options{
	CRDs: []*apiextensionsv1.CustomResourceDefinition{resources.CRD()},
}}

func TestMain(m *testing.M) { os.Exit(plane.Main(m)) }

const (
	ring       = "widgets"
	shardLabel = "shard.alpha.sharding.timebertt.dev/" + ring
	drainLabel = "drain.alpha.sharding.timebertt.dev/" + ring
	finalizer  = "test.espalier.dev/clean"

	// Control planes of many tests share few processors, so that a renewal may take seconds.
	leaseDuration, renewDeadline = 15 * time.Second, 13 * time.Second
)

// live returns a client that reads past every cache.
func live(t testing.TB) client.Client {
	t.Helper()
	c, err := client.New(plane.Config(t), client.Options{Scheme: resources.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// made is the node that makes the child of a Widget: a ConfigMap of its name, which says which process made it.
func made(process string) node {
	return espalier.Owns("Config", func(_ context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name},
			Data:       map[string]string{"by": process, "image": w.Spec.Fields["image"]},
		}, nil
	})
}

type (
	node          = reconcilers.SubReconciler[*resources.Widget]
	rootOfWidgets = reconcilers.ResourceReconciler[*resources.Widget]
)

// tree returns a function that makes the root of an operator.
func tree(node node) func(reconcilers.Config) *rootOfWidgets {
	return func(config reconcilers.Config) *rootOfWidgets {
		return &rootOfWidgets{Config: config, Reconciler: node}
	}
}

// process is one process of an operator.
type process struct {
	*sharding.Shard
	manager ctrl.Manager
	config  reconcilers.Config
	stop    func() error
}

// start starts a process of the ring for the Widgets of a namespace, with a root of one node.
func start(t *testing.T, namespace, name string, of node) *process {
	t.Helper()
	return startTree(t, namespace, name, tree(of))
}

// startTree starts a process of the ring for the Widgets of a namespace.
func startTree(
	t *testing.T, namespace, name string, tree func(reconcilers.Config) *rootOfWidgets, change ...func(*rest.Config),
) *process {
	t.Helper()
	config := plane.Config(t)
	for _, f := range change {
		f(config)
	}
	options := ctrl.Options{
		Scheme: resources.NewScheme(), Metrics: metricsserver.Options{BindAddress: "0"}, LeaderElectionNamespace: namespace,
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
	}
	options.Controller.SkipNameValidation = new(true)
	options.LeaseDuration, options.RenewDeadline = new(leaseDuration), new(renewDeadline)
	options.RetryPeriod = new(200 * time.Millisecond)
	shard, err := sharding.Ring{Name: ring, Shard: name}.Join(config, &options, tree(reconcilers.Config{}))
	if err != nil {
		t.Fatal(err)
	}
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		t.Fatal(err)
	}
	mgr = shard.Manager(mgr)
	p := &process{Shard: shard, manager: mgr, config: espalier.NewConfig(mgr).WithShard(shard)}
	if err := tree(p.config).SetupWithManager(t.Context(), mgr); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stopped := false
	p.stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		return <-done
	}
	t.Cleanup(func() {
		if err := p.stop(); err != nil {
			t.Errorf("the process %s failed: %v", name, err)
		}
	})
	return p
}

// label merges labels into an object; nil removes one.
func label(t *testing.T, c client.Client, obj client.Object, labels string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"labels":%s}}`, labels)
	if err := c.Patch(t.Context(), obj, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		t.Fatal(err)
	}
}

func assigned(name string) string { return fmt.Sprintf(`{%q:%q}`, shardLabel, name) }
