package reconcilers_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// The log of a busy hour must be readable. Two resources with seven nodes each, of which one is refused by the API
// server and one fails and is caught, are reconciled as often as their children, their spec and their status change in
// minutes of use. The controller and the loggers are those of controller-runtime.
func TestLogVolume(t *testing.T) {
	const requests, limit = 28, 60_000
	for name, development := range map[string]bool{"production": false, "development": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := &safeBuffer{}
				o := newLogged(t, zap.New(zap.UseDevMode(development), zap.WriteTo(log)))
				for i := range requests {
					for _, name := range o.names {
						o.change(t, name, i)
						o.request(t, name)
					}
				}
				o.stop()
				t.Logf("%d bytes in %d lines", len(log.String()), strings.Count(log.String(), "\n"))
				t.Logf("most often:\n%s", mostOften(log.String()))
				if n := len(log.String()); n > limit {
					t.Errorf("%d bytes were logged, want at most %d", n, limit)
				}
			})
		})
	}
}

// mostOften returns the lines of a log that come most often, without what differs from line to line.
func mostOften(log string) string {
	counts, sizes := map[string]int{}, map[string]int{}
	for line := range strings.Lines(log) {
		sort := regexp.MustCompile(`[0-9a-f-]{8,}|\d+`).ReplaceAllString(line, "#")
		counts[sort]++
		sizes[sort] += len(line)
	}
	sorts := slices.SortedFunc(maps.Keys(sizes), func(a, b string) int { return sizes[b] - sizes[a] })
	var text strings.Builder
	for _, sort := range sorts[:min(len(sorts), 12)] {
		fmt.Fprintf(&text, "%6d bytes, %4d times: %.300s\n", sizes[sort], counts[sort], sort)
	}
	return text.String()
}

type safeBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *safeBuffer) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(text)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

// logged is a controller of a tree in memory.
type logged struct {
	names  []types.NamespacedName
	config reconcilers.Config
	queue  workqueue.TypedRateLimitingInterface[reconcile.Request]
	done   chan struct{}
	stop   func()
	// requests counts by resource.
	requests map[string]int
}

func newLogged(t *testing.T, logger logr.Logger) *logged {
	t.Helper()
	o := &logged{done: make(chan struct{}), requests: map[string]int{}}
	expect := expectWidget()
	for i := range 2 {
		name := types.NamespacedName{Namespace: "default", Name: fmt.Sprint("shop-", i)}
		o.names = append(o.names, name)
		expect.GivenObjects = append(expect.GivenObjects, &resources.Widget{
			ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name, UID: types.UID(name.Name), Generation: 1},
			Spec:       resources.WidgetSpec{Fields: map[string]string{"image": "example.com/app:1"}},
		})
	}
	expect.StatusSubResourceTypes = append(expect.StatusSubResourceTypes, &appsv1.Deployment{})
	expect.WithReactors = []rtesting.ReactionFunc{refuseNamed("refused"), assignUID}
	o.config = expect.Config()
	o.config.APIReader = o.config.Client
	root := &widgetRoot{Reconciler: o.tree(), Config: o.config}

	kind := resources.GroupVersion.WithKind("Widget")
	c, err := controller.NewTypedUnmanaged("widget", controller.TypedOptions[reconcile.Request]{
		SkipNameValidation: new(true),
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](
			time.Nanosecond, time.Nanosecond),
		Reconciler: reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
			o.requests[request.Name]++
			result, err := root.Reconcile(ctx, request)
			if err == nil {
				o.done <- struct{}{}
			}
			return result, err
		}),
		// As the builder of controller-runtime does it.
		LogConstructor: func(in *reconcile.Request) logr.Logger {
			log := logger.WithValues("controller", "widget", "controllerGroup", kind.Group, "controllerKind", kind.Kind)
			if in != nil {
				log = log.WithValues(kind.Kind, klog.KRef(in.Namespace, in.Name), "namespace", in.Namespace, "name", in.Name)
			}
			return log
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ready := make(chan struct{})
	err = c.Watch(source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		o.queue = queue
		close(ready)
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- c.Start(ctx) }()
	o.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(o.stop)
	<-ready
	return o
}

