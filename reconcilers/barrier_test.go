package reconcilers_test

import (
	"context"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/testing/fake"
	rtime "github.com/espalier-dev/espalier/time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// A child's event often arrives before the one of the status that the tree has just written. What is read then is older
// than what is there, and acting on it would write the status once more without need.
func TestAStatusIsNotWrittenTwiceForACacheThatLags(t *testing.T) {
	start := time.Unix(1000, 0)
	for name, test := range map[string]struct {
		second time.Time
		catch  bool
		writes int
	}{
		"while the cache lags":                {second: start.Add(time.Second), writes: 1},
		"when it has caught up":               {second: start.Add(time.Second), catch: true, writes: 1},
		"when it lags for longer than it may": {second: start.Add(time.Hour), writes: 2},
	} {
		t.Run(name, func(t *testing.T) {
			widget := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "widget", UID: "1"}}
			inner := fake.NewClientBuilder().WithScheme(resources.NewScheme()).WithObjects(widget).WithStatusSubresource(widget).Build()
			request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(widget)}
			stale := &resources.Widget{}
			if err := inner.Get(t.Context(), request.NamespacedName, stale); err != nil {
				t.Fatal(err)
			}
			lagging, writes := true, 0
			c := interceptor.NewClient(inner, interceptor.Funcs{
				Get: func(ctx context.Context, w client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
					if out, ok := obj.(*resources.Widget); ok && lagging {
						*out = *stale.DeepCopy()
						return nil
					}
					return w.Get(ctx, key, obj, opts...)
				},
				SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
					writes++
					return c.SubResource(sub).Update(ctx, obj, opts...)
				},
			})
			root := &reconcilers.ResourceReconciler[*resources.Widget]{
				Config: reconcilers.Config{Client: c, APIReader: c},
				Reconciler: &reconcilers.SyncReconciler[*resources.Widget]{
					Sync: func(_ context.Context, widget *resources.Widget) error {
						widget.Status.AddField("synced", "true")
						return nil
					},
				},
			}
			if _, err := root.Reconcile(rtime.StashNow(t.Context(), start), request); err != nil {
				t.Fatal(err)
			}
			lagging = !test.catch
			if _, err := root.Reconcile(rtime.StashNow(t.Context(), test.second), request); err != nil {
				t.Fatal(err)
			}
			if writes != test.writes {
				t.Errorf("the status was written %d times, want %d", writes, test.writes)
			}
		})
	}
}
