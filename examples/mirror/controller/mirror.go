// Package controller gives each mirror what it is to have. [New] returns the tree.
package controller

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier"
	v1 "github.com/espalier-dev/espalier/examples/mirror/api/v1"
	"github.com/espalier-dev/espalier/examples/mirror/registry"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/stash"
)

// New returns the root of the tree. The registry knows a mirror from when its pods are ready until it is deleted.
func New(config reconcilers.Config, mirrors registry.Registry) *reconcilers.ResourceReconciler[*v1.Mirror] {
	register := func(ctx context.Context, mirror *v1.Mirror) error {
		return pending(mirrors.Register(ctx, client.ObjectKeyFromObject(mirror).String(), mirror.Spec.Upstream))
	}
	unregister := func(ctx context.Context, mirror *v1.Mirror) error {
		return pending(mirrors.Unregister(ctx, client.ObjectKeyFromObject(mirror).String()))
	}
	return espalier.For(config,
		espalier.Owns("Config", desiredConfig).Reports(v1.ConfigReady),
		espalier.Owns("Service", desiredService).Reports(v1.ServiceReady),
		espalier.OwnsEach("Policies", desiredPolicies).Reports(v1.PoliciesReady),
		espalier.Owns("Prune", desiredPrune).Reports(v1.PruneReady),
		espalier.Owns("Budget", desiredBudget).Reports(v1.BudgetReady),
		espalier.Reads("Credentials", credentials, credentialsKey).Reports(v1.CredentialsFound),
		espalier.Owns("StatefulSet", desiredStatefulSet).Reports(v1.StatefulSetReady).Observes(readyReplicas),
		espalier.Runs("Registration", register).After("StatefulSet").
			Reports(v1.Registered).Finalizes("mirror.example.com/registration", unregister),
	)
}

// credentials has the Secret that the mirror names, if it names one.
var credentials = stash.New[*corev1.Secret]("mirror.example.com/credentials")

func credentialsKey(_ context.Context, mirror *v1.Mirror) types.NamespacedName {
	return types.NamespacedName{Namespace: mirror.Namespace, Name: mirror.Spec.Credentials}
}

// pending has the registry asked again after a while if it needs more time.
func pending(err error) error {
	if errors.Is(err, registry.ErrPending) {
		return espalier.NotReady("Pending", "%v", err).RetryAfter(10 * time.Second)
	}
	return err
}
