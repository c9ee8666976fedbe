package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/reconcilers"
)

// defaults are what tenants have unless they say otherwise. The ConfigMap has these keys:
//
//	quota.RESOURCE: QUANTITY    what all pods of a tenant may use together
//	limits.RESOURCE: QUANTITY   what a container may use that does not say
//	role.NAME: CLUSTERROLE      what a role of members means
type defaults struct {
	Quota  corev1.ResourceList
	Limits corev1.ResourceList
	Roles  map[string]string
}

const notADefault = "is not a default: use quota.RESOURCE, limits.RESOURCE or role.NAME"

// parseDefaults finds all that is wrong, in the order of the keys.
func parseDefaults(data map[string]string) (defaults, field.ErrorList) {
	parsed := defaults{Quota: corev1.ResourceList{}, Limits: corev1.ResourceList{}, Roles: map[string]string{}}
	var problems field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(data)) {
		path, value := field.NewPath("data").Key(key), data[key]
		topic, name, _ := strings.Cut(key, ".")
		switch {
		case name == "":
			problems = append(problems, field.Invalid(path, value, notADefault))
		case topic == "role" && value == "":
			problems = append(problems, field.Required(path, "name a ClusterRole"))
		case topic == "role":
			parsed.Roles[name] = value
		case topic == "quota", topic == "limits":
			quantity, err := resource.ParseQuantity(value)
			if err != nil {
				problems = append(problems, field.Invalid(path, value, "is not a quantity"))
				continue
			}
			list := map[string]corev1.ResourceList{"quota": parsed.Quota, "limits": parsed.Limits}[topic]
			list[corev1.ResourceName(name)] = quantity
		default:
			problems = append(problems, field.Invalid(path, value, notADefault))
		}
	}
	return parsed, problems
}

var defaultsStash = reconcilers.NewStasher[defaults]("tenancy.example.com/defaults")

// Defaults reads the ConfigMap of defaults that the tenant names, and watches it. The nodes after it find the defaults
// in the stash if they are valid.
//
// The config is the one of the tree. The ConfigMaps are on the hub, unless the hub is nil.
func Defaults(config reconcilers.Config, hub cluster.Cluster) reconcilers.SubReconciler[*v1alpha1.Tenant] {
	node := &reconcilers.SyncReconciler[*v1alpha1.Tenant]{
		Name: "Defaults",
		Uses: []reconcilers.Access{{Object: &corev1.ConfigMap{}, Verbs: []string{"get", "list", "watch"}}},
		Sync: resolveDefaults,
	}
	if hub == nil {
		return node
	}
	// Each config of the hub has clients of its own, so it is made once.
	config = config.WithCluster(hub)
	return &reconcilers.WithConfig[*v1alpha1.Tenant]{
		Name:       "Hub",
		Config:     func(context.Context, reconcilers.Config) (reconcilers.Config, error) { return config, nil },
		Reconciler: node,
	}
}

func resolveDefaults(ctx context.Context, tenant *v1alpha1.Tenant) error {
	conditions := tenant.Status.Manage(ctx)
	key := types.NamespacedName(tenant.Spec.DefaultsRef)
	var configMap corev1.ConfigMap
	err := reconcilers.RetrieveConfigOrDie(ctx).TrackAndGet(ctx, key, &configMap)
	if apierrors.IsNotFound(err) {
		conditions.MarkFalse(v1alpha1.DefaultsResolved, "NotFound", "there is no ConfigMap %s", key)
		return nil
	}
	if err != nil {
		return fmt.Errorf("unable to read the ConfigMap %s of defaults: %w", key, err)
	}
	parsed, problems := parseDefaults(configMap.Data)
	if len(problems) > 0 {
		conditions.MarkFalse(v1alpha1.DefaultsResolved, "Invalid", "ConfigMap %s: %s", key, problems.ToAggregate())
		return nil
	}
	defaultsStash.Store(ctx, parsed)
	conditions.MarkTrue(v1alpha1.DefaultsResolved, "Resolved", "")
	return nil
}
