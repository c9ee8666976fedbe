package reconcilers_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
	rtime "github.com/espalier-dev/espalier/time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// aggregateWorld is an aggregate over a lagging client, and the cluster behind it. Reads past the cache are calls too.
type aggregateWorld struct {
	*testing.T
	*lagging
	root *widgetAggregate
	now  time.Time
	// color is what is desired; none if empty.
	color string
}

func newAggregateWorld(t *testing.T, change ...func(*widgetAggregate)) *aggregateWorld {
	calls := &trace{}
	created := 0
	// The server adds a field to what it is given, and another UID each time.
	serve := func(action rtesting.Action) (bool, runtime.Object, error) {
		update, ok := action.(rtesting.UpdateAction)
		if !ok || action.GetSubresource() != "" {
			return false, nil, nil
		}
		w, ok := update.GetObject().(*resources.Widget)
		if !ok {
			return false, nil, nil
		}
		if action.GetVerb() == "create" {
			created++
			w.UID = types.UID(fmt.Sprint("uid-", created))
			w.CreationTimestamp = metav1.NewTime(time.UnixMilli(1000))
		}
		w.Spec.Fields["default"] = "added"
		return false, nil, nil
	}
	expect := expectWidget()
	expect.WithReactors = []rtesting.ReactionFunc{calls.observe, serve}
	config := expect.Config()
	cluster := &aggregateWorld{T: t, lagging: &lagging{Client: config.Client, calls: calls}, now: requestTime, color: "blue"}
	config.Client, config.APIReader = cluster.lagging, cluster.lagging.Client
	cluster.root = &widgetAggregate{
		Request: widgetRequest,
		DesiredResource: func(_ context.Context, w *resources.Widget) (*resources.Widget, error) {
			if cluster.color == "" {
				return nil, nil
			}
			desired := &resources.Widget{}
			desired.Namespace, desired.Name = w.Namespace, w.Name
			desired.Spec.Fields = map[string]string{"color": cluster.color}
			return desired, nil
		},
		MergeBeforeUpdate: mergeWidget,
		Config:            config,
	}
	for _, c := range change {
		c(cluster.root)
	}
	cluster.catchUp(t)
	calls.reads = true
	return cluster
}

func (w *aggregateWorld) catchUpWith() {
	w.Helper()
	w.calls.reads = false
	w.catchUp(w.T)
	w.calls.reads = true
}

// reconcile reconciles and checks the calls that it makes.
func (w *aggregateWorld) reconcile(step string, expected ...string) {
	w.Helper()
	w.calls.calls = nil
	if _, err := w.root.Reconcile(rtime.StashNow(w.Context(), w.now), widgetRequest); err != nil {
		w.Errorf("%s: %v", step, err)
	}
	if !slices.Equal(w.calls.calls, expected) {
		w.Errorf("%s: called %v, expected %v", step, w.calls.calls, expected)
	}
}

// live is the object as it really is.
func (w *aggregateWorld) live() *resources.Widget {
	w.Helper()
	live := &resources.Widget{}
	if err := w.lagging.Client.Get(w.Context(), widgetKey, live); err != nil {
		w.Fatal(err)
	}
	return live
}

// A cache that does not show the object that was made must not have it made again, nor updated from nothing.
func TestAggregateIsNotMadeTwice(t *testing.T) {
	cluster := newAggregateWorld(t)
	cluster.reconcile("first", "create Widget")
	cluster.reconcile("the cache lags", "get Widget")
	cluster.color = "green"
	cluster.reconcile("desired otherwise, and the cache lags", "get Widget", "update Widget")
	cluster.reconcile("the cache still lags", "get Widget")
	cluster.catchUpWith()
	cluster.reconcile("the cache caught up")
	cluster.reconcile("again")
	if live := cluster.live(); live.Spec.Fields["color"] != "green" {
		t.Errorf("the fields are %v, want the color green", live.Spec.Fields)
	}
}

