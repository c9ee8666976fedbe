package reconcilers

import (
	"context"
	"encoding/json"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// takeover returns the managed fields with the plain writes of the owner, and of those before it, made its applies, so that the
// next apply takes away what it does not want any more. It returns nil if there are none.
func (o fieldOwner) takeover(entries []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, error) {
	writers := o.writers(entries)
	if len(writers) == 0 {
		return nil, nil
	}
	holder := &metav1.PartialObjectMetadata{}
	for _, entry := range entries {
		// Of a copy that shares the fields of entries, the upgrade would change these.
		entry = *entry.DeepCopy()
		if entry.FieldsV1 == nil {
			entry.FieldsV1 = metav1.NewFieldsV1("{}")
		}
		holder.ManagedFields = append(holder.ManagedFields, entry)
	}
	// One by one, and sorted: the upgrade goes through a set of names in any order, and the order shows in what it makes.
	for _, writer := range writers {
		if err := csaupgrade.UpgradeManagedFields(holder, sets.New(writer), o.name); err != nil {
			return nil, err
		}
	}
	return holder.ManagedFields, nil
}

// takeOver makes the plain writes to obj applies, in the cluster, and returns the object as the server then has it: obj itself if
// there are none. It is refused if obj has changed since it was read.
func (o fieldOwner) takeOver(ctx context.Context, c client.Client, wanted configuration, obj client.Object) (client.Object, error) {
	fields, err := o.takeover(obj.GetManagedFields())
	if err != nil || fields == nil {
		return obj, err
	}
	operations := []map[string]any{{"op": "replace", "path": "/metadata/managedFields", "value": fields}}
	if version := obj.GetResourceVersion(); version != "" {
		// Replaced rather than tested, another version is a conflict and not an invalid request.
		operations = append(operations, map[string]any{"op": "replace", "path": "/metadata/resourceVersion", "value": version})
	}
	patch, err := json.Marshal(operations)
	if err != nil {
		return nil, err
	}
	logr.FromContextOrDiscard(ctx).Info("taking over the fields of earlier writes", "managers", o.writers(obj.GetManagedFields()))
	target := &unstructured.Unstructured{Object: map[string]any{"apiVersion": wanted["apiVersion"], "kind": wanted["kind"]}}
	target.SetNamespace(obj.GetNamespace())
	target.SetName(obj.GetName())
	if err := c.Patch(ctx, target, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(o.name)); err != nil {
		return nil, err
	}
	return target, nil
}
