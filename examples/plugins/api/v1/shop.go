package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/apis"
)

// Shop is a web shop, which asks for a database and for a queue. What these consist of is the matter of plugins.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Database",type=string,JSONPath=`.status.conditions[?(@.type=="DatabaseReady")].reason`
// +kubebuilder:printcolumn:name="Queue",type=string,JSONPath=`.status.conditions[?(@.type=="QueueReady")].reason`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 30",message="the name must not be longer than 30 characters: others are made of it"
type Shop struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// +required
	Spec ShopSpec `json:"spec"`
	// +optional
	Status ShopStatus `json:"status,omitzero"`
}

// ShopSpec says what a shop is to have. A plugin reads the part that concerns it.
type ShopSpec struct {
	// +required
	Database Database `json:"database"`
	// Queue is what the shop sends orders by. Default: it has none.
	// +optional
	Queue *Queue `json:"queue,omitempty"`
}

// Database says which database a shop has.
type Database struct {
	// Type is that of the capability.
	// +optional
	// +kubebuilder:default=postgres
	Type string `json:"type,omitempty"`
	// Version is one that a plugin has. Default: any.
	// +optional
	Version string `json:"version,omitempty"`
	// MemoryMi is how much memory it has, in MiB.
	// +optional
	// +kubebuilder:default=256
	// +kubebuilder:validation:Minimum=1
	MemoryMi int64 `json:"memoryMi,omitempty"`
}

// Queue says which queues a shop has.
type Queue struct {
	// Type is that of the capability.
	// +optional
	// +kubebuilder:default=rabbit
	Type string `json:"type,omitempty"`
	// Names are those of the queues.
	// +optional
	// +listType=atomic
	Names []string `json:"names,omitempty"`
}

// The conditions of a shop.
const (
	Ready = "Ready"
	// FrontReady reports whether the Service is there by which people reach the shop.
	FrontReady = "FrontReady"
	// DatabaseReady reports how the database is.
	DatabaseReady = "DatabaseReady"
	// QueueReady reports how the queues are.
	QueueReady = "QueueReady"
)

// ShopStatus says how a shop is, and which objects it has from plugins.
type ShopStatus struct {
	apis.Status      `json:",inline"`
	apis.ItemsStatus `json:",inline"`
}

// ShopList is a list of shops.
//
// +kubebuilder:object:root=true
type ShopList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Shop `json:"items"`
}
