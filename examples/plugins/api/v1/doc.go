// Package v1 is the API by which a shop with a database and a queue is ordered: a [Shop].
//
// +kubebuilder:object:generate=true
// +groupName=market.example.com
package v1

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GroupVersion is the group and version of this API.
var GroupVersion = schema.GroupVersion{Group: "market.example.com", Version: "v1"}

// AddToScheme makes the types of this API known to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Shop{}, &ShopList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
