// Package v1alpha1 is the API by which software is delivered: a [Monitor] is what a Helm chart installs, and an [Agent]
// is what a kustomization installs in another cluster.
//
// +kubebuilder:object:generate=true
// +groupName=platform.example.com
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of this API.
var GroupVersion = schema.GroupVersion{Group: "platform.example.com", Version: "v1alpha1"}

// AddToScheme makes the types of this API known to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Monitor{}, &MonitorList{}, &Agent{}, &AgentList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