// request waits until a resource has been reconciled without an error.
func (o *logged) request(t *testing.T, name types.NamespacedName) {
	t.Helper()
	o.queue.Add(reconcile.Request{NamespacedName: name})
	<-o.done // go test ends a binary that hangs, and names what waits
}

// change is what happens to a resource from outside: a rollout of its Deployment in each 2nd step, and another image in
// each 10th.
func (o *logged) change(t *testing.T, name types.NamespacedName, step int) {
	t.Helper()
	if step%10 == 9 {
		widget := &resources.Widget{}
		if err := o.config.Get(t.Context(), name, widget); err != nil {
			t.Fatal(err)
		}
		widget.Generation++
		widget.Spec.Fields["image"] = fmt.Sprint("example.com/app:", step)
		if err := o.config.Update(t.Context(), widget); err != nil {
			t.Fatal(err)
		}
	}
	if step%2 == 1 {
		deployment := &appsv1.Deployment{}
		if err := o.config.Get(t.Context(), name, deployment); err != nil {
			t.Fatal(err)
		}
		deployment.Status.ObservedGeneration++
		deployment.Status.Replicas = int32(step % 4)
		if err := o.config.Status().Update(t.Context(), deployment); err != nil {
			t.Fatal(err)
		}
	}
}

func (o *logged) tree() widgetNode {
	deployment := deploymentChild()
	deployment.ReflectChildStatusOnParent = func(
		ctx context.Context, w *resources.Widget, child *appsv1.Deployment, err error,
	) {
		switch {
		case err != nil:
			w.Status.MarkChildNotReady(ctx, "Failed", err.Error())
		case child.Status.Replicas < 3:
			w.Status.MarkChildNotReady(ctx, "Progressing", fmt.Sprintf("%d of 3 replicas are ready", child.Status.Replicas))
		default:
			w.Status.MarkChildReady(ctx)
		}
	}
	refused := configMapChild("refused")
	refused.ReflectChildStatusOnParent = func(_ context.Context, w *resources.Widget, _ *corev1.ConfigMap, err error) {
		if err != nil {
			w.Status.AddField("refused", err.Error())
		}
	}
	return &widgetFinalizer{
		Finalizer: ours,
		Reconciler: widgetSequence{
			configMapChild("a"),
			configMapChild("b"),
			deployment,
			refused,
			&reconcilers.TryCatch[*resources.Widget]{
				Try: &widgetSync{Name: "Directory", Sync: func(context.Context, *resources.Widget) error {
					return errors.New("the directory does not answer")
				}},
				Catch: func(context.Context, *resources.Widget, reconcilers.Result, error) (reconcilers.Result, error) {
					return nothing, nil
				},
			},
			&widgetSync{Name: "Registration", Sync: func(_ context.Context, w *resources.Widget) error {
				w.Status.AddField("image", w.Spec.Fields["image"])
				if o.requests[w.Name]%20 == 19 {
					return errBoom
				}
				return nil
			}},
		},
	}
}

// refuseNamed is an API server that refuses to create objects whose name has that suffix.
func refuseNamed(suffix string) rtesting.ReactionFunc {
	return func(action rtesting.Action) (bool, runtime.Object, error) {
		create, ok := action.(rtesting.CreateAction)
		if !ok || action.GetVerb() != "create" || action.GetSubresource() != "" {
			return false, nil, nil
		}
		obj, ok := create.GetObject().(client.Object)
		if !ok || !strings.HasSuffix(obj.GetName(), suffix) {
			return false, nil, nil
		}
		invalid := field.Invalid(field.NewPath("data"), "many", "must have at most 10 entries")
		return true, nil, apierrs.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, obj.GetName(), field.ErrorList{invalid})
	}
}
