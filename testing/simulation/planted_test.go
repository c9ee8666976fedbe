package simulation

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-dev/espalier/internal/fault"
)

// names are what is registered outside of a cluster.
type names struct {
	mu  sync.Mutex
	all map[string]bool
}

func (n *names) set(ctx context.Context, name string, there bool) error {
	verb := map[bool]string{true: "register ", false: "unregister "}[there]
	return fault.CallOutside(ctx, verb+name, func() error {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.all == nil {
			n.all = map[string]bool{}
		}
		n.all[name] = there
		return nil
	})
}

var registered External[names]

const finalizer = "example.com/registered"

// plantedBugs are operators with a bug each, with a fault that finds it and what the failure says.
var plantedBugs = map[string]struct {
	do   func(ctx context.Context, c client.Client, app *corev1.ConfigMap) error
	says []string
}{
	"registered before the finalizer": {func(ctx context.Context, c client.Client, app *corev1.ConfigMap) error {
		if app.DeletionTimestamp != nil {
			return release(ctx, c, app, true)
		}
		if err := registered.In(ctx).set(ctx, app.Name, true); err != nil {
			return err
		}
		if controllerutil.AddFinalizer(app, finalizer) {
			return c.Update(ctx, app)
		}
		return nil
	}, []string{"{Kind: simulation.UserDeletes,", "one is still registered"}},
	"the error of unregister is swallowed": {func(ctx context.Context, c client.Client, app *corev1.ConfigMap) error {
		if app.DeletionTimestamp != nil {
			return release(ctx, c, app, false)
		}
		if controllerutil.AddFinalizer(app, finalizer) {
			return c.Update(ctx, app)
		}
		return registered.In(ctx).set(ctx, app.Name, true)
	}, []string{`Verb: "call", Path: "unregister one"`, "one is still registered"}},
	"whole objects without a version": {func(ctx context.Context, c client.Client, app *corev1.ConfigMap) error {
		copied := newSecret(app.Name)
		if err := c.Get(ctx, client.ObjectKeyFromObject(copied), copied); client.IgnoreNotFound(err) != nil {
			return err
		}
		exists := copied.UID != ""
		if exists && string(copied.Data["text"]) == app.Data["text"] {
			return nil
		}
		copied.ResourceVersion, copied.Data = "", map[string][]byte{"text": []byte(app.Data["text"])}
		_ = controllerutil.SetControllerReference(app, copied, c.Scheme())
		if exists {
			return c.Update(ctx, copied)
		}
		return c.Create(ctx, copied)
	}, []string{
		"operator lost what somebody else wrote: somebody put an annotation on the object just before update Secret " +
			"default/one, which took it off without having seen it", "{Kind: simulation.Conflicts,",
	}},
	"none": {func(ctx context.Context, c client.Client, app *corev1.ConfigMap) error {
		if app.DeletionTimestamp != nil {
			return release(ctx, c, app, true)
		}
		if controllerutil.AddFinalizer(app, finalizer) {
			return c.Update(ctx, app)
		}
		return registered.In(ctx).set(ctx, app.Name, true)
	}, nil},
}

// release takes the finalizer off when the name is not registered any more.
func release(ctx context.Context, c client.Client, app *corev1.ConfigMap, careful bool) error {
	if !controllerutil.ContainsFinalizer(app, finalizer) {
		return nil
	}
	if err := registered.In(ctx).set(ctx, app.Name, false); err != nil && careful {
		return err
	}
	controllerutil.RemoveFinalizer(app, finalizer)
	return c.Update(ctx, app)
}

func plantedStory(w *World) {
	app := newApp("one")
	w.Create(app)
	w.Rest()
	w.Update(app, func() { app.Data = map[string]string{"text": "a"} })
	w.Rest()
	w.Delete(app)
	w.Rest()
	if registered.Of(w).all["one"] {
		w.Error("one is still registered")
	}
}

const findBugs = "SIMULATION_PLANTED"

// TestPlantedBugs has RunFaults find bugs in a test binary of its own, without any option.
func TestPlantedBugs(t *testing.T) {
	t.Parallel()
	for name, bug := range plantedBugs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			title := strings.ReplaceAll(name, " ", "_")
			command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFindBugs$/^"+title+"$", "-test.v",
				"-simulation.budget=0") // a busy machine tries few faults in a minute
			command.Env = append(os.Environ(), findBugs+"=true")
			out, err := command.CombinedOutput()
			if (err == nil) != (len(bug.says) == 0) {
				t.Fatalf("the error is %v:\n%s", err, out)
			}
			for _, says := range bug.says {
				if !strings.Contains(string(out), says) {
					t.Errorf("the failure does not say %q:\n%s", says, out)
				}
			}
		})
	}
}

func TestFindBugs(t *testing.T) {
	if os.Getenv(findBugs) == "" {
		return
	}
	for name, bug := range plantedBugs {
		t.Run(name, func(t *testing.T) { RunFaults(t, reconciles(bug.do), plantedStory) })
	}
}

// TestHotLoopOfChild has an operator write the time into the template of a child.
func TestHotLoopOfChild(t *testing.T) {
	operator := func(_ context.Context, mgr ctrl.Manager) error {
		c := mgr.GetClient()
		return ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Owns(&appsv1.StatefulSet{}).Complete(
			reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
				app := &corev1.ConfigMap{}
				if err := c.Get(ctx, r.NamespacedName, app); err != nil || app.Labels["app"] == "" {
					return reconcile.Result{}, client.IgnoreNotFound(err)
				}
				set := &appsv1.StatefulSet{ObjectMeta: named(app.Name)}
				_, err := controllerutil.CreateOrUpdate(ctx, c, set, func() error {
					set.Spec.Selector = &metav1.LabelSelector{MatchLabels: app.Labels}
					set.Spec.Template.Labels = app.Labels
					set.Spec.Template.Annotations = map[string]string{"at": time.Now().Format(time.RFC3339Nano)}
					set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "a", Image: "a:1"}}
					return controllerutil.SetControllerReference(app, set, c.Scheme())
				})
				return reconcile.Result{}, err
			}))
	}
	began := time.Now()
	attempt(t, Options{Operator: operator}, func(w *World) {
		w.Create(newApp("one"))
		w.Rest()
	}).mustFail(t, "operator does not come to rest: update StatefulSet default/one was done", "spec.template.metadata")
	t.Logf("named in %v", time.Since(began))
}
