package reconcilers_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// benchmarkedOwner is the index that the usual pattern uses.
const benchmarkedOwner = ".bench/owner"

// BenchmarkIdleReconcile reconciles a resource with ten children that all agree, over the informers of a real manager, in
// a namespace with 990 other objects of the type. "usual" is what is commonly written by hand: get the resource, list
// the children by an index, compare each with what is desired.
func BenchmarkIdleReconcile(b *testing.B) {
	children := make([]string, 10)
	var tree reconcilers.Sequence[*resources.Widget]
	for i := range children {
		children[i] = "part-" + strconv.Itoa(i)
		child := configMapChild(children[i])
		child.ReflectChildStatusOnParent = func(context.Context, *resources.Widget, *corev1.ConfigMap, error) {}
		tree = append(tree, child)
	}
	tree = append(tree, &reconcilers.SyncReconciler[*resources.Widget]{Sync: func(ctx context.Context, widget *resources.Widget) error {
		widget.Status.MarkChildReady(ctx)
		return nil
	}})
	indexed := func(config reconcilers.Config) *reconcilers.ResourceReconciler[*resources.Widget] {
		return &reconcilers.ResourceReconciler[*resources.Widget]{
			Config:     config,
			Reconciler: tree,
			Setup: func(ctx context.Context, mgr reconcilers.Manager, _ *reconcilers.Builder) error {
				return mgr.GetFieldIndexer().IndexField(ctx, &corev1.ConfigMap{}, benchmarkedOwner, func(obj client.Object) []string {
					if owner := metav1.GetControllerOfNoCopy(obj); owner != nil {
						return []string{string(owner.UID)}
					}
					return nil
				})
			},
		}
	}
	// The cache has all namespaces, as that of most managers.
	op, roots := startOperatorIn(b, metav1.NamespaceAll, ctrl.Options{}, indexed)
	op.namespace = plane.Namespace(b)
	c := live(b)
	widget := op.createWidget(b, c)
	for i := range 990 {
		unrelated := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: widget.Namespace, Name: "unrelated-" + strconv.Itoa(i)}}
		if err := c.Create(b.Context(), unrelated); err != nil {
			b.Fatal(err)
		}
	}
	eventually(b, "children are missing", func(ctx context.Context) error {
		var list corev1.ConfigMapList
		if err := op.GetClient().List(ctx, &list, client.InNamespace(widget.Namespace)); err != nil {
			return err
		}
		if len(list.Items) < 1000 {
			return fmt.Errorf("the cache has %d objects", len(list.Items))
		}
		return nil
	})
	// The logger is in the context as controller-runtime puts it there.
	ctx := log.IntoContext(b.Context(), op.GetLogger().WithValues("controller", "widget"))
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(widget)}
	eventually(b, "requests do not end", func(context.Context) error {
		op.requests.Reset()
		if _, err := roots[0].Reconcile(ctx, request); err != nil {
			return err
		}
		if op.requests.Total() > 0 {
			return fmt.Errorf("requests were made:\n%s", op.requests)
		}
		return nil
	})

	b.Run("espalier", func(b *testing.B) {
		op.requests.Reset()
		b.ReportAllocs()
		for b.Loop() {
			if _, err := roots[0].Reconcile(ctx, request); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(op.requests.Total())/float64(b.N), "requests/op")
	})
	b.Run("usual", func(b *testing.B) {
		op.requests.Reset()
		b.ReportAllocs()
		for b.Loop() {
			if err := usualReconcile(ctx, op.GetClient(), request, children); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(op.requests.Total())/float64(b.N), "requests/op")
	})
}

func usualReconcile(ctx context.Context, c client.Client, request ctrl.Request, names []string) error {
	widget := &resources.Widget{}
	if err := c.Get(ctx, request.NamespacedName, widget); err != nil {
		return err
	}
	var list corev1.ConfigMapList
	if err := c.List(ctx, &list, client.InNamespace(widget.Namespace), client.MatchingFields{benchmarkedOwner: string(widget.UID)}); err != nil {
		return err
	}
	for _, name := range names {
		for i := range list.Items {
			actual := &list.Items[i]
			if actual.Labels["part"] != name {
				continue
			}
			current := actual.DeepCopy()
			current.Labels = map[string]string{"part": name}
			current.Data = map[string]string{"image": widget.Spec.Fields["image"]}
			if !equality.Semantic.DeepEqual(actual, current) {
				return fmt.Errorf("%s differs", actual.Name)
			}
		}
	}
	return nil
}
