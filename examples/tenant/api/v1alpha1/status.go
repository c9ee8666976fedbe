package v1alpha1

import "github.com/espalier-dev/espalier/apis"

// The conditions of a tenant: one for each part, summed up by Ready.
const (
	// DefaultsResolved reports whether the ConfigMap of defaults is there and makes sense.
	DefaultsResolved = "DefaultsResolved"
	// NamespaceReady reports whether the namespace is there and the tenant's own.
	NamespaceReady = "NamespaceReady"
	// QuotaReady reports whether the quota is in force.
	QuotaReady = "QuotaReady"
	// LimitsReady reports whether containers get default limits.
	LimitsReady = "LimitsReady"
	// MembersReady reports whether the members may do what their role says.
	MembersReady = "MembersReady"
	// NetworkReady reports whether the network is isolated, or open, as asked.
	NetworkReady = "NetworkReady"
	// Registered reports whether the directory lists the tenant.
	Registered = "Registered"
)

// TenantStatus says what a tenant has.
type TenantStatus struct {
	apis.Status `json:",inline"`
}
