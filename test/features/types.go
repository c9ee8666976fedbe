// Package features has the operator of an application that consists of features: parts that wait for each other, that
// hand values on, that have a health of their own, and that differ by version.
//
// +kubebuilder:object:generate=true
// +groupName=apps.example.com
// +versionName=v1
package features

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/espalier-dev/espalier/apis"
)

//go:generate controller-gen crd paths=. output:crd:dir=crd

// App is an application.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
type App struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// +required
	Spec AppSpec `json:"spec"`
	// +optional
	Status AppStatus `json:"status,omitzero"`
}

// AppSpec says what an application is to be.
type AppSpec struct {
	// +required
	// +kubebuilder:validation:Enum="1.0.0";"1.5.0";"2.0.0-rc.1";"2.0.0"
	Version string `json:"version"`
	// Tracing has the pods traced, by a container of their own.
	// +optional
	Tracing bool `json:"tracing,omitempty"`
	// Metrics has the application measured. It needs version 1.5.
	// +optional
	Metrics bool `json:"metrics,omitempty"`
	// Suspended has nothing run.
	// +optional
	Suspended bool `json:"suspended,omitempty"`
	// Domain is the name that a certificate is asked for. Empty: none is.
	// +optional
	// +kubebuilder:validation:Enum="a.example.com";"b.example.com"
	Domain string `json:"domain,omitempty"`
}

// AppStatus says how an application is.
type AppStatus struct {
	apis.Status          `json:",inline"`
	apis.LifecycleStatus `json:",inline"`
}

// AppList is a list of applications.
//
// +kubebuilder:object:root=true
type AppList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []App `json:"items"`
}

// NewScheme returns a scheme with the types of this package and those of Kubernetes.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	version := schema.GroupVersion{Group: "apps.example.com", Version: "v1"}
	scheme.AddKnownTypes(version, &App{}, &AppList{})
	metav1.AddToGroupVersion(scheme, version)
	return scheme, clientgoscheme.AddToScheme(scheme)
}
