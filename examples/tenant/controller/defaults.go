package controller

import (
	"context"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/espalier-dev/espalier"
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

// The ConfigMap that the tenant names, and the defaults that are in it.
var (
	configMapStash = reconcilers.NewStasher[*corev1.ConfigMap]("tenancy.example.com/configmap")
	defaultsStash  = reconcilers.NewStasher[defaults]("tenancy.example.com/defaults")
)

// Defaults reads the ConfigMap of defaults that the tenant names, and watches it. The nodes after it find the defaults
// in the stash if they are valid.
//
// The config is the one of the tree. The ConfigMaps are on the hub, unless the hub is nil.
func Defaults(config reconcilers.Config, hub cluster.Cluster) node {
	nodes := espalier.Steps(
		espalier.Reads("ConfigMap", configMapStash, keyOfDefaults).Optional(),
		espalier.Runs("Defaults", resolveDefaults).Reports(v1alpha1.DefaultsResolved),
	)
	if hub == nil {
		return nodes
	}
	// Each config of the hub has clients of its own, so it is made once.
	config = config.WithCluster(hub)
	return &reconcilers.WithConfig[*v1alpha1.Tenant]{
		Name:       "Hub",
		Config:     func(context.Context, reconcilers.Config) (reconcilers.Config, error) { return config, nil },
		Reconciler: nodes,
	}
}

func keyOfDefaults(_ context.Context, tenant *v1alpha1.Tenant) types.NamespacedName {
	return types.NamespacedName(tenant.Spec.DefaultsRef)
}

func resolveDefaults(ctx context.Context, tenant *v1alpha1.Tenant) error {
	key := keyOfDefaults(ctx, tenant)
	if !configMapStash.Has(ctx) {
		return espalier.NotReady("NotFound", "there is no ConfigMap %s", key)
	}
	parsed, problems := parseDefaults(configMapStash.RetrieveOrDie(ctx).Data)
	if len(problems) > 0 {
		return espalier.NotReady("Invalid", "ConfigMap %s: %s", key, problems.ToAggregate())
	}
	defaultsStash.Store(ctx, parsed)
	return nil
}
