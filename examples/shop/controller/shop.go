// Package controller gives each shop what it is to have. [New] returns the tree. Each part of a shop is a node that is
// tested alone.
package controller

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier"
	v1 "github.com/espalier-dev/espalier/examples/shop/api/v1"
	"github.com/espalier-dev/espalier/examples/shop/registry"
	"github.com/espalier-dev/espalier/reconcilers"
)

// New returns the root of the tree. A host that belongs to somebody else is asked for again after the interval retry.
// More parts come last.
func New(
	config reconcilers.Config, hosts registry.Registry, retry time.Duration, more ...Part,
) *reconcilers.ResourceReconciler[*v1.Shop] {
	parts := []Part{Settings(), Deployment(), Service(), Ingress(), Workers(), Registration(hosts, retry)}
	return espalier.For(config, append(parts, more...)...)
}

// Part is a part of the tree. Each can be tested alone.
type Part = reconcilers.SubReconciler[*v1.Shop]

// settings has the ConfigMap that the node Settings has read, if the shop names one.
var settings = reconcilers.NewStasher[*corev1.ConfigMap]("shop.example.com/settings")

// Settings reads the ConfigMap of settings. The nodes after it wait until it is there.
func Settings() Part {
	return espalier.Reads("Settings", settings, func(_ context.Context, shop *v1.Shop) types.NamespacedName {
		return types.NamespacedName{Namespace: shop.Namespace, Name: shop.Spec.Settings}
	}).Reports(v1.SettingsFound)
}

// checksum changes with the data of the settings, so that the pods are replaced then.
func checksum(ctx context.Context) (string, error) {
	var data map[string]string
	if settings.Has(ctx) {
		data = settings.RetrieveOrDie(ctx).Data
	}
	encoded, err := json.Marshal(data)
	return fmt.Sprintf("%x", sha256.Sum256(encoded)), err
}

// Registration registers the host of the shop once its Ingress is there. It keeps a deleted shop until it has released
// the host.
func Registration(hosts registry.Registry, retry time.Duration) Part {
	unregister := func(ctx context.Context, shop *v1.Shop) error {
		if err := hosts.Unregister(ctx, owner(shop)); err != nil {
			return fmt.Errorf("unable to unregister the shop: %w", err)
		}
		return nil
	}
	register := func(ctx context.Context, shop *v1.Shop) error {
		if shop.Spec.Host == "" {
			return unregister(ctx, shop)
		}
		err := hosts.Register(ctx, owner(shop), shop.Spec.Host)
		var taken *registry.TakenError
		if errors.As(err, &taken) {
			return espalier.NotReadyAfter(retry, "HostTaken", "%s", taken)
		}
		if err != nil {
			return fmt.Errorf("unable to register the shop: %w", err)
		}
		return nil
	}
	return espalier.Runs("Registration", register).After("Ingress").
		Reports(v1.Registered).
		Finalizes("shop.example.com/registration", unregister)
}

// owner is what the registry knows a shop by.
func owner(shop *v1.Shop) string { return client.ObjectKeyFromObject(shop).String() }
