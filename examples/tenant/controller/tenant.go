// Package controller onboards tenants. What it does is the tree in [New]; each part of a tenant is a file of its own,
// and a node of the tree that can be tested alone.
package controller

import (
	"context"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/espalier-dev/espalier"
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

// node is a part of the tree. Each can be tested alone.
type node = reconcilers.SubReconciler[*v1alpha1.Tenant]

// New returns the root of the tree that gives each tenant what it is to have.
func New(config reconcilers.Config, options Options) *reconcilers.ResourceReconciler[*v1alpha1.Tenant] {
	return espalier.For(config,
		Defaults(config, options.DefaultsCluster),
		Namespace(options.ReservedNames),
		espalier.WhenTrue(v1alpha1.NamespaceReady,
			// While the defaults are not known, what was made of them before stays as it is.
			espalier.WhenTrue(v1alpha1.DefaultsResolved,
				Quota(),
				Limits(),
				Members(),
			),
			Isolation(),
		),
		Outage(options.DirectoryInterval, &reconcilers.WithFinalizer[*v1alpha1.Tenant]{
			Name:      "Listed",
			Finalizer: v1alpha1.GroupVersion.Group + "/directory",
			Reconciler: espalier.Steps(
				Registration(options.Directory),
				Unregistration(options.Directory),
				&reconcilers.IfThen[*v1alpha1.Tenant]{
					Name: "IsListed",
					If:   isListed,
					Then: Memberships(options.Directory),
				},
			),
		}),
	)
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

// isListed reports whether the directory lists a tenant that is not being deleted. The members of a tenant that is
// being deleted go with its entry.
func isListed(ctx context.Context, tenant *v1alpha1.Tenant) bool {
	return tenant.DeletionTimestamp == nil && isTrue(tenant, v1alpha1.Registered)
}
