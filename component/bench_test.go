package component_test

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/watch"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// BenchmarkComponent takes components of ConfigMaps through their lives on a real API server: rolled out, one object
// changed, the operator restarted, deleted. The floor is the same objects, with the same labels and annotations,
// created and deleted as JSON by a bare loop of 16 workers in the same run. The ratios are ours to the floor; the
// requests are all that the operator made, except for watches. A metric that ends in "-target" is the most that is
// allowed for the metric without that.
//
//	rollout/floor, delete/floor  time from the request of the user to the end, by that of the floor
//	rollout/bare, delete/bare    the same, by the time of the requests that a component needs in the order that it needs
//	                             them, made by a bare client; see bareLife
//	rollout-us/object            the same for one object
//	...-requests                 requests of the operator
//	idle-requests                those of a reconcile when nothing has changed
//	restart-ms                   from the start of another process until all was looked at
//	restart-above-list-ms        the same, without what a list of the metadata of the objects takes
//	live-B/object                live memory of the operator once all is ready, by object, generator and watches included
//	peak-B/object                the highest live memory that a garbage collection found during the roll-out, without what the
//	                             generator returned
func BenchmarkComponent(b *testing.B) {
	for _, inventory := range []string{"", "Secret"} {
		for _, objects := range []int{100, 1_000, 10_000} {
			if inventory == "" && objects > 1_000 {
				continue
			}
			for _, waves := range []int{1, 3, 10} {
				name := fmt.Sprintf("inventory=%s/objects=%d/waves=%d", or(inventory, "status"), objects, waves)
				b.Run(name, func(b *testing.B) {
					l := &componentLife{inventory: inventory, objects: objects, waves: waves}
					for b.Loop() {
						l.run(b)
					}
					l.report(b)
				})
			}
		}
	}
}

func or(text, fallback string) string {
	if text == "" {
		return fallback
	}
	return text
}

// componentLife is the life of components of one size, and what it took.
type componentLife struct {
	inventory      string
	objects, waves int

	lives                                          int
	floorCreate, floorDelete                       time.Duration
	bareRollout, bareDeletion                      time.Duration
	rollout, restart, list, deletion, change       time.Duration
	rolloutRequests, idleRequests, changeRequests  int
	restartRequests, restartWrites, deleteRequests int
	live, peak                                     uint64
}

// run is one life.
func (l *componentLife) run(b *testing.B) {
	l.lives++
	c := live(b)
	bare := plane.Namespace(b)
	l.floorCreate += l.timed(b, func() error {
		return l.parallel(b.Context(), func(ctx context.Context, i int) error {
			return c.Create(ctx, l.written(bare, i), client.FieldOwner(componentPrefix))
		})
	})
	l.floorDelete += l.timed(b, func() error {
		return l.parallel(b.Context(), func(ctx context.Context, i int) error { return c.Delete(ctx, l.written(bare, i)) })
	})

	l.bare(b, c)

	namespace := plane.Namespace(b)
	assembly := resources.NewAssembly(namespace, "all")
	generated := l.generatedBytes(namespace)
	before := liveHeap()
	op := l.start(b, namespace)
	op.warmUp(b, c, namespace)
	stopPeak := peakHeap()
	l.rollout += l.timed(b, func() error {
		if err := c.Create(b.Context(), assembly); err != nil {
			return err
		}
		return op.ready(b.Context())
	})
	l.peak += stopPeak() - before - generated
	controlplanetest.Rest(b, op.requests)
	l.rolloutRequests += op.requests.Total()
	l.live += liveHeap() - before

	op.touch(b, c, assembly)
	controlplanetest.Rest(b, op.requests)
	l.idleRequests += op.requests.Total()

	op.version.Add(1)
	l.change += l.timed(b, func() error {
		op.touch(b, c, assembly)
		return nil
	})
	controlplanetest.Rest(b, op.requests)
	l.changeRequests += op.requests.Total()
	version := op.version.Load()
	op.stop(b)

	l.list += l.timed(b, func() error {
		metadata := &metav1.PartialObjectMetadataList{}
		metadata.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
		return c.List(b.Context(), metadata, client.HasLabels{componentPrefix + "/" + generator.LabelOwnerID})
	})
	began := time.Now()
	op = l.start(b, namespace)
	op.version.Store(version)
	if err := op.ready(b.Context()); err != nil {
		b.Fatal(err)
	}
	l.restart += time.Since(began)
	controlplanetest.Rest(b, op.requests)
	l.restartRequests += op.requests.Total()
	l.restartWrites += op.requests.Writes()

	op.requests.Reset()
	l.deletion += l.timed(b, func() error {
		if err := c.Delete(b.Context(), assembly); err != nil {
			return err
		}
		return gone(b.Context(), op.watch, assembly)
	})
	l.deleteRequests += op.requests.Total()
	op.stop(b)
	left := &corev1.ConfigMapList{}
	if err := c.List(b.Context(), left, client.InNamespace(namespace), client.HasLabels{componentPrefix + "/" + generator.LabelOwnerID}); err != nil || len(left.Items) > 0 {
		b.Fatalf("%d objects are left (%v), want none", len(left.Items), err)
	}
}

