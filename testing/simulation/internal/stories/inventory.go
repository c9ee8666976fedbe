package stories

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/testing/simulation"
)

// InventoryCovers returns the invariant that each object with the mark of a component is in the inventory of a resource
// of a kind, from before the object exists until it is gone. The inventory has to be in the status.
func InventoryCovers(kind schema.GroupVersionKind) simulation.Invariant {
	return simulation.Invariant{
		Name: fmt.Sprintf("the inventory of %s has what is marked", kind.Kind),
		Check: func(w simulation.Write, s simulation.State) error {
			if w.Kind == kind.GroupKind() {
				return covered(kind, w, s)
			}
			if !w.ByOperator() || !marked(w.After) || marked(w.Before) {
				return nil
			}
			if !recorded(kind, w, s) {
				return fmt.Errorf("no %s has the object in its inventory", kind.Kind)
			}
			return nil
		},
	}
}

// covered returns an error if a write of a resource takes an object out of the inventory that is still there.
func covered(kind schema.GroupVersionKind, w simulation.Write, s simulation.State) error {
	var left apis.ComponentStatus
	after := newObject(kind)
	if w.After(after) {
		left = statusOf(after)
	}
	before := newObject(kind)
	if !w.Before(before) {
		return nil
	}
	for _, record := range statusOf(before).Inventory {
		obj := newObject(schema.GroupVersionKind{Group: record.Group, Version: record.Version, Kind: record.Kind})
		obj.SetNamespace(record.Namespace)
		obj.SetName(record.Name)
		if !has(left, record.Group, record.Kind, record.Namespace, record.Name) && s.Get(obj) && hasMark(obj) {
			return fmt.Errorf("%s %s/%s is not in the inventory any more", record.Kind, record.Namespace, record.Name)
		}
	}
	return nil
}

// recorded reports whether the object of a write is in an inventory.
func recorded(kind schema.GroupVersionKind, w simulation.Write, s simulation.State) bool {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind)
	s.List(list)
	for i := range list.Items {
		if has(statusOf(&list.Items[i]), w.Kind.Group, w.Kind.Kind, w.Namespace, w.Name) {
			return true
		}
	}
	return false
}

// has reports whether an object is in an inventory.
func has(status apis.ComponentStatus, group, kind, namespace, name string) bool {
	for _, r := range status.Inventory {
		if r.Group == group && r.Kind == kind && r.Namespace == namespace && r.Name == name {
			return true
		}
	}
	return false
}

func statusOf(obj *unstructured.Unstructured) apis.ComponentStatus {
	var status apis.ComponentStatus
	fields, _ := obj.Object["status"].(map[string]any)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &status); err != nil {
		panic(fmt.Sprintf("the status of %s %s: %v", obj.GetKind(), obj.GetName(), err))
	}
	return status
}

// marked reports whether there is an object, and it has the mark of a component.
func marked(read func(client.Object) bool) bool {
	obj := &unstructured.Unstructured{}
	return read(obj) && hasMark(obj)
}

// hasMark reports whether an object has the mark of a component, whatever its prefix.
func hasMark(obj *unstructured.Unstructured) bool {
	for name := range obj.GetAnnotations() {
		if strings.HasSuffix(name, "/"+generator.AnnotationOwnerID) {
			return true
		}
	}
	return false
}

func newObject(kind schema.GroupVersionKind) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(kind)
	return obj
}
