package write

import (
	"context"
	"encoding/json"

	"github.com/espalier-dev/espalier/internal/managedfields"

	"gomodules.xyz/jsonpatch/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Writer writes objects as one owner of fields.
type Writer struct {
	Client client.Writer
	// Migration says who the owner is, and which fields of earlier writes become part of what it has applied.
	Migration managedfields.Migration
	// Force takes fields from other managers. Without it an apply is refused that would do so.
	Force bool
	// Leave leaves fields to other managers. It counts without Force.
	Leave bool
}

// maxLeft limits how often fields are left to others. The first answer names all of them, except for later changes.
const maxLeft = 3

// Apply applies body to the object of that version. Body then is the object as the API server has it. The API server
// creates the object if there is none and only has no UID.
//
// Fields that others own are left out if the writer leaves them, and are returned. If that does not help, or if the
// writer neither forces nor leaves, the error is a conflict with [FieldConflicts].
func (w Writer) Apply(
	ctx context.Context, body *unstructured.Unstructured, only Version,
) (left []FieldConflict, err error) {
	only.setOn(body)
	options := []client.ApplyOption{client.FieldOwner(w.Migration.Owner.Name)}
	if w.Force {
		options = append(options, client.ForceOwnership)
	}
	for attempts := 0; ; attempts++ {
		err := asConflict(w.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(body), options...))
		conflicts := FieldConflicts(err)
		if len(conflicts) == 0 || !w.Leave || attempts == maxLeft {
			return left, err
		}
		rest, ok := managedfields.Configuration(body.Object).Without(fieldsOf(conflicts))
		if !ok {
			return left, err
		}
		left, body.Object = append(left, conflicts...), rest
	}
}

func fieldsOf(conflicts []FieldConflict) []string {
	var fields []string
	for _, conflict := range conflicts {
		fields = append(fields, conflict.Field)
	}
	return fields
}

// Migrate makes the next apply of body remove what the owner wrote otherwise than by applies. The object that body
// names has the given version and managed fields. Migrate returns its new version, and the names of the managers whose
// fields were migrated. Without any, it makes no request. It is refused if the object has another resource version,
// unless that is empty.
func (w Writer) Migrate(
	ctx context.Context, body *unstructured.Unstructured, only Version, entries []metav1.ManagedFieldsEntry,
) (now Version, from []string, err error) {
	migrated, from := w.Migration.Migrate(entries, body.Object)
	if len(from) == 0 {
		return only, nil, nil
	}
	patch, err := JSONPatch(only.ResourceVersion, jsonpatch.NewOperation("replace", "/metadata/managedFields", migrated))
	if err != nil {
		return only, from, err
	}
	target := &metav1.PartialObjectMetadata{}
	target.SetGroupVersionKind(body.GroupVersionKind())
	target.Namespace, target.Name = body.GetNamespace(), body.GetName()
	if err := w.Client.Patch(ctx, target, patch, client.FieldOwner(w.Migration.Owner.Name)); err != nil {
		return only, from, err
	}
	return VersionOf(target), from, nil
}

// JSONPatch returns a patch that is refused if the object has another resource version, unless that is empty.
func JSONPatch(resourceVersion string, operations ...jsonpatch.Operation) (client.Patch, error) {
	if resourceVersion != "" {
		// Replaced rather than tested, another version is a conflict and not an invalid request.
		version := jsonpatch.NewOperation("replace", "/metadata/resourceVersion", resourceVersion)
		operations = append([]jsonpatch.Operation{version}, operations...)
	}
	data, err := json.Marshal(operations)
	return client.RawPatch(types.JSONPatchType, data), err
}
