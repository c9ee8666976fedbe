package v9alpha9

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/apis"
)

// Placeholder runs an image.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=placeholders,scope=Namespaced
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 60",message="others are named after it"
type Placeholder struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// +required
	Spec PlaceholderSpec `json:"spec"`
	// Until the operator has seen it, the status is about no generation, so that nobody takes it for one that is done.
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status PlaceholderStatus `json:"status,omitzero"`
}

// PlaceholderSpec says what is wanted. More of what a component can do is for its users once the types of package
// generator are embedded here: PlacementSpec, ClientSpec, ImpersonationSpec, PolicySpec, SuspensionSpec, TimeoutSpec,
// ValuesFromSpec and others.
type PlaceholderSpec struct {
	// Image is what the pods run.
	// +required
	// +kubebuilder:validation:MinLength=1
	Image string `json:"image"`
	//scaffold:if cluster
	//+// Namespace is where the objects are.
	//+// +required
	//+// +kubebuilder:validation:MinLength=1
	//+// +kubebuilder:validation:MaxLength=63
	//+Namespace string `json:"namespace"`
	//scaffold:end
	// Replicas is the number of pods.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	Replicas int32 `json:"replicas"`
}

// ToUnstructured returns the parameters of the generator.
func (s *PlaceholderSpec) ToUnstructured() map[string]any {
	return map[string]any{"image": s.Image, "replicas": s.Replicas}
}

// PlaceholderStatus says how it is. The conditions have the generation that they were observed at.
type PlaceholderStatus struct {
	apis.ComponentStatus `json:",inline"`
}

// PlaceholderList is a list.
//
// +kubebuilder:object:root=true
type PlaceholderList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Placeholder `json:"items"`
}

//scaffold:if cluster

//+// GetDeploymentNamespace returns where the objects are.
//+func (s *PlaceholderSpec) GetDeploymentNamespace() string { return s.Namespace }
//+
//+// GetDeploymentName leaves the name to the resource.
//+func (s *PlaceholderSpec) GetDeploymentName() string { return "" }
//scaffold:end
