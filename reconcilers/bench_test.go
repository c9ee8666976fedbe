package reconcilers_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/tracker"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
)

// The benchmarks of this file run over a reader in memory that costs what a cache costs: a deep copy for each object.

func BenchmarkSequenceOfTenSyncs(b *testing.B) {
	var sequence reconcilers.Sequence[*corev1.Service]
	for range 10 {
		sequence = append(sequence, &reconcilers.SyncReconciler[*corev1.Service]{
			Sync: func(context.Context, *corev1.Service) error { return nil },
		})
	}
	benchmarkRoot(b, sequence, 0)
}

func BenchmarkThreeChildren(b *testing.B) {
	for _, unrelated := range []int{0, 100, 1000} {
		b.Run(fmt.Sprintf("unrelated=%d", unrelated), func(b *testing.B) {
			benchmarkRoot(b, configMapChildren(3), unrelated)
		})
	}
}

func BenchmarkTenChildren(b *testing.B) {
	benchmarkRoot(b, configMapChildren(10), 0)
}

// benchmarkRoot reconciles one resource over and over. It is reconciled twice before: to make what is not there, and to see
// that it agrees.
func benchmarkRoot(b *testing.B, tree reconcilers.SubReconciler[*corev1.Service], unrelated int) {
	cluster := newMemoryClient()
	owner := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "owner", UID: "owner", Generation: 1}}
	cluster.put(owner)
	for i := range unrelated {
		name := "unrelated-" + strconv.Itoa(i)
		cluster.put(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)},
			Data:       map[string]string{"key": "value"},
		})
	}
	config := reconcilers.Config{Client: cluster, APIReader: cluster, Tracker: tracker.New(scheme.Scheme, 0)}.WithOwnerIndex(cluster)
	config.RegisterOwnerIndex(&corev1.ConfigMap{})
	root := &reconcilers.ResourceReconciler[*corev1.Service]{Reconciler: tree, Config: config}

	// As controller-runtime does, without a place for the lines to go.
	ctx := logr.NewContext(context.Background(), logr.Discard())
	request := ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "owner"}}
	for range 2 {
		if _, err := root.Reconcile(ctx, request); err != nil {
			b.Fatal(err)
		}
	}
	before := cluster.writes
	b.ReportAllocs()
	for b.Loop() {
		if _, err := root.Reconcile(ctx, request); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(cluster.writes-before)/float64(b.N), "writes/op")
}

// configMapChildren is a sequence of n children of one type.
func configMapChildren(n int) reconcilers.Sequence[*corev1.Service] {
	var sequence reconcilers.Sequence[*corev1.Service]
	for i := range n {
		name := "child-" + strconv.Itoa(i)
		sequence = append(sequence, &reconcilers.ChildReconciler[*corev1.Service, *corev1.ConfigMap, *corev1.ConfigMapList]{
			Name: name,
			OurChild: func(_ *corev1.Service, child *corev1.ConfigMap) bool {
				return child.Name == name
			},
			DesiredChild: func(_ context.Context, resource *corev1.Service) (*corev1.ConfigMap, error) {
				return &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{
						Namespace: resource.Namespace,
						Name:      name,
						Labels:    map[string]string{"app": "bench"},
					},
					Data: map[string]string{"owner": resource.Name},
				}, nil
			},
			MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) {
				current.Labels = desired.Labels
				current.Data = desired.Data
			},
			ReflectChildStatusOnParent: func(context.Context, *corev1.Service, *corev1.ConfigMap, error) {},
		})
	}
	return sequence
}

func BenchmarkChildSet(b *testing.B) {
	for _, n := range []int{10, 100, 500} {
		b.Run(fmt.Sprintf("children=%d", n), func(b *testing.B) {
			benchmarkRoot(b, configMapSetOf(n), 0)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/child")
		})
	}
}

// configMapSetOf is a set of n children.
func configMapSetOf(n int) reconcilers.SubReconciler[*corev1.Service] {
	names := make([]string, n)
	for i := range names {
		names[i] = "child-" + strconv.Itoa(i)
	}
	return &reconcilers.ChildSetReconciler[*corev1.Service, *corev1.ConfigMap, *corev1.ConfigMapList]{
		DesiredChildren: func(_ context.Context, resource *corev1.Service) ([]*corev1.ConfigMap, error) {
			desired := make([]*corev1.ConfigMap, n)
			for i, name := range names {
				desired[i] = &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{
						Namespace: resource.Namespace,
						Name:      name,
						Labels:    map[string]string{"app": "bench"},
					},
					Data: map[string]string{"owner": resource.Name},
				}
			}
			return desired, nil
		},
		MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) {
			current.Labels = desired.Labels
			current.Data = desired.Data
		},
		IdentifyChild: func(child *corev1.ConfigMap) string { return child.Name },
		ReflectChildrenStatusOnParent: func(context.Context, *corev1.Service, reconcilers.ChildSetResult[*corev1.ConfigMap]) {
		},
	}
}
