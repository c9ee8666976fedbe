package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// handWritten is a reconciler of controller-runtime that embeds nodes.
type handWritten struct {
	client.Client
	nodes *reconcilers.Embedded[*resources.Widget]
}

var _ reconcile.Reconciler = (*handWritten)(nil)

func (r *handWritten) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	bldr := ctrl.NewControllerManagedBy(mgr).For(&resources.Widget{})
	if err := r.nodes.SetupWithManager(ctx, mgr, bldr); err != nil {
		return err
	}
	return bldr.Complete(r)
}

func (r *handWritten) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	widget := &resources.Widget{}
	if err := r.Get(ctx, req.NamespacedName, widget); err != nil {
		if apierrs.IsNotFound(err) {
			r.nodes.Forget(req)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	before := widget.DeepCopy()
	result, err := r.nodes.Reconcile(ctx, widget)
	return result, errors.Join(err, r.Status().Patch(ctx, widget, client.MergeFrom(before)))
}

// Nodes in a hand-written reconciler get all that a root gives them: their children are created once, come back, and
// are deleted with the resource; what they track wakes the resource; what they remember goes with the resource.
func TestEmbedInAHandWrittenReconciler(t *testing.T) {
	t.Parallel()
	namespace := plane.Namespace(t)
	options := ctrl.Options{}
	options.Cache.DefaultNamespaces = map[string]cache.Config{namespace: {}}
	mgr := newManager(t, plane.Config(t), options)
	reads := readsSettings(&corev1.ConfigMap{})
	r := &handWritten{
		Client: mgr.GetClient(),
		nodes:  reconcilers.Embed(reconcilers.NewConfig(mgr, &resources.Widget{}, time.Hour), trackedChild("a"), reads),
	}
	if err := r.SetupWithManager(t.Context(), mgr); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the manager failed: %v", err)
		}
	}()

	c := live(t)
	w := (&operator{namespace: namespace}).createWidget(t, c)
	follows(t, c, w, newSettings(namespace))
	child := &corev1.ConfigMap{}
	is := func(other types.UID) func(context.Context) error {
		return func(ctx context.Context) error {
			err := c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: w.Name + "-a"}, child)
			if err == nil && child.UID == other {
				err = fmt.Errorf("it is the old one")
			}
			return err
		}
	}
	eventually(t, "the child is not created", is(""))
	if err := c.Delete(t.Context(), child); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the child does not come back", is(child.UID))
	if err := c.Delete(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the widget does not go", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(w), w); !apierrs.IsNotFound(err) {
			return fmt.Errorf("%w is there, with finalizers %v", errors.Join(err, errBoom), w.Finalizers)
		}
		return nil
	})
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(child), child); !apierrs.IsNotFound(err) {
		t.Errorf("the read of the child ends with %v, want it not found", err)
	}
	eventually(t, "something is remembered", func(context.Context) error {
		if n := r.nodes.Remembered(); n != 0 {
			return fmt.Errorf("%d resources", n)
		}
		return nil
	})
}
