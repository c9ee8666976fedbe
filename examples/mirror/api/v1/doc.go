// Package v1 is the API by which a caching proxy is ordered: a [Mirror].
//
// +kubebuilder:object:generate=true
// +groupName=mirror.example.com
package v1

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

//go:generate controller-gen crd paths=. output:crd:dir=../../config/crd

// GroupVersion is the group and version of this API.
var GroupVersion = schema.GroupVersion{Group: "mirror.example.com", Version: "v1"}

// AddToScheme makes the types of this API known to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Mirror{}, &MirrorList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// NewScheme returns a scheme with the types of this API and those of Kubernetes.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	return scheme, AddToScheme(scheme)
}
