package simulation_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-dev/espalier/testing/simulation"
)

func newVolume() *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Volume"})
	return obj
}

// volumes keeps a ConfigMap for each Volume. Its name is a function of the Volume.
func volumes(name func(volume *unstructured.Unstructured) string) func(context.Context, ctrl.Manager) error {
	return func(_ context.Context, mgr ctrl.Manager) error {
		c := mgr.GetClient()
		return ctrl.NewControllerManagedBy(mgr).For(newVolume()).Owns(&corev1.ConfigMap{}).
			Complete(reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
				parent := newVolume()
				if err := c.Get(ctx, r.NamespacedName, parent); err != nil {
					return reconcile.Result{}, client.IgnoreNotFound(err)
				}
				if parent.GetDeletionTimestamp() != nil {
					return reconcile.Result{}, nil
				}
				child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: name(parent)}}
				_, err := controllerutil.CreateOrUpdate(ctx, c, child, func() error {
					child.Data, _, _ = unstructured.NestedStringMap(parent.Object, "spec", "labels")
					return controllerutil.SetControllerReference(parent, child, mgr.GetScheme())
				})
				return reconcile.Result{}, err
			}))
	}
}

func byName(volume *unstructured.Unstructured) string { return volume.GetName() }

// byClass is a mistake: what was there for the class before is left.
func byClass(volume *unstructured.Unstructured) string {
	class, _, _ := unstructured.NestedString(volume.Object, "spec", "class")
	return volume.GetName() + "-" + class
}

func TestExplore(t *testing.T) {
	simulation.Explore(t, simulation.Options{
		Operator: volumes(byName), Definitions: simulation.ReadDefinitions(t, "testdata/volumes.yaml"),
	}, simulation.Exploration{Resource: newVolume(), Disturb: true})
}

// TestExploreRetries has an operator try again, each ten minutes, to create an object that is invalid.
func TestExploreRetries(t *testing.T) {
	simulation.Explore(t, simulation.Options{
		Definitions: simulation.ReadDefinitions(t, "testdata/volumes.yaml"),
		Operator: func(_ context.Context, mgr ctrl.Manager) error {
			c := mgr.GetClient()
			return ctrl.NewControllerManagedBy(mgr).For(newVolume()).Complete(reconcile.Func(
				func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
					if err := c.Get(ctx, r.NamespacedName, newVolume()); err != nil {
						return reconcile.Result{}, client.IgnoreNotFound(err)
					}
					invalid := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: "No!"}}
					if err := c.Create(ctx, invalid); !apierrors.IsInvalid(err) {
						return reconcile.Result{}, err
					}
					return reconcile.Result{RequeueAfter: 10 * time.Minute}, nil
				}))
		},
	}, simulation.Exploration{Resource: newVolume()})
}

// exploresIdly are explorations that show nothing, with what the test says.
var exploresIdly = map[string]struct {
	operator  func(context.Context, ctrl.Manager) error
	namespace string
	says      string
}{
	"no write": {
		operator: func(_ context.Context, mgr ctrl.Manager) error {
			return ctrl.NewControllerManagedBy(mgr).For(newVolume()).Owns(&corev1.ConfigMap{}).
				Complete(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
					return reconcile.Result{}, nil
				}))
		},
		says: "the exploration shows nothing, since the operator has asked for no write.",
	},
	"no resource": {
		operator: volumes(byName), namespace: "missing",
		says: "the exploration shows nothing, since the API server has refused all resources.",
	},
}

func TestPlantedIdleExplore(t *testing.T) {
	if os.Getenv(planted) == "" {
		return
	}
	for name, idle := range exploresIdly {
		t.Run(name, func(t *testing.T) {
			simulation.Explore(t, simulation.Options{
				Operator: idle.operator, Definitions: simulation.ReadDefinitions(t, "testdata/volumes.yaml"),
			}, simulation.Exploration{Resource: newVolume(), Namespace: idle.namespace})
		})
	}
}

// TestExploreFailsIfItShowsNothing has explorations that would find no mistake at all.
func TestExploreFailsIfItShowsNothing(t *testing.T) {
	out := runPlanted(t, "TestPlantedIdleExplore", "-simulation.seeds=2")
	for name, idle := range exploresIdly {
		if !strings.Contains(out, idle.says) {
			t.Errorf("%s: want %q, got\n%s", name, idle.says, out)
		}
	}
	if want := "of the kinds that it watches it never wrote ConfigMap, Volume"; !strings.Contains(out, want) {
		t.Errorf("want %q, got\n%s", want, out)
	}
}

func TestPlantedExplore(t *testing.T) {
	if os.Getenv(planted) == "" {
		return
	}
	simulation.Explore(t, simulation.Options{
		Operator: volumes(byClass), Definitions: simulation.ReadDefinitions(t, "testdata/volumes.yaml"),
	}, simulation.Exploration{Resource: newVolume()})
}

// TestExploreStopsMakingSmaller has no time for smaller stories.
func TestExploreStopsMakingSmaller(t *testing.T) {
	out := runPlanted(t, "^TestPlantedExplore$", "-simulation.shrinking=1ns", "-simulation.seeds=2")
	if want := "The smallest story found in 1ns, see -simulation.shrinking:"; !strings.Contains(out, want) {
		t.Errorf("want %q, got\n%s", want, out)
	}
}

// TestExploreFindsSmallestStory has an exploration find that the children of former classes are left.
func TestExploreFindsSmallestStory(t *testing.T) {
	out := runPlanted(t, "^TestPlantedExplore$")
	t.Log(out)
	if strings.Count(out, "w.Create(") != strings.Count(out, "func(w *simulation.World)") {
		t.Errorf("the stories are not the smallest:\n%s", out)
	}
}
