package reconcilers_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// tree has a child of the color of the resource, and marks the resource with the color of the child and that of settings which it
// tracks.
func (f combination[T, CT, CL]) tree() reconcilers.SubReconciler[T] {
	settings := reconcilers.NewStasher[string]("settings")
	child := f.childNode(nil)
	child.ReflectChildStatusOnParentWithError = func(ctx context.Context, resource T, child CT, err error) error {
		if err == nil && !isNone(child) {
			f.mark(resource, f.child.color(child)+" "+settings.RetrieveOrEmpty(ctx))
		}
		return err
	}
	return &reconcilers.WithFinalizer[T]{Finalizer: "test.espalier.dev/tree", Reconciler: reconcilers.Sequence[T]{
		&reconcilers.SyncReconciler[T]{Sync: func(ctx context.Context, resource T) error {
			obj, key := f.child.empty(), client.ObjectKey{Namespace: resource.GetNamespace(), Name: "settings"}
			if err := reconcilers.RetrieveConfigOrDie(ctx).TrackAndGet(ctx, key, obj); client.IgnoreNotFound(err) != nil {
				return err
			}
			settings.Store(ctx, f.child.color(obj))
			return nil
		}},
		child,
	}}
}

func (f combination[T, CT, CL]) isReconciledByAnOperator(t *testing.T) {
	c := live(t)
	op, _ := startOperatorIn(t, plane.Namespace(t), ctrl.Options{
		// Unstructured objects and ducks are read past the cache otherwise.
		Client: client.Options{Cache: &client.CacheOptions{Unstructured: true}},
	})
	root := &reconcilers.ResourceReconciler[T]{
		Type: f.empty(), Config: reconcilers.NewConfig(op, f.empty(), time.Hour), Reconciler: f.tree(),
	}
	if err := root.SetupWithManager(t.Context(), op); err != nil {
		t.Fatal(err)
	}

	gadget := &resources.Widget{
		ObjectMeta: metav1.ObjectMeta{Namespace: op.namespace, Name: "gadget"},
		Spec:       resources.WidgetSpec{Fields: map[string]string{"color": "blue"}},
	}
	settings := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: op.namespace, Name: "settings"}, Data: map[string]string{"color": "bright"},
	}
	child := &corev1.ConfigMap{}
	key := client.ObjectKeyFromObject(gadget)
	becomes := func(color, mark string) {
		t.Helper()
		eventually(t, "not "+color+" and "+mark, func(ctx context.Context) error {
			if err := c.Get(ctx, key, child); err != nil {
				return err
			}
			if err := c.Get(ctx, key, gadget); err != nil {
				return err
			}
			if child.Data["color"] != color || gadget.Status.Fields["mark"] != mark {
				return fmt.Errorf("the child is %q, the mark %q", child.Data["color"], gadget.Status.Fields["mark"])
			}
			return nil
		})
	}
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}

	do(c.Create(t.Context(), gadget))
	becomes("blue", "blue ")
	if !metav1.IsControlledBy(child, gadget) {
		t.Errorf("the child is owned by %v, want the gadget", child.OwnerReferences)
	}
	reconcileSteadily(t, op, root, gadget)

	do(c.Create(t.Context(), settings))
	becomes("blue", "blue bright")
	gadget.Spec.Fields["color"] = "red"
	do(c.Update(t.Context(), gadget))
	becomes("red", "red bright")
	settings.Data["color"] = "dark"
	do(c.Update(t.Context(), settings))
	becomes("red", "red dark")
	gone := child.UID
	do(c.Delete(t.Context(), child))
	eventually(t, "not made anew", func(ctx context.Context) error {
		if err := c.Get(ctx, key, child); err != nil {
			return err
		}
		if child.UID == gone {
			return fmt.Errorf("still there")
		}
		return nil
	})
	reconcileSteadily(t, op, root, gadget)

	do(c.Delete(t.Context(), gadget))
	for _, obj := range []client.Object{gadget, child} {
		eventually(t, "not gone", func(ctx context.Context) error {
			if err := c.Get(ctx, key, obj); !apierrs.IsNotFound(err) {
				return fmt.Errorf("still there: %w", err)
			}
			return nil
		})
	}
}
