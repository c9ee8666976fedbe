package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Tenant is a team that shares the cluster with others. It gets a namespace of its own name.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Isolated",type=boolean,JSONPath=`.spec.isolated`
// +kubebuilder:printcolumn:name="Role",type=string,priority=1,JSONPath=`.spec.role`
// +kubebuilder:printcolumn:name="Defaults",type=string,priority=1,JSONPath=`.spec.defaultsRef.name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$')",message="the name has to be one that a namespace can have"
type Tenant struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// +required
	Spec TenantSpec `json:"spec"`
	// +optional
	Status TenantStatus `json:"status,omitzero"`
}

// TenantSpec says what a tenant is to have.
//
// +kubebuilder:validation:XValidation:rule="has(self.role) || !has(self.members) || self.members.all(member, has(member.role))",message="each member needs a role: one of its own, or that of the tenant"
type TenantSpec struct {
	// DisplayName is what people call the tenant. The name, if empty.
	// +optional
	// +kubebuilder:validation:MaxLength=100
	DisplayName string `json:"displayName,omitempty"`

	// Owner is who answers for the tenant: an address that the directory lists.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	Owner string `json:"owner"`

	// DefaultsRef names the ConfigMap with what tenants have unless they say otherwise, and with the roles there are.
	// +required
	DefaultsRef DefaultsRef `json:"defaultsRef"`

	// Quota is what all pods of the tenant may use together. It goes before the defaults, resource by resource.
	// +optional
	Quota corev1.ResourceList `json:"quota,omitempty"`

	// Role is what members may do in the namespace that have no role of their own: one of those that the defaults
	// define.
	// +optional
	// +kubebuilder:validation:MinLength=1
	Role string `json:"role,omitempty"`

	// Members are those who may work in the namespace.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	Members []Member `json:"members,omitempty"`

	// Isolated keeps traffic from other namespaces away from the pods of this one.
	// +optional
	Isolated bool `json:"isolated,omitempty"`
}

// DefaultsRef names a ConfigMap.
type DefaultsRef struct {
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// Member is a person or a group of people, as the cluster knows them.
type Member struct {
	// +required
	// +kubebuilder:validation:Enum=User;Group
	Kind string `json:"kind"`
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Role is what the member may do in the namespace: one of those that the defaults define. That of the tenant, if
	// empty.
	// +optional
	// +kubebuilder:validation:MinLength=1
	Role string `json:"role,omitempty"`
}

// TenantList is a list of tenants.
//
// +kubebuilder:object:root=true
type TenantList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Tenant `json:"items"`
}
