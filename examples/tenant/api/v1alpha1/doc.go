// Package v1alpha1 is the API by which tenants are ordered: a [Tenant] is a namespace with a quota, limits, members,
// and an entry in the directory of the company.
//
// +kubebuilder:object:generate=true
// +groupName=tenancy.example.com
package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GroupVersion is the group and version of this API.
var GroupVersion = schema.GroupVersion{Group: "tenancy.example.com", Version: "v1alpha1"}

// AddToScheme makes the types of this API known to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Tenant{}, &TenantList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