func (l *componentLife) report(b *testing.B) {
	n := float64(l.lives)
	each := float64(l.lives * l.objects)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(l.rollout.Seconds()/l.floorCreate.Seconds(), "rollout/floor")
	b.ReportMetric(l.rollout.Seconds()/l.bareRollout.Seconds(), "rollout/bare")
	b.ReportMetric(l.deletion.Seconds()/l.bareDeletion.Seconds(), "delete/bare")
	b.ReportMetric(float64(l.rollout.Microseconds())/each, "rollout-us/object")
	b.ReportMetric(float64(l.floorCreate.Microseconds())/each, "floor-us/object")
	b.ReportMetric(float64(l.rolloutRequests)/n, "rollout-requests")
	b.ReportMetric(float64(l.idleRequests)/n, "idle-requests")
	b.ReportMetric(float64(l.changeRequests)/n, "change-requests")
	b.ReportMetric(float64(l.change.Milliseconds())/n, "change-ms")
	b.ReportMetric(float64(l.restart.Milliseconds())/n, "restart-ms")
	b.ReportMetric(float64((l.restart-l.list).Milliseconds())/n, "restart-above-list-ms")
	b.ReportMetric(float64(l.restartRequests)/n, "restart-requests")
	b.ReportMetric(float64(l.restartWrites)/n, "restart-writes")
	b.ReportMetric(l.deletion.Seconds()/l.floorDelete.Seconds(), "delete/floor")
	b.ReportMetric(float64(l.deleteRequests)/n, "delete-requests")
	b.ReportMetric(float64(int64(l.live))/each, "live-B/object")
	b.ReportMetric(float64(int64(l.peak))/each, "peak-B/object")

	b.ReportMetric(0, "idle-requests-target")
	b.ReportMetric(3, "change-requests-target")
	b.ReportMetric(0, "restart-writes-target")
	// The fixed costs of a component, such as its finalizer and its inventory, weigh more the fewer objects it has.
	ratio := 1.5
	if l.objects >= 1_000 {
		ratio = 1.15
	}
	b.ReportMetric(ratio, "rollout/floor-target")
	b.ReportMetric(ratio, "delete/floor-target")
	if l.objects >= 1_000 {
		b.ReportMetric(1.05*float64(l.objects), "rollout-requests-target")
		b.ReportMetric(1.05*float64(l.objects), "delete-requests-target")
	}
	if l.objects >= 10_000 {
		b.ReportMetric(1_000, "restart-above-list-ms-target")
		b.ReportMetric(2<<10, "peak-B/object-target")
	}
}

func (l *componentLife) timed(b *testing.B, f func() error) time.Duration {
	b.Helper()
	began := time.Now()
	if err := f(); err != nil {
		b.Fatal(err)
	}
	return time.Since(began)
}

