package large_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	goruntime "runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
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

// made are the objects of one resource, as an API server has them.
type made struct {
	templates []template
	mapper    meta.RESTMapper
}

// templates has an operator make the objects of one resource, on an API server that knows defaults and managed fields.
var templates = sync.OnceValue(func() func(t testing.TB) made {
	var all made
	return func(t testing.TB) made {
		t.Helper()
		if all.mapper == nil {
			all = makeTemplates(t)
		}
		return all
	}
})()

func makeTemplates(t testing.TB) made {
	t.Helper()
	c, err := client.New(plane.Config(t), client.Options{Scheme: resources.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	named := metav1.ObjectMeta{Namespace: "team-" + team, Name: "widget-" + number}
	key := client.ObjectKey{Namespace: named.Namespace, Name: named.Name}
	for _, obj := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: named.Namespace}},
		&resources.Widget{ObjectMeta: named},
	} {
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	o := &operator{done: make([]atomic.Bool, 1)}
	o.start(t, plane.Config(t), ctrl.Options{})
	defer o.stop()
	deployment := &appsv1.Deployment{}
	controlplanetest.Eventually(t, "the Deployment is not ready", func(ctx context.Context) error {
		if err := c.Get(ctx, key, deployment); err != nil {
			return err
		}
		deployment.Status = available(deployment)
		return c.Status().Update(ctx, deployment, client.FieldOwner("kube-controller-manager"))
	})
	controlplanetest.Eventually(t, "the Widget is not ready", func(ctx context.Context) error {
		widget := &resources.Widget{}
		if err := c.Get(ctx, key, widget); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(widget.Status.Conditions, "Ready") {
			return fmt.Errorf("its conditions are %v", widget.Status.Conditions)
		}
		return nil
	})
	return readTemplates(t, c, key)
}

func readTemplates(t testing.TB, c client.Client, key client.ObjectKey) made {
	t.Helper()
	objects := []client.Object{
		&resources.Widget{}, &corev1.ServiceAccount{}, &corev1.ConfigMap{}, &corev1.Secret{}, &appsv1.Deployment{},
		&corev1.Service{},
	}
	uids := map[string]string{}
	for i, obj := range objects {
		if err := c.Get(t.Context(), key, obj); err != nil {
			t.Fatalf("%T %s: %v", obj, key, err)
		}
		uids[string(obj.GetUID())] = uidOf(i)
	}
	all := made{mapper: c.RESTMapper()}
	for _, obj := range objects {
		all.templates = append(all.templates, templateOf(t, c, obj, uids))
	}
	return all
}

// available is the status of a Deployment whose Pods are ready.
func available(d *appsv1.Deployment) appsv1.DeploymentStatus {
	status := appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
	}
	for kind, reason := range map[appsv1.DeploymentConditionType]string{
		appsv1.DeploymentAvailable: "MinimumReplicasAvailable", appsv1.DeploymentProgressing: "NewReplicaSetAvailable",
	} {
		status.Conditions = append(status.Conditions, appsv1.DeploymentCondition{
			Type: kind, Status: corev1.ConditionTrue, Reason: reason,
			LastUpdateTime: metav1.Now(), LastTransitionTime: metav1.Now(),
		})
	}
	return status
}

// operator is an operator that was started.
type operator struct {
	server *apiServer
	// done says which resources were reconciled, and missing is how many were not.
	done    []atomic.Bool
	missing atomic.Int64
	first   sync.Once
	// idled is closed when each was.
	idled chan struct{}
	began time.Time
	// cached is how long it took until the caches had everything, so that the first request could begin, idle until
	// each resource was reconciled, and used is the processor time until then, with that of the server.
	cached, idle, used time.Duration
	// peak is the most bytes that objects in the heap took until then, with what was not collected yet.
	peak uint64
	stop func()
}

// restart starts an operator with n resources that are as desired.
func restart(t testing.TB, n int, s setting) *operator {
	t.Helper()
	all := templates(t)
	o := &operator{
		server: &apiServer{templates: all.templates, resources: n, pages: s.pages},
		done:   make([]atomic.Bool, n), idled: make(chan struct{}),
	}
	o.missing.Store(int64(n))
	// The server has no discovery.
	options := ctrl.Options{
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return all.mapper, nil },
		Cache:          s.cache,
	}
	options.Controller.MaxConcurrentReconciles = max(1, s.workers)
	o.start(t, o.server.serve(t), options)
	return o
}

