package component

import "github.com/espalier-dev/espalier/apis"

// The policies are part of the inventory, and so of package apis.
type (
	AdoptionPolicy          = apis.AdoptionPolicy
	ReconcilePolicy         = apis.ReconcilePolicy
	UpdatePolicy            = apis.UpdatePolicy
	DeletePolicy            = apis.DeletePolicy
	PrunePolicy             = apis.PrunePolicy
	MissingNamespacesPolicy = apis.MissingNamespacesPolicy
)
