// Package v9alpha9 is the API of the operator: a [Placeholder].
//
// +kubebuilder:object:generate=true
// +groupName=group.example.test
package v9alpha9

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of this API.
var GroupVersion = schema.GroupVersion{Group: "group.example.test", Version: "v9alpha9"}

// AddToScheme makes the types of this API known to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Placeholder{}, &PlaceholderList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
