package large_test

import (
	"context"
	"fmt"
	"net/http"
	goruntime "runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/testing/fake"
	"github.com/espalier-dev/espalier/tracker"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// An operator that is started again writes nothing if nothing has changed, and asks for nothing beyond its watches.
func TestRestartWritesNothing(t *testing.T) {
	for name, setting := range settings {
		t.Run(name, func(t *testing.T) {
			o := start(t, 200, setting)
			o.await(t)
			counts, others := o.server.taken()
			if len(others) > 0 {
				t.Errorf("the operator sends %q, want it to list and to watch alone", others)
			}
			if want := len(o.server.templates); counts["watch"] < want {
				t.Errorf("the operator has %d watches, want at least %d", counts["watch"], want)
			}
		})
	}
}

// settings are what changes how much memory a cache takes.
var settings = map[string]func(*cache.Options){
	"as it is": func(*cache.Options) {},
	"without managed fields": func(o *cache.Options) {
		o.DefaultTransform = cache.TransformStripManagedFields()
	},
}

// BenchmarkRestart starts an operator that has resources with five children each, all as desired.
//
//	heap-B/resource  live memory of the process afterwards, by resource with its children
//	heap-B/object    the same by object
//	idle-us/resource time from the start until each resource was reconciled, by resource
//	sync-us/resource the part of it until the caches had everything
//	requests         requests but watches
func BenchmarkRestart(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		for _, name := range []string{"as it is", "without managed fields"} {
			b.Run(fmt.Sprintf("resources=%d/%s", n, name), func(b *testing.B) {
				for b.Loop() {
					before := liveHeap()
					o := start(b, n, settings[name])
					o.await(b)
					heap := liveHeap() - before
					counts, _ := o.server.taken()
					o.stop()
					each := float64(n)
					b.ReportMetric(float64(heap)/each, "heap-B/resource")
					b.ReportMetric(float64(heap)/each/float64(len(o.server.templates)), "heap-B/object")
					b.ReportMetric(float64(o.idle.Microseconds())/each, "idle-us/resource")
					b.ReportMetric(float64(o.synced.Microseconds())/each, "sync-us/resource")
					b.ReportMetric(float64(counts["list"]+counts["other"]), "requests")
				}
			})
		}
	}
}

func liveHeap() uint64 {
	goruntime.GC()
	goruntime.GC()
	var stats goruntime.MemStats
	goruntime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// operator is an operator that was started.
type operator struct {
	server *apiServer
	// reconciled counts the requests that have ended.
	reconciled atomic.Int64
	began      time.Time
	// synced is how long the caches took, and idle how long it took until each resource was reconciled.
	synced, idle time.Duration
	stop         func()
}

// start starts an operator with n resources that are as desired.
func start(t testing.TB, n int, setting func(*cache.Options)) *operator {
	t.Helper()
	made, mapper := templates(t)
	o := &operator{server: &apiServer{templates: made, resources: n}}
	options := ctrl.Options{
		Scheme: resources.NewScheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		// The server has no discovery.
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mapper, nil },
	}
	options.Controller.SkipNameValidation = new(true)
	setting(&options.Cache)
	mgr, err := ctrl.NewManager(o.server.serve(t), options)
	if err != nil {
		t.Fatal(err)
	}
	root := tree(espalier.NewConfig(mgr), func() { o.reconciled.Add(1) })
	if err := root.SetupWithManager(t.Context(), mgr); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	o.began = time.Now()
	go func() { ended <- mgr.Start(ctx) }()
	stopped := false
	o.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the manager has failed: %v", err)
		}
	}
	t.Cleanup(o.stop)
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		t.Fatal("the cache has not synced")
	}
	o.synced = time.Since(o.began)
	return o
}

// await waits until each resource was reconciled.
func (o *operator) await(t testing.TB) {
	t.Helper()
	want := int64(o.server.resources)
	for o.reconciled.Load() < want {
		if time.Since(o.began) > 10*time.Minute {
			t.Fatalf("%d of %d resources were reconciled", o.reconciled.Load(), want)
		}
		time.Sleep(time.Millisecond)
	}
	o.idle = time.Since(o.began)
}

// tree is an operator with five children for each resource. It calls done once a resource was reconciled.
func tree(config reconcilers.Config, done func()) *reconcilers.ResourceReconciler[*resources.Widget] {
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
		}).Unchecked(),
		espalier.Owns("Address", func(_ context.Context, w *resources.Widget) (*corev1.Service, error) {
			return &corev1.Service{ObjectMeta: named(w), Spec: corev1.ServiceSpec{
				Selector: labels(w), Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}},
			}}, nil
		}),
		espalier.Runs("Done", func(context.Context, *resources.Widget) error {
			done()
			return nil
		}),
	)
}

// templates makes the objects of one resource, by reconciling it until nothing is written any more.
func templates(t testing.TB) ([]template, meta.RESTMapper) {
	t.Helper()
	scheme := resources.NewScheme()
	widget := &resources.Widget{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "widget-" + number, Generation: 1,
		UID: types.UID(uidOf(0)), CreationTimestamp: metav1.Now(),
	}}
	writes := 0
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(widget).WithReturnManagedFields().Build()
	counted := countWrites(c, &writes)
	config := reconcilers.Config{
		Client: counted, APIReader: c, Recorder: record.NewFakeRecorder(100), Tracker: tracker.New(scheme, time.Hour),
	}
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(widget)}
	root := tree(config, func() {})
	for before := -1; writes != before; {
		before = writes
		if _, err := root.Reconcile(t.Context(), request); err != nil {
			t.Fatalf("the resource is not reconciled: %v", err)
		}
	}
	objects := []client.Object{
		&resources.Widget{}, &corev1.ServiceAccount{}, &corev1.ConfigMap{}, &corev1.Secret{}, &appsv1.Deployment{},
		&corev1.Service{},
	}
	uids := map[string]string{}
	for i, obj := range objects {
		if err := c.Get(t.Context(), request.NamespacedName, obj); err != nil {
			t.Fatalf("%T %s: %v", obj, request.NamespacedName, err)
		}
		uids[string(obj.GetUID())] = uidOf(i)
	}
	var made []template
	for _, obj := range objects {
		made = append(made, templateOf(t, scheme, c.RESTMapper(), obj, uids))
	}
	return made, c.RESTMapper()
}

// countWrites returns a client that counts requests which write.
func countWrites(c client.WithWatch, writes *int) client.WithWatch {
	return interceptor.NewClient(c, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			*writes++
			return c.Create(ctx, obj, opts...)
		},
		Patch: func(
			ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption,
		) error {
			*writes++
			return c.Patch(ctx, obj, p, opts...)
		},
		Apply: func(
			ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption,
		) error {
			*writes++
			return c.Apply(ctx, obj, opts...)
		},
		SubResourcePatch: func(
			ctx context.Context, c client.Client, part string, obj client.Object, p client.Patch,
			opts ...client.SubResourcePatchOption,
		) error {
			*writes++
			return c.SubResource(part).Patch(ctx, obj, p, opts...)
		},
		SubResourceUpdate: func(
			ctx context.Context, c client.Client, part string, obj client.Object, opts ...client.SubResourceUpdateOption,
		) error {
			*writes++
			return c.SubResource(part).Update(ctx, obj, opts...)
		},
	})
}
