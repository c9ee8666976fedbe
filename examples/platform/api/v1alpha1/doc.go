// Package v1alpha1 is the API by which a platform is ordered: a [Platform] is a release of some software that comes
// with a type of its own, and with features that a release has or has not.
//
// +kubebuilder:object:generate=true
// +groupName=platform.example.com
package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GroupVersion is the group and version of this API.
var GroupVersion = schema.GroupVersion{Group: "platform.example.com", Version: "v1alpha1"}

// AddToScheme makes the types of this API known to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Platform{}, &PlatformList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