func (l *componentLife) parallel(ctx context.Context, f func(ctx context.Context, i int) error) error {
	var group errgroup.Group
	group.SetLimit(16)
	for i := range l.objects {
		group.Go(func() error { return f(ctx, i) })
	}
	return group.Wait()
}

// object is one of the component. The first has another content in each version.
func (l *componentLife) object(namespace string, i int, version int64) *corev1.ConfigMap {
	object := partOf(namespace, "part-"+strconv.Itoa(i), strconv.Itoa(i%l.waves))
	if i == 0 {
		object.Data["version"] = strconv.FormatInt(version, 10)
	}
	return object
}

// written is an object as a component writes it.
func (l *componentLife) written(namespace string, i int) *unstructured.Unstructured {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(l.object(namespace, i, 0))
	if err != nil {
		panic(err) // a mistake in a test
	}
	u := &unstructured.Unstructured{Object: content}
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	u.SetLabels(map[string]string{componentPrefix + "/" + generator.LabelOwnerID: strings.Repeat("a", 52)})
	annotations := u.GetAnnotations()
	annotations[componentPrefix+"/"+generator.AnnotationOwnerID] = "Assembly.test.espalier.dev/" + namespace + "/all/" + string(uuid.NewUUID())
	annotations[componentPrefix+"/"+generator.AnnotationDigest] = strings.Repeat("a", 26)
	u.SetAnnotations(annotations)
	return u
}

// generatedBytes is how much memory the objects take that the generator returns.
func (l *componentLife) generatedBytes(namespace string) uint64 {
	before := liveHeap()
	objects := make([]client.Object, l.objects)
	for i := range objects {
		objects[i] = l.object(namespace, i, 0)
	}
	taken := liveHeap() - before
	goruntime.KeepAlive(objects)
	return taken
}

// componentOperator is a process that deploys components.
type componentOperator struct {
	requests *controlplane.Requests
	version  atomic.Int64
	watch    client.WithWatch
	done     chan struct{}
	stop     func(b *testing.B)
	root     *reconcilers.ResourceReconciler[*resources.Assembly]
}

func (l *componentLife) start(b *testing.B, namespace string) *componentOperator {
	op := &componentOperator{done: make(chan struct{}, 1)}
	config, requests := controlplane.CountRequests(plane.Config(b))
	op.requests = requests
	mgr := newManager(b, config, ctrl.Options{})
	watching, err := client.NewWithWatch(plane.Config(b), client.Options{Scheme: mgr.GetScheme()})
	if err != nil {
		b.Fatal(err)
	}
	op.watch = watching
	made := generator.GeneratorFunc(func(_ context.Context, _, name string, _ generator.Unstructurable) ([]client.Object, error) {
		if name == "first" {
			return []client.Object{partOf(namespace, name, "0")}, nil
		}
		objects := make([]client.Object, l.objects)
		for i := range objects {
			objects[i] = l.object(namespace, i, op.version.Load())
		}
		return objects, nil
	})
	root := component.NewComponentRoot(componentPrefix, made, component.Options[*resources.Assembly]{
		Config:    reconcilers.NewConfig(mgr, &resources.Assembly{}, time.Hour),
		Inventory: component.Inventory{Kind: l.inventory},
		Hooks: generator.Hooks[*resources.Assembly]{PostReconcile: []generator.Hook[*resources.Assembly]{
			func(context.Context, client.Client, *resources.Assembly) error {
				select {
				case op.done <- struct{}{}:
				default:
				}
				return nil
			},
		}},
	})
	if err := root.SetupWithManager(b.Context(), mgr); err != nil {
		b.Fatal(err)
	}
	op.root = root
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	var once sync.Once
	op.stop = func(b *testing.B) {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				b.Error(err)
			}
		})
	}
	b.Cleanup(func() { op.stop(b) })
	return op
}

