// Package right has code that no finder knows.
package right

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"reconciler.io/runtime/reconcilers"
	"reconciler.io/runtime/stash"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
)

type resource = *corev1.Service

var name = stash.New[string]("example.com/name")

// Sync is a node that is told where to look.
func Sync() reconcilers.SubReconciler[resource] {
	return &reconcilers.SyncReconciler[resource]{
		Setup: func(context.Context, ctrl.Manager, *builder.Builder) error { return nil },
		SyncWithResult: func(ctx context.Context, r resource) (reconcilers.Result, error) {
			name.Store(ctx, time.Now().String())
			if r.Name == "" {
				return reconcilers.Result{}, errors.Join(errors.New("no name"), errors.New("no luck"))
			}
			return reconcilers.Result{}, nil
		},
	}
}

// Branch chooses.
func Branch(key types.NamespacedName) reconcilers.SubReconciler[resource] {
	return &reconcilers.IfThen[resource]{
		If:   func(_ context.Context, r resource) bool { return r.Name == key.Name },
		Then: &reconcilers.OverrideSetup[resource]{Reconciler: Sync()},
	}
}
