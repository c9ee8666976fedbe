package sharder

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// RingLabel is on the Lease of a shard. Its value is the name of the ring.
	RingLabel = "alpha.sharding.timebertt.dev/controllerring"
	// StateLabel is on the Lease of a shard. Its value is the state.
	StateLabel = "alpha.sharding.timebertt.dev/state"
	// Namespace is that of the sharder. By default, objects in it and in kube-system are not assigned.
	Namespace = "sharding-system"
)

// ShardLabel returns the label of an object that is assigned in a ring. Its value is the name of the shard.
func ShardLabel(ring string) string { return "shard.alpha.sharding.timebertt.dev/" + ring }

// DrainLabel returns the label by which a shard of a ring is asked to give an object back.
func DrainLabel(ring string) string { return "drain.alpha.sharding.timebertt.dev/" + ring }

// RingKind is the kind of a ControllerRing.
var RingKind = schema.GroupVersionKind{Group: "sharding.timebertt.dev", Version: "v1alpha1", Kind: "ControllerRing"}

// Ring is what the sharder reads of a ControllerRing.
type Ring struct {
	Name string
	Spec RingSpec
}

// RingSpec is the spec of a ControllerRing.
type RingSpec struct {
	Resources []RingResource `json:"resources,omitempty"`
	// NamespaceSelector selects the namespaces whose objects are assigned. Nil selects all but kube-system and
	// [Namespace].
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
}

// RingResource is a main resource of a ring, and the resources that it controls.
type RingResource struct {
	metav1.GroupResource `json:",inline"`
	ControlledResources  []metav1.GroupResource `json:"controlledResources,omitempty"`
}

// NewRing returns the ControllerRing that an object is.
func NewRing(obj *unstructured.Unstructured) (Ring, error) {
	ring := Ring{Name: obj.GetName()}
	spec, _, err := unstructured.NestedMap(obj.Object, "spec")
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(spec, &ring.Spec)
	}
	if err != nil {
		return Ring{}, fmt.Errorf("read the spec of ControllerRing %s: %w", obj.GetName(), err)
	}
	return ring, nil
}

// Object returns the object of a ring.
func (r Ring) Object() (*unstructured.Unstructured, error) {
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&r.Spec)
	if err != nil {
		return nil, fmt.Errorf("write the spec of ControllerRing %s: %w", r.Name, err)
	}
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	obj.SetGroupVersionKind(RingKind)
	obj.SetName(r.Name)
	return obj, nil
}

// namespaces returns the selector of the namespaces of the ring.
func (r Ring) namespaces() *metav1.LabelSelector {
	if r.Spec.NamespaceSelector != nil {
		return r.Spec.NamespaceSelector
	}
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn,
		Values: []string{metav1.NamespaceSystem, Namespace},
	}}}
}

// leases returns the selector of the Leases of the ring's shards.
func (r Ring) leases() labels.Selector { return labels.SelectorFromSet(labels.Set{RingLabel: r.Name}) }

// role is what a resource is in a ring.
type role string

const (
	noRole         role = ""
	mainRole       role = "main"
	controlledRole role = "controlled"
)

// roleOf returns the role of a resource at its admission. A resource of both roles is a main resource.
func (r Ring) roleOf(resource metav1.GroupResource) role {
	found := noRole
	for _, main := range r.Spec.Resources {
		if main.GroupResource == resource {
			return mainRole
		}
		if slices.Contains(main.ControlledResources, resource) {
			found = controlledRole
		}
	}
	return found
}
