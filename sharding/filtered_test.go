package sharding_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/espalier-dev/espalier/internal/shard"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/testing/fake"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// filtered is a cache that has the objects of the first shard alone.
type filtered struct{ client.Client }

func (f *filtered) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return f.Client.List(ctx, list, append(opts, client.MatchingLabels{shardLabel: "first"})...)
}

// filteredConfig returns the config of the first shard, with the objects of a client.
func filteredConfig(t *testing.T, c client.Client) (*shard.Shard, reconcilers.Config) {
	t.Helper()
	s := holding(t)
	shard.Filter(s, corev1.SchemeGroupVersion.WithKind("ConfigMap"), false)
	return s, reconcilers.Config{Client: &filtered{c}, APIReader: c}.WithShard(s)
}

func widgetOfFirst() *resources.Widget {
	return &resources.Widget{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "w", UID: "w-uid", Labels: map[string]string{shardLabel: "first"},
	}}
}

// Branches that need children ask one after the other for those that the cache does not show. So what one of them
// creates meanwhile is known afterwards, also if the ring gives it to another shard.
func TestWhatABranchCreatesStaysKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := widgetOfFirst()
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
		_, config := filteredConfig(t, c)
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

// When a resource became the shard's is known until its tree has run to the end, or has created a child: by then each
// node has looked for its children, or what was read before lacks one.
func TestAnArrivalIsForgotten(t *testing.T) {
	for name, child := range map[string]*corev1.ConfigMap{
		"there is no child": nil,
		"there is a child": {
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: "a-1", UID: "a-uid", Labels: map[string]string{shardLabel: "first"},
				OwnerReferences: []metav1.OwnerReference{
					*metav1.NewControllerRef(widgetOfFirst(), resources.GroupVersion.WithKind("Widget")),
				},
			},
			Data: map[string]string{"by": "second", "image": "1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := widgetOfFirst()
				given := []client.Object{w}
				if child != nil {
					w.Spec.Fields = map[string]string{"image": "1"}
					given = append(given, child)
				}
				c := fake.NewClientBuilder().WithScheme(resources.NewScheme()).WithObjects(given...).Build()
				s, config := filteredConfig(t, c)
				fails := errors.New("not yet")
				failing := &reconcilers.SyncReconciler[*resources.Widget]{
					Sync: func(context.Context, *resources.Widget) error { return fails },
				}
				root := tree(reconcilers.Sequence[*resources.Widget]{generatedOnDemand("a"), failing})(config)
				of := shard.Resource{
					GroupKind:      schema.GroupKind{Group: resources.GroupVersion.Group, Kind: "Widget"},
					NamespacedName: client.ObjectKeyFromObject(w),
				}
				arrived := time.Now()
				shard.Arrive(s, of)
				time.Sleep(time.Second)
				if _, err := root.Reconcile(t.Context(), requestOf(w)); !errors.Is(err, fails) {
					t.Errorf("the request has the error %v, want %v", err, fails)
				}
				if at := shard.ArrivedAt(s, of); !at.Equal(arrived) {
					t.Errorf("after an error, what is read at %v is believed, want at %v", at, arrived)
				}
				fails = nil
				if _, err := root.Reconcile(t.Context(), requestOf(w)); err != nil {
					t.Fatal(err)
				}
				if at := shard.ArrivedAt(s, of); !at.Equal(time.Now()) {
					t.Errorf("in the end, what is read at %v is believed, want that the arrival is forgotten", at)
				}
			})
		})
	}
}
