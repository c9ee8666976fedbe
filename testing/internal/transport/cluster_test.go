package transport_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-dev/espalier/testing/internal/informers"
	"github.com/espalier-dev/espalier/testing/internal/plan"
	"github.com/espalier-dev/espalier/testing/internal/random"
	"github.com/espalier-dev/espalier/testing/internal/server"
	"github.com/espalier-dev/espalier/testing/internal/storage"
	"github.com/espalier-dev/espalier/testing/internal/transport"
)

// TestMain keeps what the libraries say out of the output of the tests. It also takes away the handler of errors that
// waits for a millisecond after the last error of the process: if that was in another bubble, or outside, it waits for
// as long as the clocks are apart.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1]
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// cluster is a real API server on a network, and an operator.
type cluster struct {
	*testing.T
	*transport.Network
	plan    plan.Plan
	operate func(mgr ctrl.Manager) error
	storage *storage.Storage
	options server.Options
	server  *server.Server
	user    client.Client
}

// simulate runs a test with a server and an operator in a bubble.
func simulate(t *testing.T, p plan.Plan, operate func(mgr ctrl.Manager) error, test func(c *cluster)) {
	t.Helper()
	random.Seed(p.Seed)
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{T: t, plan: p, operate: operate, storage: storage.New(storage.Options{})}
		defer c.storage.Close()
		c.options = server.Options{Storage: c.storage.Decorator(), Identities: &server.Identities{}}
		c.Network = transport.New(transport.Options{
			Plan: p, Kind: transport.Kinds(clientgoscheme.Scheme), Restart: c.restart,
		})
		c.start()
		// What the libraries leave behind ends within two minutes.
		defer time.Sleep(2 * time.Minute)
		defer func() { c.server.Stop() }()
		user, err := client.New(c.Client("user").Config(server.Host), client.Options{})
		c.must(err)
		c.user = user
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for ctx.Err() == nil {
				c.process(ctx)
			}
		}()
		defer func() {
			cancel()
			<-ended
		}()
		test(c)
	})
}

func (c *cluster) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

func (c *cluster) start() {
	s, err := server.Start(context.Background(), c.options)
	if err != nil {
		c.Error(err)
		return
	}
	c.server = s
	c.Serve(server.RoundTripper(s.Handler()))
}

func (c *cluster) restart() {
	c.server.Stop()
	c.start()
}

// process runs the operator until it dies or the context ends.
func (c *cluster) process(ctx context.Context) {
	alive := c.Client("operator")
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-alive.Died():
		case <-ctx.Done():
		}
		cancel()
	}()
	defer alive.Kill()
	if err := c.manage(ctx, alive); err != nil {
		// A process that cannot start is started again.
		time.Sleep(time.Second)
	}
}

func (c *cluster) manage(ctx context.Context, alive *transport.Client) error {
	mgr, err := ctrl.NewManager(alive.Config(server.Host), ctrl.Options{
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
		Cache:      cache.Options{NewInformer: informers.New(c.plan.Seed, "operator")},
	})
	if err != nil {
		return err
	}
	if err := c.operate(mgr); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// keep is an operator that keeps a ConfigMap for each Deployment, and says so in its annotations.
func keep(mgr ctrl.Manager) error {
	operator := mgr.GetClient()
	return ctrl.NewControllerManagedBy(mgr).For(&appsv1.Deployment{}).Owns(&corev1.ConfigMap{}).
		Complete(reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			parent := &appsv1.Deployment{}
			if err := operator.Get(ctx, r.NamespacedName, parent); err != nil {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name}}
			if _, err := controllerutil.CreateOrUpdate(ctx, operator, child, func() error {
				child.Data = map[string]string{"replicas": fmt.Sprint(*parent.Spec.Replicas)}
				return controllerutil.SetControllerReference(parent, child, mgr.GetScheme())
			}); err != nil {
				return reconcile.Result{}, err
			}
			_, err := controllerutil.CreateOrPatch(ctx, operator, parent, func() error {
				metav1.SetMetaDataAnnotation(&parent.ObjectMeta, "seen", child.Data["replicas"])
				return nil
			})
			return reconcile.Result{}, err
		}))
}

// newParent returns a Deployment.
func newParent(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	parent := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	parent.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	parent.Spec.Template.Labels = labels
	parent.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "web"}}
	return parent
}

// story creates a parent and changes it, and returns whether the operator has done its work.
func (c *cluster) story() bool {
	c.Helper()
	parent := newParent("web")
	ctx := c.Context()
	c.Note("create")
	c.must(c.user.Create(ctx, parent))
	time.Sleep(30 * time.Minute)
	c.Note("change")
	c.must(c.user.Patch(ctx, parent, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":3}}`))))
	time.Sleep(2 * time.Hour)
	c.must(c.user.Get(ctx, client.ObjectKeyFromObject(parent), parent))
	child := &corev1.ConfigMap{}
	c.must(c.user.Get(ctx, client.ObjectKeyFromObject(parent), child))
	return parent.Annotations["seen"] == "3" && child.Data["replicas"] == "3"
}
