// Package controller onboards tenants. What it does is the tree in [New]; each part of a tenant is a file of its own,
// and a node of the tree that can be tested alone.
package controller

import (
	"context"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/tenant/directory"
	"github.com/espalier-dev/espalier/reconcilers"
)

// Options are what the tree needs to know about its surroundings.
type Options struct {
	// Directory lists the tenants outside the cluster. Required.
	Directory directory.Directory

	// DirectoryInterval is how long to wait until a directory is asked again that does not answer. Default: 30 seconds.
	DirectoryInterval time.Duration

	// ReservedNames are names that no tenant may have, besides "default" and names that start with "kube-".
	ReservedNames []string

	// DefaultsCluster is where the ConfigMaps of defaults are, if that is another cluster than the one with the
	// tenants. It has to be started, such as by the manager. Optional.
	DefaultsCluster cluster.Cluster

	// RegistryNamespace is where the list of all tenants is kept. Required for [NewRegistry].
	RegistryNamespace string
}

// New returns the root of the tree that gives each tenant what it is to have.
func New(config reconcilers.Config, options Options) *reconcilers.ResourceReconciler[*v1alpha1.Tenant] {
	return &reconcilers.ResourceReconciler[*v1alpha1.Tenant]{
		Name:   "Tenant",
		Config: config,
		Reconciler: reconcilers.Sequence[*v1alpha1.Tenant]{
			Defaults(config, options.DefaultsCluster),
			Namespace(options.ReservedNames),
			&reconcilers.IfThen[*v1alpha1.Tenant]{
				Name: "HasNamespace",
				If:   hasNamespace,
				Then: reconcilers.Sequence[*v1alpha1.Tenant]{
					&reconcilers.IfThen[*v1alpha1.Tenant]{
						Name: "HasDefaults",
						If:   hasDefaults,
						Then: reconcilers.Sequence[*v1alpha1.Tenant]{
							Quota(),
							Limits(),
							Members(),
						},
					},
					&reconcilers.IfThen[*v1alpha1.Tenant]{
						Name: "Isolated",
						If:   isIsolated,
						Then: Isolation(),
						Else: NoIsolation(),
					},
				},
			},
			Outage(options.DirectoryInterval, &reconcilers.WithFinalizer[*v1alpha1.Tenant]{
				Name:      "Listed",
				Finalizer: v1alpha1.GroupVersion.Group + "/directory",
				Reconciler: reconcilers.Sequence[*v1alpha1.Tenant]{
					Registration(options.Directory),
					&reconcilers.IfThen[*v1alpha1.Tenant]{
						Name: "IsListed",
						If:   isListed,
						Then: Memberships(options.Directory),
					},
				},
			}),
		},
	}
}

// Describe prints all that the operator runs: the trees of its two roots, and those of its webhooks.
func Describe(options Options) string {
	var config reconcilers.Config
	var texts []string
	for _, root := range []reconcilers.Describer{
		New(config, options), NewRegistry(config, options), NewDefaulting(), NewValidation(options),
	} {
		texts = append(texts, root.Describe().String())
	}
	return strings.Join(texts, "\n")
}

// hasNamespace reports whether there is a namespace of the tenant's own to put things into. What is in the namespace of
// a tenant that is being deleted goes with the namespace.
func hasNamespace(ctx context.Context, tenant *v1alpha1.Tenant) bool {
	return tenant.DeletionTimestamp == nil && isTrue(tenant, v1alpha1.NamespaceReady)
}

// hasDefaults reports whether the defaults are known. While they are not, what was made of them before stays as it is.
func hasDefaults(ctx context.Context, tenant *v1alpha1.Tenant) bool {
	return defaultsStash.Has(ctx)
}

func isIsolated(ctx context.Context, tenant *v1alpha1.Tenant) bool {
	return tenant.Spec.Isolated
}

// isListed reports whether the directory lists a tenant that is not being deleted. The members of a tenant that is
// being deleted go with its entry.
func isListed(ctx context.Context, tenant *v1alpha1.Tenant) bool {
	return tenant.DeletionTimestamp == nil && isTrue(tenant, v1alpha1.Registered)
}
