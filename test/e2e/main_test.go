package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
	"github.com/espalier-dev/espalier/reconcilers"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

const (
	// variable has to be set for the tests to run, since few machines have the programs of "make cluster".
	variable = "ESPALIER_E2E"

	// nodes is how many nodes the cluster has.
	nodes = 2
)

var cluster = controlplanetest.Shared{Real: "a scheduler has to assign pods to nodes", Options: controlplane.Options{
	CRDs:              []*apiextensionsv1.CustomResourceDefinition{appCRD()},
	GarbageCollection: true,
	Jobs:              true,
	Workloads:         true,
	Scheduler:         true,
	Nodes:             nodes,
}}

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

// world is a namespace of the cluster, in which an operator may run.
type world struct {
	// Client is that of an administrator. It does not read from a cache.
	client.Client
	namespace string
	operator  demo.Operator
	// requests are those of the operator.
	requests *controlplane.Requests
}

// enter returns a namespace of the cluster. The test is skipped unless the variable is set.
func enter(t *testing.T) *world {
	t.Helper()
	if os.Getenv(variable) == "" {
		t.Skip("it needs a simulated cluster; run make e2e")
	}
	t.Parallel()
	c, err := client.New(cluster.Config(t), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return &world{Client: c, namespace: cluster.Namespace(t)}
}

// operate runs an operator of Apps, with these nodes, in a namespace of its own until the test ends.
func operate(t *testing.T, tree ...reconcilers.SubReconciler[*App]) *world {
	t.Helper()
	w := enter(t)
	config, requests := w.operator.Connect(cluster.Config(t))
	w.requests = requests
	options := demo.ManagerOptions(scheme, logr.Discard())
	options.Cache.DefaultNamespaces = map[string]cache.Config{w.namespace: {}}
	mgr, err := manager.New(config, options)
	if err != nil {
		t.Fatal(err)
	}
	root := espalier.For(espalier.NewConfig(mgr), tree...)
	root.AfterReconcile = w.operator.Count
	if err := root.SetupWithManager(t.Context(), mgr); err != nil {
		t.Fatal(err)
	}
	w.operator.Start(t.Context(), mgr)
	t.Cleanup(func() {
		if err := w.operator.Stop(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// app creates an App, which change may fill.
func (w *world) app(t *testing.T, change func(*App)) *App {
	t.Helper()
	app := &App{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "shop"}, Spec: AppSpec{Image: "shop:1"}}
	if change != nil {
		change(app)
	}
	if err := w.Create(t.Context(), app); err != nil {
		t.Fatal(err)
	}
	return app
}

// set changes the spec of an App.
func (w *world) set(t *testing.T, app *App, change func(*AppSpec)) {
	t.Helper()
	before := app.DeepCopy()
	change(&app.Spec)
	if err := w.Patch(t.Context(), app, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// until waits until an object in the namespace exists and check, which may be nil, returns an empty text for it.
func until[T client.Object](t *testing.T, w *world, object T, what string, check func(T) string) {
	t.Helper()
	object.SetNamespace(w.namespace)
	controlplanetest.Eventually(t, what, func(ctx context.Context) error {
		if err := w.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil || check == nil {
			return err
		}
		if wrong := check(object); wrong != "" {
			return errors.New(wrong)
		}
		return nil
	})
}

// untilGone waits until an object in the namespace does not exist.
func (w *world) untilGone(t *testing.T, object client.Object) {
	t.Helper()
	object.SetNamespace(w.namespace)
	controlplanetest.Eventually(t, "the deletion", func(ctx context.Context) error {
		if err := w.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return client.IgnoreNotFound(err)
		}
		return fmt.Errorf("%T %s exists", object, object.GetName())
	})
}

// untilReason waits until a condition of the App has a reason, for the current generation, and returns it.
func (w *world) untilReason(t *testing.T, app *App, conditionType, reason string) metav1.Condition {
	t.Helper()
	var found metav1.Condition
	until(t, w, app, "the condition "+conditionType+" has the reason "+reason, func(app *App) string {
		condition := meta.FindStatusCondition(app.Status.Conditions, conditionType)
		if condition == nil {
			return "there is none"
		}
		found = *condition
		if found.Reason != reason || app.Status.ObservedGeneration != app.Generation {
			return fmt.Sprintf("it is %s, %s: %s", found.Status, found.Reason, found.Message)
		}
		return ""
	})
	return found
}

// untilIdle waits until the operator reconciles the App without a request. It has to do so three times in a row.
func (w *world) untilIdle(t *testing.T, app *App) {
	t.Helper()
	touches, idle := 0, 0
	controlplanetest.Eventually(t, "the operator is idle", func(ctx context.Context) error {
		touches++
		w.requests.Reset()
		before := w.operator.Reconciles()[app.Name]
		touch := fmt.Sprintf(`{"metadata":{"annotations":{"test.espalier.dev/touched":"%d"}}}`, touches)
		patch := client.RawPatch("application/merge-patch+json", []byte(touch))
		if err := w.Patch(ctx, app.DeepCopy(), patch); err != nil {
			return err
		}
		controlplanetest.Eventually(t, app.Name+" is reconciled", func(context.Context) error {
			if now := w.operator.Reconciles()[app.Name]; now == before {
				return fmt.Errorf("it was reconciled %d times, which is no more than before", now)
			}
			return nil
		})
		if n := w.requests.Total(); n > 0 {
			idle = 0
			return fmt.Errorf("%d requests:\n%s", n, w.requests)
		}
		if idle++; idle < 3 {
			return fmt.Errorf("it was idle %d times in a row", idle)
		}
		return nil
	})
}
