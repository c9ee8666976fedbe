package testing_test

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
)

// writesStatus is the factory of a root that adds a field to the status of the gadget.
func writesStatus(_ *testing.T, _ *rtesting.ReconcilerTestCase, c reconcilers.Config) reconcile.Reconciler {
	return &reconcilers.ResourceReconciler[*resources.Widget]{
		Config: c, SkipStatusEvents: true,
		Reconciler: &reconcilers.SyncReconciler[*resources.Widget]{Sync: func(_ context.Context, w *resources.Widget) error {
			w.Status.AddField("k", "v")
			return nil
		}},
	}
}

// A row of a root needs no StatusSubResourceTypes for given objects that have a status.
func TestTypesWithAStatusHaveAStatusSubresource(t *testing.T) {
	filled := widget.With(func(w *resources.Widget) {
		w.Status.InitializeConditions(t.Context())
		w.Status.AddField("k", "v")
	})
	untyped := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{}}}
	untyped.SetGroupVersionKind(resources.GroupVersion.WithKind("Widget"))
	untyped.SetNamespace(gadget.Namespace)
	untyped.SetName(gadget.Name)
	for name, given := range map[string]client.Object{"typed": widget.Object(), "fixture": widget, "untyped": untyped} {
		rtesting.ReconcilerTests{name: {
			Request: gadget, GivenObjects: []client.Object{given, pod},
			ExpectStatusUpdates: []client.Object{filled},
		}}.Run(t, widgets, writesStatus)
	}
}

// A status that is written in another way than a real server serves is not written.
func TestAStatusIsNotWrittenWithTheObject(t *testing.T) {
	rtesting.ReconcilerTests{"update": {
		Request: gadget, GivenObjects: []client.Object{widget},
		ExpectUpdates: []client.Object{widget.With(func(w *resources.Widget) { w.Status.AddField("k", "v") })},
	}}.Run(t, widgets, func(t *testing.T, _ *rtesting.ReconcilerTestCase, c reconcilers.Config) reconcile.Reconciler {
		return reconcile.Func(func(ctx context.Context, req reconcilers.Request) (reconcilers.Result, error) {
			w := &resources.Widget{}
			if err := c.Get(ctx, req.NamespacedName, w); err != nil {
				return reconcilers.Result{}, err
			}
			w.Status.AddField("k", "v")
			err := c.Update(ctx, w)
			if len(w.Status.Fields) > 0 {
				t.Errorf("the status was written: %v", w.Status)
			}
			return reconcilers.Result{}, err
		})
	})
}

func TestAStatusThatIsNotServedSaysWhatToSet(t *testing.T) {
	c := (&rtesting.ExpectConfig{Scheme: widgets, GivenObjects: []client.Object{widget}}).Config()
	const want = "Widget default/gadget has no status of its own in this test: " +
		"add &resources.Widget{} to the StatusSubResourceTypes"
	for name, err := range map[string]error{
		"update": c.Status().Update(t.Context(), widget.Object()),
		"patch":  c.Status().Patch(t.Context(), widget.Object(), client.RawPatch("application/merge-patch+json", []byte(`{"status":{}}`))),
	} {
		if err == nil || !apierrors.IsNotFound(err) || !hasPrefix(err, want) {
			t.Errorf("%s: returned %v", name, err)
		}
	}
	absent := widget.Object()
	absent.Name = "absent"
	if err := c.Status().Update(t.Context(), absent); err == nil || hasPrefix(err, "Widget") {
		t.Errorf("absent: returned %v", err)
	}
}

func hasPrefix(err error, prefix string) bool { return strings.HasPrefix(err.Error(), prefix) }
