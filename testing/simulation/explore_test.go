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

func TestPlantedExplore(t *testing.T) {
	if os.Getenv(planted) == "" {
		return
	}
	simulation.SetShrinking(20 * time.Minute)
	simulation.Explore(t, simulation.Options{
		Operator: volumes(byClass), Definitions: simulation.ReadDefinitions(t, "testdata/volumes.yaml"),
	}, simulation.Exploration{Resource: newVolume()})
}

// TestExploreFindsSmallestStory has an exploration find that the children of former classes are left.
func TestExploreFindsSmallestStory(t *testing.T) {
	out := runPlanted(t, "TestPlantedExplore")
	t.Log(out)
	if strings.Count(out, "w.Create(") != strings.Count(out, "func(w *simulation.World)") {
		t.Errorf("the stories are not the smallest:\n%s", out)
	}
}
