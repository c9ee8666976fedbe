// Package dependents has the operator of a service that consists of objects of all sorts: an account with its rights, a
// Secret, a Deployment, and the capability that a user has made for it.
//
// +kubebuilder:object:generate=true
// +groupName=services.example.com
// +versionName=v1
package dependents

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/espalier-dev/espalier/apis"
)

//go:generate controller-gen crd paths=. output:crd:dir=crd

// Service is what runs.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
type Service struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// +required
	Spec ServiceSpec `json:"spec"`
	// +optional
	Status ServiceStatus `json:"status,omitzero"`
}

// ServiceSpec says what a service is to be.
type ServiceSpec struct {
	// Runtime is what the service runs on. Default: java.
	// +optional
	// +kubebuilder:validation:Enum=java;node
	Runtime string `json:"runtime,omitempty"`
	// Port is where it listens. Default: 8080. Below 1024, the service is not valid.
	// +optional
	// +kubebuilder:validation:Enum=80;8080;9090
	Port int32 `json:"port,omitempty"`
	// Capability is the name of what a user has made for the service. Empty: it needs nothing.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Capability string `json:"capability,omitempty"`
}

// ServiceStatus says how a service is.
type ServiceStatus struct {
	apis.Status `json:",inline"`
	// Available is the number of pods that serve.
	// +optional
	Available int32 `json:"available,omitempty"`
}

// ServiceList is a list of services.
//
// +kubebuilder:object:root=true
type ServiceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Service `json:"items"`
}

// Capability is something that a user makes for services, such as a database.
//
// +kubebuilder:object:root=true
type Capability struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// Address is where it answers. Empty: it is not there yet.
	// +optional
	Address string `json:"address,omitempty"`
}

// CapabilityList is a list of capabilities.
//
// +kubebuilder:object:root=true
type CapabilityList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Capability `json:"items"`
}

// NewScheme returns a scheme with the types of this package and those of Kubernetes.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	version := schema.GroupVersion{Group: "services.example.com", Version: "v1"}
	scheme.AddKnownTypes(version, &Service{}, &ServiceList{}, &Capability{}, &CapabilityList{})
	metav1.AddToGroupVersion(scheme, version)
	return scheme, clientgoscheme.AddToScheme(scheme)
}
