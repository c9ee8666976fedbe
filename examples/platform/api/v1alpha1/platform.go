package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Platform is one release of the platform, in the namespace that it works in.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.version`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Installed")].message`
// +kubebuilder:printcolumn:name="Revision",type=integer,priority=1,JSONPath=`.status.revision`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="the name must not be longer than 63 characters: others are made of it"
type Platform struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// +required
	Spec PlatformSpec `json:"spec"`
	// +optional
	Status PlatformStatus `json:"status,omitzero"`
}

// PlatformSpec says what a platform is to be.
type PlatformSpec struct {
	// Version is the version of the release. The operator knows which releases exist.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=20
	Version string `json:"version"`
	// Features are those to have. All that the release has, if empty.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	Features []Feature `json:"features,omitempty"`
	// Search asks for the search over what the platform has. Without it, there is none.
	// +optional
	Search *Search `json:"search,omitempty"`
}

// Search says how the search is to be. Releases have it from 1.1 on.
type Search struct {
	// Suspended has nothing of the search run. What it has found stays.
	// +optional
	Suspended bool `json:"suspended,omitempty"`
}

// Feature is a part of the platform that can be left out.
//
// +kubebuilder:validation:Enum=Dashboards;Portal
type Feature string

const (
	// Dashboards brings the type Dashboard into the cluster, and a first one.
	Dashboards Feature = "Dashboards"
	// Portal tells people where to find what the platform has.
	Portal Feature = "Portal"
)

// ToUnstructured returns the spec as a map. With it, the spec is what the generator of the objects gets.
func (s *PlatformSpec) ToUnstructured() map[string]any {
	content := map[string]any{"version": s.Version}
	if len(s.Features) > 0 {
		features := make([]any, 0, len(s.Features))
		for _, feature := range s.Features {
			features = append(features, string(feature))
		}
		content["features"] = features
	}
	return content
}

// PlatformList is a list of platforms.
//
// +kubebuilder:object:root=true
type PlatformList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Platform `json:"items"`
}
