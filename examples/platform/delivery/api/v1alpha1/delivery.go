package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/generator"
)

// Monitor is a release of the chart of the monitor.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Revision",type=integer,JSONPath=`.status.revision`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 40",message="the name must not be longer than 40 characters: others are made of it"
type Monitor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// +optional
	Spec DeliverySpec `json:"spec,omitzero"`
	// +optional
	Status apis.ComponentStatus `json:"status,omitzero"`
}

// MonitorList is a list of monitors.
//
// +kubebuilder:object:root=true
type MonitorList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Monitor `json:"items"`
}

// Agent is what the kustomization of the agent installs in another cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 40",message="the name must not be longer than 40 characters: others are made of it"
// +kubebuilder:validation:XValidation:rule="has(self.spec.kubeConfig) && has(self.spec.serviceAccountName)",message="an agent is for another cluster, and for a service account there: spec.kubeConfig and spec.serviceAccountName are required"
type Agent struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// +required
	Spec DeliverySpec `json:"spec"`
	// +optional
	Status apis.ComponentStatus `json:"status,omitzero"`
}

// AgentList is a list of agents.
//
// +kubebuilder:object:root=true
type AgentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Agent `json:"items"`
}

// DeliverySpec says what is delivered, to which cluster, and as which service account. The zero value is the software
// with its defaults, in the cluster of the resource, as the operator.
type DeliverySpec struct {
	generator.ClientSpec        `json:",inline"`
	generator.ImpersonationSpec `json:",inline"`

	// Values are those of the chart, or of the templates of the kustomization. Default: those of the software.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Values Values `json:"values,omitempty"`
}

// ToUnstructured returns the values. With it, they are what the generator gets.
func (s *DeliverySpec) ToUnstructured() map[string]any {
	return generator.UnstructurableMap(s.Values).ToUnstructured()
}

// Values are JSON values by name. What they may be is the matter of the software.
//
// +kubebuilder:object:generate=false
type Values map[string]any

// DeepCopyInto copies the values.
func (v Values) DeepCopyInto(out *Values) { *out = v.DeepCopy() }

// DeepCopy returns a copy.
func (v Values) DeepCopy() Values {
	if v == nil {
		return nil
	}
	return generator.UnstructurableMap(v).ToUnstructured()
}