func TestAggregateIsNotMadeTwiceWithoutAWayToAsk(t *testing.T) {
	cluster := newAggregateWorld(t, func(root *widgetAggregate) { root.Config.APIReader = nil })
	cluster.reconcile("first", "create Widget")
	cluster.reconcile("the cache lags")
	cluster.catchUpWith()
	cluster.reconcile("the cache caught up")
}

// The API server must not be asked once more for each request of an object that is not wanted, or gone.
func TestAggregateThatIsAbsentCostsNothing(t *testing.T) {
	cluster := newAggregateWorld(t)
	cluster.color = ""
	for range 3 {
		cluster.reconcile("not desired")
	}
}

func TestStaleCacheCausesNoSecondDeleteOfAnAggregate(t *testing.T) {
	cluster := newAggregateWorld(t)
	cluster.reconcile("first", "create Widget")
	cluster.catchUpWith()
	cluster.color = ""
	cluster.reconcile("not desired", "delete Widget")
	cluster.reconcile("the cache lags")
	cluster.color = "green"
	cluster.reconcile("desired again, and the cache lags")
	cluster.catchUpWith()
	cluster.reconcile("the cache caught up", "create Widget")
	cluster.catchUpWith()
	cluster.reconcile("again")
}

// Invariant L1: what the server added when the object was made is known, although there was no object to know it of.
func TestL1AdditionsToAnAggregateOutliveItsCreation(t *testing.T) {
	cluster := newAggregateWorld(t)
	cluster.reconcile("first", "create Widget")
	cluster.catchUpWith()
	for range 3 {
		cluster.reconcile("steady")
	}
	live := cluster.live()
	live.Annotations = map[string]string{"touched": "true"}
	live.Labels = nil
	cluster.calls.reads = false
	if err := cluster.lagging.Client.Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	cluster.catchUpWith()
	cluster.reconcile("touched by others")
}

// The finalizer that a node puts on the object changes its version, which must not make the update of the same request late.
func TestAggregateIsUpdatedAfterAPatchOfOurs(t *testing.T) {
	cluster := newAggregateWorld(t, func(root *widgetAggregate) {
		root.Reconciler = &widgetSync{Sync: func(ctx context.Context, w *resources.Widget) error {
			if w.UID == "" {
				return nil
			}
			return reconcilers.AddFinalizer(ctx, w, ours)
		}}
	})
	cluster.reconcile("first", "create Widget")
	cluster.catchUpWith()
	cluster.color = "green"
	cluster.reconcile("desired otherwise", "patch Widget", "update Widget")
	cluster.reconcile("the cache lags")
	cluster.catchUpWith()
	cluster.reconcile("the cache caught up")
	if live := cluster.live(); live.Spec.Fields["color"] != "green" || !slices.Equal(live.Finalizers, []string{ours}) {
		t.Errorf("the widget is %+v, want it green and with the finalizer %s alone", live, ours)
	}
}

// What the tree is given belongs to the tree, not to the cache, and not to what is compared.
func TestAggregateDoesNotChangeTheCache(t *testing.T) {
	cluster := newAggregateWorld(t, func(root *widgetAggregate) {
		root.Reconciler = &widgetSync{Sync: func(_ context.Context, w *resources.Widget) error {
			if w.Spec.Fields != nil {
				w.Spec.Fields["color"] = "changed in memory"
			}
			return nil
		}}
	})
	cluster.reconcile("first", "create Widget")
	cluster.catchUpWith()
	cluster.reconcile("again")
	for _, seen := range cluster.seen[reflect.TypeFor[*resources.Widget]()] {
		if color := seen.(*resources.Widget).Spec.Fields["color"]; color != "blue" {
			t.Errorf("the cache shows %q, want \"blue\"", color)
		}
	}
}

