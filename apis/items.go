package apis

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ItemsStatus is what has to be remembered of nodes that run once for each item, by key. A resource with such nodes
// embeds it in its status with `json:",inline"`.
//
// +kubebuilder:object:generate=true
type ItemsStatus struct {
	// ForEach has a record of each node that runs for items.
	// +optional
	// +listType=map
	// +listMapKey=name
	ForEach []ForEachStatus `json:"forEach,omitempty"`
	// ItemComponents has the status of each component of an item.
	// +optional
	// +listType=map
	// +listMapKey=name
	ItemComponents []ItemComponentStatus `json:"itemComponents,omitempty"`
}

// ItemComponentStatus is the status of a component of an item.
//
// +kubebuilder:object:generate=true
type ItemComponentStatus struct {
	// Name is the name of the node. The key of the item follows in brackets.
	Name            string `json:"name"`
	ComponentStatus `json:",inline"`
}

// ForEachStatus is the record of one node that runs for items.
//
// +kubebuilder:object:generate=true
type ForEachStatus struct {
	// Name is the name of the node. Within an item of another node, the key of that item follows in brackets.
	Name string `json:"name"`
	// Keys are the keys of the items for which something may exist, sorted. A key is here before anything is made for
	// its item, and until all of that is gone.
	// +optional
	// +listType=set
	Keys []string `json:"keys,omitempty"`
	// NotReady are the items that are not as they should be, the worst ones first, at most ten.
	// +optional
	// +listType=atomic
	NotReady []ItemStatus `json:"notReady,omitempty"`
	// NotReadyCount is how many items are not as they should be.
	// +optional
	NotReadyCount int32 `json:"notReadyCount,omitempty"`
	// Source is the plugin that has said last which items there are. It is empty for items that no plugin gives.
	// +optional
	Source string `json:"source,omitempty"`
	// SourceGeneration is the generation of the resource for which it has said so.
	// +optional
	SourceGeneration int64 `json:"sourceGeneration,omitempty"`
}

// ItemStatus says how one item is.
//
// +kubebuilder:object:generate=true
type ItemStatus struct {
	// Key is the key of the item.
	Key string `json:"key"`
	// Condition is the type of the condition that says so. It is empty if an error does, and for an item that is gone.
	// +optional
	Condition string `json:"condition,omitempty"`
	// Status is the status of that condition. It is False for an error, and Unknown for an item that is gone.
	Status metav1.ConditionStatus `json:"status"`
	// Reason says in one word why.
	Reason string `json:"reason"`
	// Message says why.
	// +optional
	Message string `json:"message,omitempty"`
}
