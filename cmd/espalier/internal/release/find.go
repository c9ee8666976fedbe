package release

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/apis"
)

// Component is a component in a cluster: a release, or a resource of an operator.
type Component struct {
	// Object is the resource as it is shown.
	Object client.Object
	Kind   schema.GroupVersionKind
	Status apis.ComponentStatus
	// Operator wrote the status last, as a field manager; unknown if the API server has not kept who. It is empty for a
	// release.
	Operator string
	// Err says why it could not be read. The status is then empty.
	Err error
}

// Condition is the one that says how the component is.
func (c *Component) Condition() (reason, message string) {
	if c.Err != nil {
		return "Damaged", c.Err.Error()
	}
	if ready := meta.FindStatusCondition(c.Status.Conditions, apis.ConditionReady); ready != nil {
		return ready.Reason, ready.Message
	}
	return "", ""
}

// Find returns the components in a namespace, or in all if that is empty, in the order of their names: releases, and
// resources of the kinds that [Cluster.Kinds] finds. unseen says what could not be looked for.
func (c *Cluster) Find(ctx context.Context, namespace string) (found []Component, unseen []error, err error) {
	found, err = c.releases(ctx, namespace)
	if err != nil {
		return nil, nil, err
	}
	kinds, err := c.Kinds(ctx)
	if apierrs.IsForbidden(err) {
		return found, []error{fmt.Errorf("components of operators are not shown: %w", err)}, nil
	}
	if err != nil {
		return nil, nil, err
	}
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := c.Client.List(ctx, list, client.InNamespace(namespace))
		if err != nil {
			unseen = append(unseen, fmt.Errorf("each %s is not shown: %w", kind.Kind, err))
			continue
		}
		for i := range list.Items {
			found = append(found, ofOperator(&list.Items[i]))
		}
	}
	slices.SortStableFunc(found, func(a, b Component) int {
		return cmp.Or(cmp.Compare(a.Object.GetNamespace(), b.Object.GetNamespace()),
			cmp.Compare(a.Kind.Kind, b.Kind.Kind), cmp.Compare(a.Object.GetName(), b.Object.GetName()))
	})
	return found, unseen, nil
}

func (c *Cluster) releases(ctx context.Context, namespace string) ([]Component, error) {
	secrets := &corev1.SecretList{}
	err := c.Client.List(ctx, secrets, client.InNamespace(namespace), client.HasLabels{nameLabel})
	if err != nil {
		return nil, fmt.Errorf("unable to list the Secrets of components: %w", err)
	}
	var found []Component
	for i := range secrets.Items {
		r := &Release{}
		err := r.fromSecret(&secrets.Items[i])
		if err != nil {
			r = New(secrets.Items[i].Namespace, secrets.Items[i].Labels[nameLabel])
		}
		found = append(found, Component{Object: r, Kind: Kind, Status: r.Status, Err: err})
	}
	return found, nil
}

// Release returns a release as a component.
func (c *Cluster) Release(ctx context.Context, namespace, name string) (*Component, error) {
	r := &Release{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, r); err != nil {
		return nil, err
	}
	return &Component{Object: r, Kind: Kind, Status: r.Status}, nil
}

// Resource returns a resource of an operator as a component. It is an error if its kind has no inventory.
func (c *Cluster) Resource(
	ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey,
) (*Component, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	if err := c.Client.Get(ctx, key, object); err != nil {
		return nil, err
	}
	if inventoryIn(object.Object["status"]) == nil {
		return nil, fmt.Errorf("%s %s is no component, or has not been reconciled yet: its status has no state of one",
			kind.Kind, key.Name)
	}
	found := ofOperator(object)
	return &found, nil
}

func ofOperator(object *unstructured.Unstructured) Component {
	c := Component{Object: object, Kind: object.GroupVersionKind(), Operator: "unknown"}
	for _, entry := range object.GetManagedFields() {
		if entry.Subresource == "status" {
			c.Operator = entry.Manager
		}
	}
	if fields := inventoryIn(object.Object["status"]); fields != nil {
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &c.Status)
		if err != nil {
			c.Err = errors.New("its status is not that of a component")
		}
		if conditions := object.Object["status"].(map[string]any)["conditions"]; len(c.Status.Conditions) == 0 {
			wrapped := map[string]any{"conditions": conditions}
			_ = runtime.DefaultUnstructuredConverter.FromUnstructured(wrapped, &c.Status.Status) // only to be shown
		}
	}
	return c
}

// inventoryIn returns the status of a component in a status: itself, or the first of its fields that is one.
func inventoryIn(status any) map[string]any {
	fields, _ := status.(map[string]any)
	_, hasState := fields["state"].(string)
	_, hasDigest := fields["processingDigest"].(string)
	if _, hasInventory := fields["inventory"].([]any); hasInventory || hasState && hasDigest {
		return fields
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if found := inventoryIn(fields[name]); found != nil {
			return found
		}
	}
	return nil
}

// Kinds returns the kinds that operators have components of: those whose definition has the inventory of a component in
// the schema of the status.
func (c *Cluster) Kinds(ctx context.Context) ([]schema.GroupVersionKind, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{
		Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinitionList",
	})
	if err := c.Client.List(ctx, list); err != nil {
		return nil, err
	}
	var kinds []schema.GroupVersionKind
	for i := range list.Items {
		spec, _ := list.Items[i].Object["spec"].(map[string]any)
		group, _ := spec["group"].(string)
		kind, _, _ := unstructured.NestedString(spec, "names", "kind")
		versions, _ := spec["versions"].([]any)
		for _, version := range versions {
			fields, _ := version.(map[string]any)
			status, _, _ := unstructured.NestedMap(fields, "schema", "openAPIV3Schema", "properties", "status")
			if fields["served"] == true && fields["storage"] == true && definesInventory(status) {
				name, _ := fields["name"].(string)
				kinds = append(kinds, schema.GroupVersionKind{Group: group, Version: name, Kind: kind})
			}
		}
	}
	return kinds, nil
}

// definesInventory reports whether a schema has a field with records of an inventory, at any depth.
func definesInventory(schema map[string]any) bool {
	properties, _ := schema["properties"].(map[string]any)
	inventory, _ := properties["inventory"].(map[string]any)
	records, _, _ := unstructured.NestedMap(inventory, "items", "properties")
	_, hasDigest := records["digest"]
	_, hasPhase := records["phase"]
	_, hasManagedTypes := records["managedTypes"]
	if hasDigest && hasPhase && hasManagedTypes {
		return true
	}
	for _, property := range properties {
		if fields, ok := property.(map[string]any); ok && definesInventory(fields) {
			return true
		}
	}
	return false
}
