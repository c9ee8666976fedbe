package sharding_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/espalier-dev/espalier/internal/shard"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/testing/fake"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// filtered is a cache that has the objects of the first shard alone.
type filtered struct{ client.Client }

func (f *filtered) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return f.Client.List(ctx, list, append(opts, client.MatchingLabels{shardLabel: "first"})...)
}

// Branches that need children ask one after the other for those that the cache does not show. So what one of them
// creates meanwhile is known afterwards, also if the ring gives it to another shard.
func TestWhatABranchCreatesStaysKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &resources.Widget{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "w", UID: "w-uid", Labels: map[string]string{shardLabel: "first"},
		}}
		var mu sync.Mutex
		asked, created := 0, []*corev1.ConfigMap(nil)
		c := fake.NewClientBuilder().WithScheme(resources.NewScheme()).WithObjects(w).WithInterceptorFuncs(interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				err := c.List(ctx, list, opts...)
				if _, isQuestion := list.(*metav1.PartialObjectMetadataList); isQuestion {
					mu.Lock()
					asked++
					mu.Unlock()
					// The answer takes as long as the other branch has something to do.
					synctest.Wait()
				}
				return err
			},
			Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
				err := c.Create(ctx, obj, opts...)
				mu.Lock()
				defer mu.Unlock()
				created = append(created, obj.(*corev1.ConfigMap))
				return err
			},
		}).Build()
		s := holding(t)
		shard.Filter(s, corev1.SchemeGroupVersion.WithKind("ConfigMap"), false)
		config := reconcilers.Config{Client: &filtered{c}, APIReader: c}.WithShard(s)
		root := tree(&reconcilers.Parallel[*resources.Widget]{
			Nodes: []node{generatedOnDemand("a"), generatedOnDemand("b")},
		})(config)
		reconcile := func(image string) {
			t.Helper()
			setImage(t, c, w, image)
			asked = 0
			if _, err := root.Reconcile(t.Context(), requestOf(w)); err != nil {
				t.Fatal(err)
			}
		}
		reconcile("")
		reconcile("1")
		if len(created) != 2 || asked != 1 {
			t.Errorf("%d children are created, and the API server is asked %d times for others, want 2, and once",
				len(created), asked)
		}
		for _, child := range created {
			label(t, c, child, assigned("first"))
		}
		reconcile("1")
		label(t, c, created[0], assigned("second"))
		reconcile("")
		left := &corev1.ConfigMapList{}
		if err := c.List(t.Context(), left); err != nil || len(left.Items) > 0 {
			t.Errorf("the children %v are left (%v), want none, wherever they are", names(left), err)
		}
	})
}