// start starts the operator against an API server.
func (o *operator) start(t testing.TB, config *rest.Config, options ctrl.Options) {
	t.Helper()
	options.Scheme, options.Metrics = resources.NewScheme(), metricsserver.Options{BindAddress: "0"}
	options.Controller.SkipNameValidation = new(true)
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		t.Fatal(err)
	}
	if err := tree(espalier.NewConfig(mgr), o.reconciled).SetupWithManager(t.Context(), mgr); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	o.began, o.used = time.Now(), processorTime()
	go func() { ended <- mgr.Start(ctx) }()
	o.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the manager has failed: %v", err)
		}
	})
	t.Cleanup(o.stop)
}

// reconciled notes that a request for a resource has ended.
func (o *operator) reconciled(w *resources.Widget) {
	o.first.Do(func() { o.cached = time.Since(o.began) })
	i, err := strconv.Atoi(strings.TrimPrefix(w.Name, "widget-"))
	if err != nil || i >= len(o.done) {
		return // it is that of the templates
	}
	if !o.done[i].Swap(true) && o.missing.Add(-1) == 0 {
		close(o.idled)
	}
}

// await waits until each resource was reconciled.
func (o *operator) await(t testing.TB) {
	t.Helper()
	limit, tick := time.After(10*time.Minute), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for {
		o.peak = max(o.peak, heap())
		select {
		case <-o.idled:
			o.idle, o.used = time.Since(o.began), processorTime()-o.used
			return
		case <-limit:
			_, others := o.server.taken()
			t.Fatalf("%d of %d resources were not reconciled. Requests that are no reads: %q",
				o.missing.Load(), o.server.resources, others)
		case <-tick.C:
		}
	}
}

// processorTime returns how long processors have worked for this process.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// heap returns how much objects in the heap take, with those that are garbage.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

func liveHeap() uint64 {
	goruntime.GC()
	goruntime.GC()
	return heap()
}

// setting is what changes how an operator starts.
type setting struct {
	cache   cache.Options
	workers int
	// lists has the caches list before they watch, in place of watches that begin with what is there. pages has the
	// server answer lists in pages.
	lists, pages bool
	// writes is how many applies a resource takes at most.
	writes int
}

// tree is an operator with five children for each resource. It calls done at the end of each request.
func tree(config reconcilers.Config, done func(*resources.Widget)) *reconcilers.ResourceReconciler[*resources.Widget] {
	named := func(w *resources.Widget) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name, Labels: map[string]string{"app": w.Name}}
	}
	labels := func(w *resources.Widget) map[string]string { return map[string]string{"app": w.Name} }
	return espalier.For(config,
		espalier.Owns("Account", func(_ context.Context, w *resources.Widget) (*corev1.ServiceAccount, error) {
			return &corev1.ServiceAccount{ObjectMeta: named(w)}, nil
		}),
		espalier.Owns("Settings", func(_ context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
			return &corev1.ConfigMap{ObjectMeta: named(w), Data: map[string]string{"color": "blue", "size": "8"}}, nil
		}),
		espalier.Owns("Password", func(_ context.Context, w *resources.Widget) (*corev1.Secret, error) {
			return &corev1.Secret{ObjectMeta: named(w), Data: map[string][]byte{"password": []byte("secret")}}, nil
		}),
		espalier.Owns("Workload", func(_ context.Context, w *resources.Widget) (*appsv1.Deployment, error) {
			return &appsv1.Deployment{ObjectMeta: named(w), Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels(w)},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels(w)},
					Spec: corev1.PodSpec{ServiceAccountName: w.Name, Containers: []corev1.Container{{
						Name: "main", Image: "gadget:1", Ports: []corev1.ContainerPort{{ContainerPort: 8080}},
						Env: []corev1.EnvVar{{Name: "COLOR", Value: "blue"}, {Name: "SIZE", Value: "8"}},
					}}},
				},
			}}, nil
		}),
		espalier.Owns("Address", func(_ context.Context, w *resources.Widget) (*corev1.Service, error) {
			return &corev1.Service{ObjectMeta: named(w), Spec: corev1.ServiceSpec{
				Selector: labels(w), Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}},
			}}, nil
		}),
		espalier.Runs("Done", func(_ context.Context, w *resources.Widget) error {
			done(w)
			return nil
		}),
	)
}
