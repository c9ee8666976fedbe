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
)

// ShopStatus says how a shop is.
type ShopStatus struct {
	apis.Status `json:",inline"`
}

// ShopList is a list of shops.
//
// +kubebuilder:object:root=true
type ShopList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Shop `json:"items"`
}
