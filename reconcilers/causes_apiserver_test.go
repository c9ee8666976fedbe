package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// woken is an observer that keeps what woke the requests, one text each.
type woken struct {
	told
	mu sync.Mutex
	// causes are those since the last one that was waited for, and before has all until then.
	causes, before []string
}

func (o *woken) Note(_ context.Context, _ *reconcilers.Node, fact any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if fact, ok := fact.(reconcilers.Woken); ok {
		for _, cause := range fact.Causes {
			o.causes = append(o.causes, fmt.Sprintf("%s %s", cause.Kind, cause.Object))
		}
	}
}

// wants waits until one of some causes is told, and forgets those so far.
func (o *woken) wants(t *testing.T, causes ...string) {
	t.Helper()
	eventually(t, fmt.Sprintf("no request has a cause of %q", causes), func(context.Context) error {
		o.mu.Lock()
		defer o.mu.Unlock()
		if !slices.ContainsFunc(causes, func(cause string) bool { return slices.Contains(o.causes, cause) }) {
			return fmt.Errorf("they are %q", o.causes)
		}
		o.before, o.causes = append(o.before, o.causes...), nil
		return nil
	})
}

// neverHad fails the test if a cause was told.
func (o *woken) neverHad(t *testing.T, cause string) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if all := slices.Concat(o.before, o.causes); slices.Contains(all, cause) {
		t.Errorf("the causes are %q, want none of them to be %q", all, cause)
	}
}

// A request that finds the resource gone may have begun before the event of the deletion came. The event is the cause
// of the request after it.
func TestObserversAreToldOfADeletionDuringARequest(t *testing.T) {
	observer, queued := &woken{}, &requestLog{}
	var during atomic.Pointer[func()]
	op, _ := startOperator(t, func(config reconcilers.Config) *widgetRoot {
		own := []builder.ForOption{builder.WithPredicates(predicate.GenerationChangedPredicate{})}
		return &widgetRoot{
			Config: config.WithObserver(observer), SetupForOptions: own, Reconciler: widgetSequence{},
			Setup: queued.record,
			BeforeReconcile: func(context.Context, reconcilers.Request) (context.Context, reconcilers.Result, error) {
				if f := during.Swap(nil); f != nil {
					(*f)()
				}
				return nil, reconcilers.Result{}, nil
			},
		}
	})
	c := live(t)
	widget := op.createWidget(t, c)
	name := "Widget " + op.namespace + "/widget"
	observer.wants(t, "Created "+name, "Start "+name)
	removed := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: op.namespace, Name: widget.Name}}
	remove := func() {
		before := len(queued.get())
		if err := c.Delete(t.Context(), removed); err != nil {
			t.Error(err)
		}
		eventually(t, "there is no event of the deletion", func(context.Context) error {
			if len(queued.get()) == before {
				return errors.New("nothing was added to the queue")
			}
			return nil
		})
	}
	during.Store(&remove)
	body := []byte(`{"spec":{"fields":{"touched":"true"}}}`)
	if err := c.Patch(t.Context(), widget, client.RawPatch(types.MergePatchType, body)); err != nil {
		t.Fatal(err)
	}
	observer.wants(t, "Deleted "+name)
}

// A request says what woke it: an event of the resource or of a child, an error or a delay of the request before.
func TestObserversAreToldWhatWokeARequest(t *testing.T) {
	observer := &woken{}
	var next atomic.Pointer[func() (reconcilers.Result, error)]
	op, _ := startOperator(t, func(config reconcilers.Config) *widgetRoot {
		// The events of the status are filtered, so they are no causes.
		own := []builder.ForOption{builder.WithPredicates(predicate.GenerationChangedPredicate{})}
		root := &widgetRoot{Config: config.WithObserver(observer), SetupForOptions: own, KeepResultAfterStatusUpdate: true}
		root.Reconciler = widgetSequence{
			configMapChild("a"),
			&widgetSync{SyncWithResult: func(context.Context, *resources.Widget) (reconcilers.Result, error) {
				if outcome := next.Load(); outcome != nil {
					return (*outcome)()
				}
				return reconcilers.Result{}, nil
			}},
		}
		return root
	})
	c := live(t)
	widget := op.createWidget(t, c)
	name, child := "Widget "+op.namespace+"/widget", "ConfigMap "+op.namespace+"/widget-a"
	observer.wants(t, "Created "+name, "Start "+name)

	configMap := &corev1.ConfigMap{}
	eventually(t, "there is no child", func(ctx context.Context) error {
		return c.Get(ctx, client.ObjectKey{Namespace: op.namespace, Name: "widget-a"}, configMap)
	})
	configMap.Data["image"] = "other"
	if err := c.Update(t.Context(), configMap); err != nil {
		t.Fatal(err)
	}
	observer.wants(t, "Updated "+child)
	observer.neverHad(t, "Updated "+name)
	if err := c.Delete(t.Context(), configMap); err != nil {
		t.Fatal(err)
	}
	observer.wants(t, "Deleted "+child)

	touch := func(outcome func() (reconcilers.Result, error)) {
		t.Helper()
		next.Store(&outcome)
		body := fmt.Sprintf(`{"spec":{"fields":{"touched":"%d"}}}`, time.Now().UnixNano())
		if err := c.Patch(t.Context(), widget, client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
			t.Fatal(err)
		}
	}
	touch(func() (reconcilers.Result, error) { return reconcilers.Result{}, errors.New("boom") })
	observer.wants(t, "Retry ")
	touch(func() (reconcilers.Result, error) {
		return reconcilers.Result{RequeueAfter: 10 * time.Millisecond}, nil
	})
	observer.wants(t, "Delay ")
	next.Store(nil)
	if err := c.Delete(t.Context(), widget); err != nil {
		t.Fatal(err)
	}
	observer.wants(t, "Deleted "+name)
}
