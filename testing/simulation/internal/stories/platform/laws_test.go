package platform_test

import (
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/examples/platform/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/platform/controller"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/testing/simulation"
	"github.com/espalier-dev/espalier/testing/simulation/internal/stories"
)

const (
	ownerID   = controller.Prefix + "/" + generator.AnnotationOwnerID
	finalizer = controller.Prefix + "/component"
)

// children are the objects of the platform that are not of the component.
var children = []string{
	controller.InformationName(name), controller.IndexName(name), controller.SearchName(name),
	controller.TelemetryName(name),
}

// laws hold at each write of the operator.
func laws() []simulation.Invariant {
	isPlatform := func(obj *unstructured.Unstructured) bool { return obj.GetKind() == "Platform" }
	return []simulation.Invariant{
		{Name: "L2: recorded before created, with the finalizer on (L3)", Check: isRecorded},
		stories.InventoryCovers(v1alpha1.GroupVersion.WithKind("Platform")),
		{Name: "L3: the finalizer goes when all that it guards is gone", Check: isLastToGo},
		simulation.NothingForeign(isPlatform), // L4
		{Name: "L5: a type that others use is not deleted", Check: isUnused},
	}
}

// isRecorded checks that an object of the component that is created is in the inventory, and that the finalizer is on.
func isRecorded(write simulation.Write, state simulation.State) error {
	if !write.ByOperator() || write.Verb() != "create" {
		return nil
	}
	platform := newPlatform("")
	if write.Kind.Kind == "Event" || slices.Contains(children, write.Name) {
		return nil // not of the component
	}
	if !state.Get(platform) {
		return fmt.Errorf("there is no platform")
	}
	if !slices.Contains(platform.Finalizers, finalizer) {
		return fmt.Errorf("there is no finalizer in %q", platform.Finalizers)
	}
	if !slices.ContainsFunc(platform.Status.Inventory, func(r apis.InventoryRecord) bool {
		return r.Group == write.Kind.Group && r.Kind == write.Kind.Kind && r.Namespace == write.Namespace &&
			r.Name == write.Name
	}) {
		return fmt.Errorf("the inventory does not name the object")
	}
	return nil
}

// isLastToGo checks that no object of the component is left when the finalizer goes.
func isLastToGo(write simulation.Write, state simulation.State) error {
	var before, after v1alpha1.Platform
	if !write.Before(&before) || write.After(&after) && slices.Contains(after.Finalizers, finalizer) {
		return nil
	}
	if !slices.Contains(before.Finalizers, finalizer) {
		return nil
	}
	for _, kind := range kinds[1:] {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		state.List(list)
		for _, obj := range list.Items {
			if obj.GetAnnotations()[ownerID] != "" {
				return fmt.Errorf("there is still the %s %s", obj.GetKind(), client.ObjectKeyFromObject(&obj))
			}
		}
	}
	return nil
}

// isUnused checks that only instances of the platform are left when their type is deleted.
func isUnused(write simulation.Write, state simulation.State) error {
	var definition apiextensionsv1.CustomResourceDefinition
	stays := write.After(&definition) && definition.DeletionTimestamp == nil
	if !write.ByOperator() || stays || !write.Before(&definition) {
		return nil
	}
	dashboards := &unstructured.UnstructuredList{}
	dashboards.SetGroupVersionKind(controller.DashboardKind)
	state.List(dashboards)
	for _, obj := range dashboards.Items {
		if obj.GetAnnotations()[ownerID] == "" {
			return fmt.Errorf("there is the Dashboard %s", client.ObjectKeyFromObject(&obj))
		}
	}
	return nil
}
