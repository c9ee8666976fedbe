package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/apis"
)

// Shop is a web shop: a Deployment, a Service, a host under which people reach it, and work that is done on a schedule.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Host",type=string,JSONPath=`.spec.host`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
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

// ShopSpec says what a shop is to be.
type ShopSpec struct {
	// Image is what the shop and its workers run.
	// +required
	// +kubebuilder:validation:MinLength=1
	Image string `json:"image"`
	// Replicas is the number of pods of the shop.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	Replicas int32 `json:"replicas"`
	// Host is the name under which people reach the shop. Empty: the shop has no Ingress and is not registered.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Host string `json:"host,omitempty"`
	// Settings is the name of a ConfigMap in the namespace of the shop. Its data is the environment of the shop and of
	// its workers. Empty: no settings.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Settings string `json:"settings,omitempty"`
	// Workers do work on a schedule.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Workers []Worker `json:"workers,omitempty"`
	// Database is what the shop keeps its data in. Default: none. Only the operator of examples/shop/plugins reads it.
	// +optional
	Database *Database `json:"database,omitempty"`
	// Queue is what the shop sends orders by. Default: none. Only the operator of examples/shop/plugins reads it.
	// +optional
	Queue *Queue `json:"queue,omitempty"`
}

// Worker does work on a schedule.
type Worker struct {
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
	// Schedule is in the format of a CronJob.
	// +required
	// +kubebuilder:validation:MinLength=1
	Schedule string `json:"schedule"`
	// Args are the arguments of the image.
	// +optional
	// +listType=atomic
	Args []string `json:"args,omitempty"`
}

// Database says which database a shop has.
type Database struct {
	// Type is the type of the capability: database/postgres has the type postgres.
	// +optional
	// +kubebuilder:default=postgres
	Type string `json:"type,omitempty"`
	// Version is a version that a plugin has. Default: any.
	// +optional
	Version string `json:"version,omitempty"`
	// MemoryMi is the memory of the database, in MiB.
	// +optional
	// +kubebuilder:default=256
	// +kubebuilder:validation:Minimum=1
	MemoryMi int64 `json:"memoryMi,omitempty"`
}

// Queue says which queues a shop has.
type Queue struct {
	// Type is the type of the capability: queue/rabbit has the type rabbit.
	// +optional
	// +kubebuilder:default=rabbit
	Type string `json:"type,omitempty"`
	// Names are the names of the queues.
	// +optional
	// +listType=atomic
	Names []string `json:"names,omitempty"`
}

// The conditions of a shop: one for each part, summed up by Ready.
const (
	Ready = "Ready"
	// SettingsFound reports whether the ConfigMap of settings is there.
	SettingsFound = "SettingsFound"
	// DeploymentReady reports whether all pods of the shop are available.
	DeploymentReady = "DeploymentReady"
	// ServiceReady reports whether the Service is there.
	ServiceReady = "ServiceReady"
	// IngressReady reports whether the Ingress is there, or not there, as asked.
	IngressReady = "IngressReady"
	// WorkersReady reports whether each worker has its CronJob.
	WorkersReady = "WorkersReady"
	// Registered reports whether the host is registered for the shop.
	Registered = "Registered"
	// DatabaseReady reports how the database is. Only the operator of examples/shop/plugins sets this, and QueueReady.
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
