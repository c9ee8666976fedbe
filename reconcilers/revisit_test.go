package reconcilers_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	appsv1 "k8s.io/api/apps/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// A node can be visited after the request: with the config and the path that it had, and with the resource as it is by
// then. It cannot where it got something else than the resource.
func TestRevisit(t *testing.T) {
	w := newObservedWorld(t)
	visits := map[string]reconcilers.Visit{}
	revisit := func(name string) reconcilers.SubReconciler[*resources.Widget] {
		return &widgetSync{Name: name, Sync: func(ctx context.Context, widget *resources.Widget) error {
			widget.Spec.Fields = map[string]string{"changed": "in memory"}
			visits[name] = reconcilers.Revisit(ctx)
			return nil
		}}
	}
	other := reconcilers.Config{Client: client.NewNamespacedClient(w.client, "default"), APIReader: w.client}
	w.root.Reconciler = widgetSequence{
		revisit("plain"),
		&reconcilers.WithConfig[*resources.Widget]{
			Config:     func(context.Context, reconcilers.Config) (reconcilers.Config, error) { return other, nil },
			Reconciler: revisit("other"),
		},
		&reconcilers.ForEach[*resources.Widget, string]{
			Name:       "letters",
			Items:      func(context.Context, *resources.Widget) ([]string, error) { return []string{"a"}, nil },
			Key:        func(s string) string { return s },
			Reconciler: revisit("item"),
		},
		&asDeployment{Reconciler: &reconcilers.SyncReconciler[*appsv1.Deployment]{
			Name: "cast", Sync: func(ctx context.Context, _ *appsv1.Deployment) error {
				visits["cast"] = reconcilers.Revisit(ctx)
				return nil
			},
		}},
	}
	// The second request runs the node for the item, which was recorded by the first.
	for range 2 {
		if _, err := w.root.Reconcile(t.Context(), w.request); err != nil {
			t.Fatal(err)
		}
	}
	if len(visits) != 4 || visits["item"] != nil || visits["cast"] != nil {
		t.Errorf("%d nodes ran, not 4; an item can be visited: %v; below a cast: %v", len(visits),
			visits["item"] != nil, visits["cast"] != nil)
	}
	now := &resources.Widget{}
	if err := w.client.Get(t.Context(), w.request.NamespacedName, now); err != nil {
		t.Fatal(err)
	}
	now.Labels = map[string]string{"changed": "later"}
	if err := w.client.Update(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct {
		client client.Client
		path   string
	}{
		"plain": {w.root.Config.Client, "root/0/plain"},
		"other": {other.Client, "root/1/WithConfig/other"},
	} {
		ctx, resource, err := visits[name](t.Context())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		widget, ok := resource.(*resources.Widget)
		if !ok || widget.Labels["changed"] != "later" || len(widget.Spec.Fields) > 0 {
			t.Errorf("%s: the resource is %+v, not as it is now", name, resource)
		}
		if got := reconcilers.RetrieveConfigOrDie(ctx).Client; fmt.Sprintf("%T", got) != fmt.Sprintf("%T", want.client) {
			t.Errorf("%s: it has a client of type %T, not %T", name, got, want.client)
		}
		if got := reconcilers.RetrievePath(ctx); got != want.path {
			t.Errorf("%s: it is at %s, not %s", name, got, want.path)
		}
		if reconcilers.IsObserved(ctx) || reconcilers.RetrieveRequest(ctx) != w.request {
			t.Errorf("%s: it is observed, or of another request", name)
		}
	}
	if err := w.client.Delete(t.Context(), &resources.Widget{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "w",
	}}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := visits["plain"](t.Context()); !apierrs.IsNotFound(err) {
		t.Errorf("a resource that is gone is read with the error %v", err)
	}
}

// A panic while the resource is read is an error of the visit.
func TestAVisitDoesNotPanic(t *testing.T) {
	w := newObservedWorld(t)
	var visit reconcilers.Visit
	panics := false
	w.root.Config.APIReader = interceptor.NewClient(w.client, interceptor.Funcs{Get: func(
		ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, options ...client.GetOption,
	) error {
		if panics {
			panic("it is dark")
		}
		return c.Get(ctx, key, obj, options...)
	}})
	w.root.Reconciler = widgetSequence{&widgetSync{Sync: func(ctx context.Context, _ *resources.Widget) error {
		visit = reconcilers.Revisit(ctx)
		return nil
	}}}
	if _, err := w.root.Reconcile(t.Context(), w.request); err != nil {
		t.Fatal(err)
	}
	panics = true
	if _, _, err := visit(t.Context()); err == nil {
		t.Error("a panic is no error")
	}
}
