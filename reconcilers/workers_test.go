package reconcilers_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/stash"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
)

// everyNode is a tree in which each kind of node has its place and does what can be seen: it leaves a trail in the status.
func everyNode() widgetNode {
	letter := stash.New[string]("example.com/letter")
	trail := func(word string) widgetNode {
		return &widgetSync{Sync: func(ctx context.Context, w *resources.Widget) error {
			w.Status.AddField(word, w.Name+letter.RetrieveOrEmpty(ctx))
			return nil
		}}
	}
	transient := &failsOnce{}
	return widgetSequence{
		&reconcilers.ForEach[*resources.Widget, string]{
			Items: func(context.Context, *resources.Widget) ([]string, error) { return []string{"a", "b"}, nil },
			Reconciler: &widgetSync{Sync: func(ctx context.Context, w *resources.Widget) error {
				w.Status.AddField("item-"+reconcilers.CursorStasher[string]().RetrieveOrDie(ctx).Item, w.Name)
				return nil
			}},
		},
		&reconcilers.While[*resources.Widget]{
			Condition: func(ctx context.Context, _ *resources.Widget) bool { return reconcilers.RetrieveIteration(ctx) < 3 },
			Reconciler: &widgetSync{Sync: func(ctx context.Context, w *resources.Widget) error {
				w.Status.AddField(fmt.Sprint("turn-", reconcilers.RetrieveIteration(ctx)), w.Name)
				return nil
			}},
		},
		&reconcilers.Advice[*resources.Widget]{
			Before: func(ctx context.Context, w *resources.Widget) (context.Context, reconcilers.Result, error) {
				letter.Store(ctx, strings.ToUpper(w.Name))
				return nil, reconcilers.Result{}, nil
			},
			Reconciler: reconcilers.Always[*resources.Widget]{trail("advised"), trail("always")},
		},
		&widgetIfThen{
			If:   func(_ context.Context, w *resources.Widget) bool { return w.DeletionTimestamp == nil },
			Then: trail("then"),
		},
		&reconcilers.TryCatch[*resources.Widget]{
			Try: &widgetSync{Sync: func(context.Context, *resources.Widget) error { return errBoom }},
			Catch: func(_ context.Context, w *resources.Widget, result reconcilers.Result, err error) (reconcilers.Result, error) {
				w.Status.AddField("caught", fmt.Sprint(w.Name, " ", err))
				return result, nil
			},
			Finally: trail("finally"),
		},
		&reconcilers.OverrideSetup[*resources.Widget]{Reconciler: trail("without set-up")},
		&reconcilers.WithConfig[*resources.Widget]{
			Config: func(_ context.Context, config reconcilers.Config) (reconcilers.Config, error) {
				config.Client = client.WithFieldOwner(config.Client, "other")
				return config, nil
			},
			Reconciler: trail("with config"),
		},
		&reconcilers.CastResource[*resources.Widget, *appsv1.Deployment]{
			Reconciler: &reconcilers.SyncReconciler[*appsv1.Deployment]{Sync: func(_ context.Context, cast *appsv1.Deployment) error {
				cast.Annotations = map[string]string{"cast": cast.Name}
				return nil
			}},
		},
		&reconcilers.SuppressTransientErrors[*resources.Widget, *resources.WidgetList]{
			Reconciler: &widgetSync{Sync: transient.sync},
		},
		&widgetFinalizer{
			Finalizer: ours,
			Reconciler: widgetSequence{
				configMapChild("single"),
				fieldsSet(func(node *configMapSet) {
					node.OurChild = func(_ *resources.Widget, child *corev1.ConfigMap) bool { return child.Labels["part"] != "single" }
				}),
				&widgetSync{Sync: func(ctx context.Context, w *resources.Widget) error {
					config := reconcilers.RetrieveConfigOrDie(ctx)
					key := types.NamespacedName{Namespace: w.Namespace, Name: "shared"}
					return client.IgnoreNotFound(config.TrackAndGet(ctx, key, &corev1.ConfigMap{}))
				}},
			},
		},
		&widgetSync{Sync: func(ctx context.Context, w *resources.Widget) error {
			w.Status.MarkChildReady(ctx)
			return nil
		}},
	}
}

// failsOnce fails the first time that it sees a resource.
type failsOnce struct {
	mu   sync.Mutex
	seen map[types.UID]bool
}

func (f *failsOnce) sync(_ context.Context, w *resources.Widget) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.seen[w.UID] {
		return nil
	}
	if f.seen == nil {
		f.seen = map[types.UID]bool{}
	}
	f.seen[w.UID] = true
	return errBoom
}

// Every node is safe with as many workers as there are, and none takes what belongs to another's resource.
func TestSixteenWorkersOverEveryNode(t *testing.T) {
	const widgets = 48
	c := live(t)
	// A panic of a node must not pass for an error that is retried.
	options := ctrl.Options{Controller: ctrlconfig.Controller{MaxConcurrentReconciles: 16, RecoverPanic: new(false)}}
	op, _ := startOperatorIn(t, plane.Namespace(t), options, treeOf(everyNode()))

	var creators sync.WaitGroup
	for worker := range 8 {
		creators.Go(func() {
			for i := worker; i < widgets; i += 8 {
				w := &resources.Widget{
					ObjectMeta: metav1.ObjectMeta{Namespace: op.namespace, Name: fmt.Sprint("w", i)},
					Spec:       resources.WidgetSpec{Fields: map[string]string{"image": fmt.Sprint("i", i), "kind": "k"}},
				}
				if err := c.Create(t.Context(), w); err != nil {
					t.Error(err)
				}
			}
		})
	}
	creators.Wait()

	list := &resources.WidgetList{}
	eventually(t, "not all are ready", func(ctx context.Context) error {
		if err := c.List(ctx, list, client.InNamespace(op.namespace)); err != nil {
			return err
		}
		for _, w := range list.Items {
			if ready := w.Status.GetCondition(resources.WidgetReady); !apis.ConditionIsTrue(ready) || w.Status.Fields["parts"] != "image kind" {
				return fmt.Errorf("%s is %v, with %v", w.Name, ready, w.Status.Fields)
			}
		}
		return nil
	})
	for _, w := range list.Items {
		checkTrail(t, &w)
	}

	if err := c.DeleteAllOf(t.Context(), &resources.Widget{}, client.InNamespace(op.namespace)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "not all are gone", func(ctx context.Context) error {
		if err := c.List(ctx, list, client.InNamespace(op.namespace)); err != nil {
			return err
		}
		if n := meta.LenList(list); n > 0 {
			return fmt.Errorf("%d are there", n)
		}
		return nil
	})
}

// checkTrail checks that what the nodes left on a widget is about that widget.
func checkTrail(t *testing.T, w *resources.Widget) {
	t.Helper()
	upper := w.Name + strings.ToUpper(w.Name)
	for field, expected := range map[string]string{
		"item-a": w.Name, "item-b": w.Name, "turn-0": w.Name, "turn-1": w.Name, "turn-2": w.Name, "turn-3": "",
		"advised": upper, "always": upper, "then": upper, "finally": upper, "without set-up": upper, "with config": upper,
		"caught": w.Name + " boom", "single": w.Name + "-single",
	} {
		if actual := w.Status.Fields[field]; actual != expected {
			t.Errorf("%s has %q as %s, expected %q", w.Name, actual, field, expected)
		}
	}
}
