package mapped_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestADeleteCountsWhatItChanges(t *testing.T) {
	t.Parallel()
	held := settings(func(cm *corev1.ConfigMap) {
		cm.Name, cm.Finalizers = "held", []string{"example.com/hold"}
		identified(cm, "uid-of-held", "6")
	})
	terminating := held.DeepCopy()
	terminating.DeletionTimestamp = &before
	collection := func(ctx context.Context, r *row) error {
		return r.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace("ns"))
	}
	for name, test := range map[string]struct {
		given []client.Object
		call  func(ctx context.Context, r *row) error
		// want is how many changes the call makes. The same call makes none after it.
		want int64
	}{
		"of an object": {
			given: []client.Object{settings()},
			call: func(ctx context.Context, r *row) error {
				return client.IgnoreNotFound(r.Delete(ctx, settings()))
			},
			want: 1,
		},
		"of one with a finalizer": {
			given: []client.Object{held},
			call:  func(ctx context.Context, r *row) error { return r.Delete(ctx, held) },
			want:  1,
		},
		"of one that is terminating": {
			given: []client.Object{terminating},
			call:  func(ctx context.Context, r *row) error { return r.Delete(ctx, held) },
		},
		"dry": {
			given: []client.Object{settings(), held},
			call: func(ctx context.Context, r *row) error {
				return r.Delete(ctx, held, client.DryRunAll)
			},
		},
		"of a collection":      {given: []client.Object{settings(), held}, call: collection, want: 2},
		"of a terminating one": {given: []client.Object{terminating}, call: collection},
		"of nothing":           {call: collection},
		"of a collection in no namespace": {
			given: []client.Object{&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{
				Name: "role", UID: "uid-of-role", ResourceVersion: "8",
			}}},
			call: func(ctx context.Context, r *row) error { return r.DeleteAllOf(ctx, &rbacv1.ClusterRole{}) },
			want: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRow(t, append(test.given, namespace("ns"))...)
			for _, want := range []int64{test.want, 0} {
				before := r.server.Revision()
				r.must(test.call(t.Context(), r))
				r.equal("the number of changes", r.server.Revision()-before, want)
			}
		})
	}
}
