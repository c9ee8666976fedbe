// Package shop has the tables that a test of the harness updates, in a copy.
package shop

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// Shop is a resource whose tests are in its own package.
type Shop struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ShopSpec   `json:"spec,omitempty"`
	Status ShopStatus `json:"status,omitempty"`
}

// ShopSpec is what a shop is to be.
type ShopSpec struct {
	Size int `json:"size,omitempty"`
}

// ShopStatus is what a shop is.
type ShopStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	Seen       *Visit             `json:"seen,omitempty"`
}

// Visit is a part of a status.
type Visit struct {
	By string `json:"by,omitempty"`
}

// DeepCopyObject implements runtime.Object.
func (s *Shop) DeepCopyObject() runtime.Object {
	c := *s
	c.ObjectMeta = *s.ObjectMeta.DeepCopy()
	c.Status.Conditions = append([]metav1.Condition(nil), s.Status.Conditions...)
	if s.Status.Seen != nil {
		c.Status.Seen = new(*s.Status.Seen)
	}
	return &c
}

// NewScheme returns a scheme with shops.
func NewScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		panic(err)
	}
	version := schema.GroupVersion{Group: "example.com", Version: "v1"}
	scheme.AddKnownTypes(version, &Shop{})
	metav1.AddToGroupVersion(scheme, version)
	return scheme
}

// types has the name of a package that literals need.
var types = []string{"corner"}
