package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/tracker"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// countingTracker counts how often it is asked who observes an object.
type countingTracker struct {
	tracker.Tracker
	mu    sync.Mutex
	asked map[string]int
}

func (c *countingTracker) GetObservers(obj client.Object) ([]types.NamespacedName, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked[obj.GetName()]++
	return c.Tracker.GetObservers(obj)
}

func (c *countingTracker) count(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked[name]
}

// A type is watched once, however many nodes have children of it, track objects of it, or ask for it by hand.
func TestATypeIsWatchedOnce(t *testing.T) {
	counting := &countingTracker{asked: map[string]int{}}
	op, _ := startOperator(t, func(config reconcilers.Config) *widgetRoot {
		counting.Tracker = config.Tracker
		config.Tracker = counting
		tracked := guardedShortForm()(&trace{}).(*configMapNode)
		tracked.Name = "tracked"
		return &widgetRoot{
			Config:     config,
			Reconciler: widgetSequence{configMapChild("a"), configMapChild("b"), widgetSequence{configMapChild("c"), tracked}},
		}
	})
	c := live(t)
	// The second is there to know when the first has been dealt with.
	for _, name := range []string{"first", "second"} {
		obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: op.namespace, Name: name}}
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
		eventually(t, "no event", func(context.Context) error {
			if counting.count(name) == 0 {
				return errors.New("the tracker is not asked")
			}
			return nil
		})
	}
	if n := counting.count("first"); n != 1 {
		t.Errorf("the tracker is asked %d times for one event, want once", n)
	}
}

// A resource is woken when what it tracks comes into being, changes and goes.
func TestTrackedObjectsWakeTheResource(t *testing.T) {
	op, _ := startOperator(t, func(config reconcilers.Config) *widgetRoot {
		return &widgetRoot{
			Config: config,
			Reconciler: &widgetSync{
				Setup: func(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
					bldr.Watches(&corev1.ConfigMap{}, reconcilers.EnqueueTracked(ctx))
					return nil
				},
				Sync: func(ctx context.Context, w *resources.Widget) error {
					settings := &corev1.ConfigMap{}
					key := types.NamespacedName{Namespace: w.Namespace, Name: "settings"}
					err := reconcilers.RetrieveConfigOrDie(ctx).TrackAndGet(ctx, key, settings)
					w.Status.AddField("color", settings.Data["color"])
					return client.IgnoreNotFound(err)
				},
			},
		}
	})
	c := live(t)
	w := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: op.namespace, Name: "widget"}}
	if err := c.Create(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	reads := func(color string) {
		t.Helper()
		eventually(t, "the settings are not followed", func(ctx context.Context) error {
			if err := c.Get(ctx, client.ObjectKeyFromObject(w), w); err != nil {
				return err
			}
			if read, ok := w.Status.Fields["color"]; !ok || read != color {
				return fmt.Errorf("the color is %q, expected %q", read, color)
			}
			return nil
		})
	}
	reads("")
	settings := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: op.namespace, Name: "settings"},
		Data:       map[string]string{"color": "red"},
	}
	if err := c.Create(t.Context(), settings); err != nil {
		t.Fatal(err)
	}
	reads("red")
	settings.Data["color"] = "blue"
	if err := c.Update(t.Context(), settings); err != nil {
		t.Fatal(err)
	}
	reads("blue")
	if err := c.Delete(t.Context(), settings); err != nil {
		t.Fatal(err)
	}
	reads("")
}
