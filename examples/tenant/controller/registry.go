package controller

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/reconcilers"
)

// RegistryName is the name of the ConfigMap that lists all tenants.
const RegistryName = "tenants"

// NewRegistry returns the root of the tree that keeps one ConfigMap with all tenants, for users who may not read
// Tenants. Each tenant has a key, and as its value what others may know, as JSON.
func NewRegistry(config reconcilers.Config, options Options) *reconcilers.AggregateReconciler[*corev1.ConfigMap] {
	return &reconcilers.AggregateReconciler[*corev1.ConfigMap]{
		Name:           "Registry",
		ControllerName: "registry",
		Config:         config,
		Request: reconcilers.Request{
			NamespacedName: types.NamespacedName{Namespace: options.RegistryNamespace, Name: RegistryName},
		},
		Reconciler: Listing(),
		MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) {
			current.Data = desired.Data
		},
	}
}

// Listing lists all tenants in the ConfigMap, and watches them. A tenant that is being deleted is not listed any more.
func Listing() reconcilers.SubReconciler[*corev1.ConfigMap] {
	return &reconcilers.SyncReconciler[*corev1.ConfigMap]{
		Name: "Listing",
		Uses: []reconcilers.Access{{Object: &v1alpha1.Tenant{}, Verbs: []string{"get", "list", "watch"}}},
		Sync: func(ctx context.Context, registry *corev1.ConfigMap) error {
			var tenants v1alpha1.TenantList
			if err := reconcilers.RetrieveConfigOrDie(ctx).TrackAndList(ctx, &tenants); err != nil {
				return fmt.Errorf("unable to list the tenants: %w", err)
			}
			data, err := registryOf(tenants.Items)
			if err != nil {
				return err
			}
			registry.Data = data
			return nil
		},
	}
}

// registryItem is what the registry says about a tenant.
type registryItem struct {
	DisplayName string                 `json:"displayName"`
	Owner       string                 `json:"owner"`
	Ready       metav1.ConditionStatus `json:"ready"`
}

func registryOf(tenants []v1alpha1.Tenant) (map[string]string, error) {
	registry := map[string]string{}
	for i := range tenants {
		tenant := &tenants[i]
		if tenant.DeletionTimestamp != nil {
			continue
		}
		ready := metav1.ConditionUnknown
		if condition := tenant.Status.GetCondition(apis.ConditionReady); condition != nil {
			ready = condition.Status
		}
		item := registryItem{DisplayName: displayNameOf(tenant), Owner: tenant.Spec.Owner, Ready: ready}
		text, err := json.Marshal(item)
		if err != nil {
			return nil, fmt.Errorf("unable to write down tenant %s: %w", tenant.Name, err)
		}
		registry[tenant.Name] = string(text)
	}
	return registry, nil
}