// warmUp deploys a component of one object: that a process starts, and looks up and watches a type for the first time,
// is no part of a roll-out.
func (op *componentOperator) warmUp(b *testing.B, c client.Client, namespace string) {
	b.Helper()
	first := resources.NewAssembly(namespace, "first")
	if err := c.Create(b.Context(), first); err != nil {
		b.Fatal(err)
	}
	if err := op.ready(b.Context()); err != nil {
		b.Fatal(err)
	}
	if err := c.Delete(b.Context(), first); err != nil {
		b.Fatal(err)
	}
	if err := gone(b.Context(), op.watch, first); err != nil {
		b.Fatal(err)
	}
	controlplanetest.Quiet(b, op.requests)
	for len(op.done) > 0 {
		<-op.done
	}
}

// ready waits until the component was found to be complete.
func (op *componentOperator) ready(ctx context.Context) error {
	select {
	case <-op.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// touch has the resource reconciled once more, and waits until it is ready. Only what comes after counts.
func (op *componentOperator) touch(b *testing.B, c client.Client, assembly *resources.Assembly) {
	b.Helper()
	for len(op.done) > 0 {
		<-op.done
	}
	op.requests.Reset()
	patch := client.RawPatch("application/merge-patch+json", []byte(fmt.Sprintf(`{"metadata":{"annotations":{"touched":%q}}}`, time.Now().String())))
	if err := c.Patch(b.Context(), assembly.DeepCopy(), patch); err != nil {
		b.Fatal(err)
	}
	if err := op.ready(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// gone waits until the resource is gone.
func gone(ctx context.Context, c client.WithWatch, assembly *resources.Assembly) error {
	list := &resources.AssemblyList{}
	w, err := c.Watch(ctx, list, client.InNamespace(assembly.Namespace))
	if err != nil {
		return err
	}
	defer w.Stop()
	if err := c.Get(ctx, client.ObjectKeyFromObject(assembly), assembly); apierrs.IsNotFound(err) {
		return nil
	}
	for event := range w.ResultChan() {
		if deleted, ok := event.Object.(*resources.Assembly); ok && event.Type == watch.Deleted && deleted.Name == assembly.Name {
			return nil
		}
	}
	return errors.New("the watch ended")
}

func liveHeap() uint64 {
	goruntime.GC()
	goruntime.GC()
	return readLive()
}

func readLive() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// peakHeap looks for the highest live memory until the function that it returns is called.
func peakHeap() (stop func() uint64) {
	var peak atomic.Uint64
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			peak.Store(max(peak.Load(), readLive()))
			select {
			case <-done:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	return func() uint64 {
		close(done)
		<-ended
		return peak.Load()
	}
}

// BenchmarkComponentUnchanged is a request for a component that is as desired, over the watches of a running manager,
// by the number of its objects.
func BenchmarkComponentUnchanged(b *testing.B) {
	for _, objects := range []int{100, 1_000, 10_000} {
		b.Run("objects="+strconv.Itoa(objects), func(b *testing.B) {
			c, namespace := live(b), plane.Namespace(b)
			l := &componentLife{inventory: "Secret", objects: objects, waves: 1}
			op := l.start(b, namespace)
			assembly := resources.NewAssembly(namespace, "all")
			if err := c.Create(b.Context(), assembly); err != nil {
				b.Fatal(err)
			}
			if err := op.ready(b.Context()); err != nil {
				b.Fatal(err)
			}
			op.touch(b, c, assembly)
			controlplanetest.Rest(b, op.requests)
			request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(assembly)}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := op.root.Reconcile(b.Context(), request); err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			b.ReportMetric(float64(op.requests.Total())/float64(b.N), "requests/op")
			// The operator of the next case would keep this component, too.
			if err := c.Delete(b.Context(), assembly); err != nil {
				b.Fatal(err)
			}
			if err := gone(b.Context(), op.watch, assembly); err != nil {
				b.Fatal(err)
			}
		})
	}
}
