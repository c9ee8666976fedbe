package execute

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/served"
	"github.com/espalier-dev/espalier/internal/write"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// delete deletes target, the object of the operation in a version, and no other object. It does not find out whether
// the object is gone or remains because of a finalizer, which takes a second request.
func (e *Executor) delete(ctx context.Context, result *Result, target *unstructured.Unstructured) (err error) {
	op := result.Operation
	only := write.Version{UID: op.UID, ResourceVersion: op.ResourceVersion}
	read := !op.Exact && e.Managed != nil && len(e.Managed(op.Key)) == 0
	for range attempts {
		if read {
			live := partial(target)
			if err = e.readCurrent(ctx, op, live); err != nil {
				return err
			}
			only.ResourceVersion = live.ResourceVersion
		}
		err = write.Delete(ctx, e.Client, target, only, "")
		switch {
		case served.IsNotFound(err):
			return &StaleError{}
		case op.Exact || !apierrs.IsConflict(err):
			return err
		}
		// Most likely it is another object by now.
		read = true
	}
	return err
}

// orphan removes our marks from target, the object of the operation in a version, if it has them. The values that we
// wrote stay, and our entries in its managed fields stay too: an apply of nothing would remove the values, and the
// entry of a manager that does not write any more disturbs nothing. A fence is lifted first, since nothing would lift
// it later.
func (e *Executor) orphan(ctx context.Context, result *Result, target *unstructured.Unstructured) (err error) {
	op := result.Operation
	lifted := false
	for range attempts {
		live := partial(target)
		err = e.readCurrent(ctx, op, live)
		var owner *OwnerError
		switch {
		case errors.As(err, &owner):
			return nil
		case err != nil:
			return err
		case !lifted && e.Guard != nil && e.Guard.Fenced(op.Key, live):
			if err = e.Guard.Lift(ctx, op.Key); err != nil {
				return err
			}
			// The fence that is gone makes it another version.
			lifted = true
			continue
		}
		if err = e.unmark(ctx, result, live); !conflicts(err) {
			return err
		}
	}
	return err
}

// unmark removes our marks from live, and our annotations that say how it is dealt with, provided that it has not
// changed since. If others manage fields of it, it also gives up our fields: with an owner that is no more they could
// only be changed by force.
func (e *Executor) unmark(ctx context.Context, result *Result, live *metav1.PartialObjectMetadata) error {
	annotations := map[string]any{
		e.Mark.key(generator.AnnotationOwnerID): nil,
		e.Mark.key(generator.AnnotationDigest):  nil,
	}
	metadata := map[string]any{
		"uid":             live.UID,
		"resourceVersion": live.ResourceVersion,
		"labels":          map[string]any{e.Mark.key(generator.LabelOwnerID): nil},
		"annotations":     annotations,
	}
	var others []metav1.ManagedFieldsEntry
	for _, entry := range live.ManagedFields {
		if entry.Manager != string(e.fieldManager()) || entry.Subresource != "" {
			others = append(others, entry)
			continue
		}
		for key := range live.Annotations {
			prefix, _, _ := strings.Cut(key, "/")
			settings := prefix == e.Mark.Prefix || prefix == generator.SharedPrefix
			if settings && strings.Contains(entry.FieldsV1.GetRawString(), `"f:`+key+`"`) {
				annotations[key] = nil
			}
		}
	}
	// An API server takes an empty list for none.
	if len(others) > 0 && len(others) < len(live.ManagedFields) {
		metadata["managedFields"] = others
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	target := named(result.Operation.Key, live.GroupVersionKind())
	if err := e.Client.Patch(ctx, target, client.RawPatch(types.MergePatchType, patch), e.fieldManager()); err != nil {
		return err
	}
	result.Object = target
	return nil
}
