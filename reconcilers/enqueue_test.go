package reconcilers_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/tracker"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// queue remembers the requests that were added to it.
type queue struct {
	workqueue.TypedRateLimitingInterface[reconcilers.Request]
	added []string
}

func (q *queue) Add(request reconcilers.Request) { q.added = append(q.added, request.String()) }

// take returns what was added since the last call, in order.
func (q *queue) take() []string {
	added := q.added
	q.added = nil
	slices.Sort(added)
	return added
}

func TestEnqueueTracked(t *testing.T) {
	config := expectWidget().Config()
	config.Tracker = tracker.New(widgetScheme, 0)
	watcher := func(name string) *resources.Widget {
		w := widget.Object()
		w.Name = name
		return w
	}
	track := func(obj client.Object, by client.Object) {
		t.Helper()
		if err := config.Tracker.TrackObject(obj, by); err != nil {
			t.Fatal(err)
		}
	}
	one, two := configMap.Object(), configMap.With(func(c *corev1.ConfigMap) { c.Name = "two" }).Object()
	track(one, watcher("a"))
	track(one, watcher("b"))
	track(two, watcher("b"))
	// Another controller that shares the tracker is not ours to wake.
	track(one, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pod"}})
	selected := tracker.Reference{Kind: "ConfigMap", Namespace: "default", Selector: labels.SelectorFromSet(labels.Set{"selected": "yes"})}
	if err := config.Tracker.TrackReference(selected, watcher("c")); err != nil {
		t.Fatal(err)
	}
	three := configMap.With(func(c *corev1.ConfigMap) { c.Name, c.Labels = "three", map[string]string{"selected": "yes"} }).Object()

	handler := reconcilers.EnqueueTracked(testContext(t, config))
	q := &queue{}
	expect := func(when string, expected ...string) {
		t.Helper()
		if added := q.take(); !slices.Equal(added, expected) {
			t.Errorf("%s: added %v, expected %v", when, added, expected)
		}
	}
	ctx := t.Context()
	handler.Create(ctx, event.CreateEvent{Object: one}, q)
	expect("create", "default/a", "default/b")
	handler.Delete(ctx, event.DeleteEvent{Object: two}, q)
	expect("delete", "default/b")
	handler.Generic(ctx, event.GenericEvent{Object: three}, q)
	expect("generic", "default/c")
	// Who watched the old object, and who watches the new one.
	unselected := three.DeepCopy()
	unselected.Labels = nil
	handler.Update(ctx, event.UpdateEvent{ObjectOld: three, ObjectNew: unselected}, q)
	expect("update, not selected any more", "default/c")
	handler.Update(ctx, event.UpdateEvent{ObjectOld: unselected, ObjectNew: three}, q)
	expect("update, selected now", "default/c")
	handler.Create(ctx, event.CreateEvent{Object: configMap.With(func(c *corev1.ConfigMap) { c.Name = "unknown" }).Object()}, q)
	expect("no observers")
}

// blindTracker cannot tell who observes.
type blindTracker struct {
	tracker.Tracker
	err error
}

func (b blindTracker) GetObservers(client.Object) ([]types.NamespacedName, error) {
	return []types.NamespacedName{widgetKey}, b.err
}

func TestEnqueueTrackedErrors(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		logs string
	}{
		"error": {err: errBoom, logs: `"msg"="unable to get tracked requests" "error"="boom"`},
		"quiet": {err: errors.Join(errBoom, reconcilers.ErrQuiet)},
	} {
		t.Run(name, func(t *testing.T) {
			var lines []string
			logger := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
			config := expectWidget().Config()
			config.Tracker = blindTracker{err: test.err}
			handler := reconcilers.EnqueueTracked(logr.NewContext(testContext(t, config), logger))
			q := &queue{}
			handler.Create(t.Context(), event.CreateEvent{Object: configMap.Object()}, q)
			if added := q.take(); len(added) != 0 {
				t.Errorf("%v was added, want nothing", added)
			}
			if log := strings.Join(lines, "\n"); (log == "") != (test.logs == "") || !strings.Contains(log, test.logs) {
				t.Errorf("logged %q, expected %q", log, test.logs)
			}
		})
	}
}

func TestEnqueueTrackedWithoutATracker(t *testing.T) {
	config := expectWidget().Config()
	config.Tracker = nil
	q := &queue{}
	reconcilers.EnqueueTracked(testContext(t, config)).Create(t.Context(), event.CreateEvent{Object: configMap.Object()}, q)
	if added := q.take(); len(added) != 0 {
		t.Errorf("%v was added, want nothing", added)
	}
}

func TestEnqueueTrackedNeedsAConfig(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("there is no panic without a config, want one")
		}
	}()
	reconcilers.EnqueueTracked(t.Context())
}