// Tracks of an object that does not exist stay: they are what has it made.
func TestAggregateKeepsItsTracksWhileItIsAbsent(t *testing.T) {
	input := types.NamespacedName{Namespace: widgetKey.Namespace, Name: "input"}
	halts := false
	cluster := newAggregateWorld(t, func(root *widgetAggregate) {
		root.Reconciler = &widgetSync{Sync: func(ctx context.Context, _ *resources.Widget) error {
			if halts {
				return reconcilers.ErrHaltSubReconcilers
			}
			err := reconcilers.RetrieveConfigOrDie(ctx).TrackAndGet(ctx, input, &resources.Widget{})
			return client.IgnoreNotFound(err)
		}}
		root.Config = root.Config.WithTracker()
	})
	cluster.color = ""
	observers := func() []types.NamespacedName {
		t.Helper()
		in := &resources.Widget{}
		in.Namespace, in.Name = input.Namespace, input.Name
		names, err := cluster.root.Config.Tracker.GetObservers(in)
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	for range 3 {
		cluster.reconcile("not desired")
		if got := observers(); !slices.Equal(got, []types.NamespacedName{widgetKey}) {
			t.Fatalf("observers are %v, want %v", got, widgetKey)
		}
	}
	// A halt keeps nodes from tracking what they want to.
	halts = true
	cluster.reconcile("halts")
	if got := observers(); len(got) != 1 {
		t.Errorf("after a halt, the observers are %v, want one", got)
	}
}

// What is desired may be made from what is there, and then repeats what others say. Invariant L1: that is no reason to write. To want
// it gone is one.
func TestAggregateThatRepeatsWhatOthersSay(t *testing.T) {
	drop := map[string]bool{}
	cluster := newAggregateWorld(t, func(root *widgetAggregate) {
		root.DesiredResource = func(_ context.Context, w *resources.Widget) (*resources.Widget, error) {
			w.Spec.Fields = map[string]string{"color": "blue"}
			if drop["labels"] {
				w.Labels = nil
			}
			if drop["annotations"] {
				w.Annotations = nil
			}
			if drop["status"] {
				w.Status = resources.WidgetStatus{}
			}
			return w, nil
		}
		root.MergeBeforeUpdate = func(current, desired *resources.Widget) {
			current.Labels, current.Annotations = desired.Labels, desired.Annotations
			current.Spec, current.Status = desired.Spec, desired.Status
		}
	})
	touch := func(change func(*resources.Widget)) {
		t.Helper()
		cluster.calls.reads = false
		live := cluster.live()
		change(live)
		// The status is a resource of its own here.
		status := live.DeepCopy()
		if err := cluster.lagging.Client.Update(t.Context(), live); err != nil {
			t.Fatal(err)
		}
		status.ResourceVersion = live.ResourceVersion
		if err := cluster.lagging.Client.Status().Update(t.Context(), status); err != nil {
			t.Fatal(err)
		}
		cluster.catchUpWith()
	}
	cluster.reconcile("first", "create Widget")
	cluster.catchUpWith()
	// What was made from nothing is now made from what is there.
	cluster.reconcile("there", "update Widget")
	cluster.catchUpWith()
	cluster.reconcile("steady")
	for i := range 3 {
		touch(func(w *resources.Widget) {
			w.Labels = map[string]string{"count": fmt.Sprint(i)}
			w.Annotations = map[string]string{"count": fmt.Sprint(i)}
			w.Status.AddField("count", fmt.Sprint(i))
		})
		if i == 0 {
			// From now on there is something to repeat.
			cluster.reconcile("touched for the first time", "update Widget")
			cluster.catchUpWith()
		}
		cluster.reconcile("touched by others")
	}
	for _, what := range []string{"labels", "annotations", "status"} {
		drop[what] = true
		cluster.reconcile(what+" dropped", "update Widget")
		drop[what] = false
		cluster.catchUpWith()
		touch(func(w *resources.Widget) {
			w.Labels = map[string]string{"count": "again"}
			w.Annotations = map[string]string{"count": "again"}
			w.Status.AddField("count", "again")
		})
		cluster.reconcile("whole again", "update Widget")
		cluster.catchUpWith()
	}
}
