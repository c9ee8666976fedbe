package reconcilers_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
	"github.com/espalier-dev/espalier/tracker"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// A root keeps nothing of a resource that is gone: neither itself, nor its nodes, nor the tracker.
func TestResourceReconcilerForgets(t *testing.T) {
	owners := 10_000
	if testing.Short() {
		owners /= 10
	}
	config := expectWidget().Config()
	all := &volatileClient{Client: config.Client, widgets: map[types.NamespacedName]*resources.Widget{}}
	config.Client = all
	config.Tracker = tracker.New(widgetScheme, time.Hour)
	root := &widgetRoot{SkipStatusUpdate: true, Reconciler: rememberingTree(), Config: config}
	reconcileAll := func() {
		for i := range owners {
			request := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: fmt.Sprint("owner-", i)}}
			if _, err := root.Reconcile(t.Context(), request); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range owners {
		owner := &resources.Widget{}
		owner.Namespace, owner.Name, owner.UID = "default", fmt.Sprint("owner-", i), types.UID(fmt.Sprint("uid-", i))
		all.widgets[client.ObjectKeyFromObject(owner)] = owner
	}
	reconcileAll()
	tracked := config.Tracker.(tracker.Sizer)
	if root.Remembered() != owners || root.RememberedWrites() < 3*owners || root.RememberedCounters() != owners || tracked.Size().Watchers != owners {
		t.Errorf("%d resources, %d children, %d counters and %v are remembered, want those of %d resources",
			root.Remembered(), root.RememberedWrites(), root.RememberedCounters(), tracked.Size(), owners)
	}
	clear(all.widgets)
	reconcileAll()
	if n := root.Remembered(); n != 0 {
		t.Errorf("%d resources are remembered, want none, for none is there", n)
	}
	if size := tracked.Size(); size != (tracker.Size{}) {
		t.Errorf("the tracker remembers %+v, want nothing", size)
	}
}

// rememberingTree has each node that remembers something from request to request.
func rememberingTree() widgetNode {
	set := fieldsSet()
	set.DesiredChildren = func(_ context.Context, w *resources.Widget) ([]*corev1.ConfigMap, error) {
		desired := []*corev1.ConfigMap{part("a"), part("b")}
		for _, child := range desired {
			child.Name, child.OwnerReferences = w.Name+"-"+child.Name, nil
		}
		return desired, nil
	}
	set.LabelChildren = true
	child := reflectingChild(&trace{})
	child.LabelChildren = true
	return widgetSequence{
		child,
		set,
		&widgetSync{Sync: func(ctx context.Context, w *resources.Widget) error {
			config := reconcilers.RetrieveConfigOrDie(ctx)
			key := types.NamespacedName{Namespace: w.Namespace, Name: "shared-" + w.Name}
			return client.IgnoreNotFound(config.TrackAndGet(ctx, key, &corev1.Secret{}))
		}},
		&reconcilers.SuppressTransientErrors[*resources.Widget, *resources.WidgetList]{
			Reconciler: &widgetSync{Sync: func(context.Context, *resources.Widget) error { return errBoom }},
		},
	}
}

// volatileClient is a client of a cluster whose widgets come and go, and that takes every write.
type volatileClient struct {
	client.Client
	widgets map[types.NamespacedName]*resources.Widget
}

func (c *volatileClient) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	if _, ok := obj.(*resources.Widget); !ok {
		return apierrs.NewNotFound(schema.GroupResource{}, key.Name)
	}
	found, ok := c.widgets[key]
	if !ok {
		return apierrs.NewNotFound(schema.GroupResource{}, key.Name)
	}
	*obj.(*resources.Widget) = *found.DeepCopy()
	return nil
}

func (c *volatileClient) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return nil
}

func (c *volatileClient) Create(_ context.Context, obj client.Object, _ ...client.CreateOption) error {
	obj.SetUID(types.UID(obj.GetName()))
	obj.SetResourceVersion("1")
	return nil
}

// Nor does it keep what became of the children that a resource had once, however long the resource lives.
func TestResourceReconcilerForgetsChildren(t *testing.T) {
	expect := expectWidget(steadyWidget)
	created := 0
	expect.WithReactors = []rtesting.ReactionFunc{func(action rtesting.Action) (bool, runtime.Object, error) {
		if create, ok := action.(rtesting.CreateAction); ok && action.GetVerb() == "create" {
			created++
			child := create.GetObject().(client.Object)
			child.SetUID(types.UID(fmt.Sprint("child-", created)))
			child.SetCreationTimestamp(metav1.NewTime(requestTime))
		}
		return false, nil, nil
	}}
	config := expect.Config()
	config.APIReader = config.Client
	root := &widgetRoot{SkipStatusUpdate: true, Reconciler: reflectingChild(&trace{}), Config: config}
	const lives = 1000
	for range lives {
		if _, err := root.Reconcile(t.Context(), widgetRequest); err != nil {
			t.Fatal(err)
		}
		if err := config.Client.Delete(t.Context(), configMap.Object()); err != nil {
			t.Fatal(err)
		}
	}
	if created != lives {
		t.Fatalf("%d children were created, want %d", created, lives)
	}
	if n := root.RememberedWrites(); n == 0 || n > lives/5 {
		t.Errorf("of %d children one is there, and %d are remembered, want 1 to %d", lives, n, lives/5)
	}
}
