package v1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/apis"
)

// Mirror is a caching proxy of a site.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
type Mirror struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// +required
	Spec MirrorSpec `json:"spec"`
	// +optional
	Status MirrorStatus `json:"status,omitzero"`
}

// MirrorSpec says what a mirror is to be.
type MirrorSpec struct {
	// Upstream is the address of the site.
	// +required
	Upstream string `json:"upstream"`
	// Image is what the pods run. Default: the one of the release of the operator.
	// +optional
	Image string `json:"image,omitempty"`
	// Replicas is the number of pods.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3
	Replicas int32 `json:"replicas"`
	// Storage is what each pod has for its cache. It cannot be changed.
	// +optional
	// +kubebuilder:default="10Gi"
	Storage resource.Quantity `json:"storage,omitzero"`
	// Credentials is the name of a Secret with what the site asks for. Empty: the site asks for nothing.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Credentials string `json:"credentials,omitempty"`
	// Peers are the applications that may use the mirror, by their label app.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:items:MaxLength=20
	Peers []string `json:"peers,omitempty"`
	// Prune is when the cache is cleaned. Empty: never.
	// +optional
	// +kubebuilder:validation:Enum="@daily";"@weekly"
	Prune string `json:"prune,omitempty"`
}

// The conditions of a mirror: one for each part, summed up by Ready.
const (
	Ready            = "Ready"
	ConfigReady      = "ConfigReady"
	ServiceReady     = "ServiceReady"
	PoliciesReady    = "PoliciesReady"
	PruneReady       = "PruneReady"
	BudgetReady      = "BudgetReady"
	CredentialsFound = "CredentialsFound"
	StatefulSetReady = "StatefulSetReady"
	// Registered reports whether the registry knows the mirror, which it learns once the pods are ready.
	Registered = "Registered"
)

// MirrorStatus says how a mirror is.
type MirrorStatus struct {
	apis.Status `json:",inline"`
	// ReadyReplicas is the number of pods that are ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`
}

// MirrorList is a list of mirrors.
//
// +kubebuilder:object:root=true
type MirrorList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Mirror `json:"items"`
}
