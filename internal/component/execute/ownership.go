package execute

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/component/manifest"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/served"
	"github.com/espalier-dev/espalier/internal/write"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Mark is the label and the annotation that show that an object belongs to the component.
type Mark struct {
	// Prefix is the prefix of the keys.
	Prefix string
	// ID is the value of the label, Owner the clear text in the annotation.
	ID, Owner string
}

func (m Mark) key(name string) string { return m.Prefix + "/" + name }

// ownership returns who owns an object, and says so in words, see [plan.Marks.Ownership].
func (e *Executor) ownership(object client.Object) (ownership plan.Ownership, claim string) {
	written := slices.ContainsFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == string(e.fieldManager()) && entry.Subresource == ""
	})
	return plan.MarksOf(object, e.Mark.Prefix).Ownership(e.Mark.ID, e.Mark.Owner, written)
}

// readCurrent reads the object of the operation into live. It returns an error if the object was replaced by another
// one, or if its ownership does not allow the operation.
func (e *Executor) readCurrent(ctx context.Context, op plan.Operation, live client.Object) error {
	err := e.Client.Get(ctx, types.NamespacedName{Namespace: op.Key.Namespace, Name: op.Key.Name}, live)
	switch {
	case served.IsNotFound(err):
		return &StaleError{}
	case err != nil:
		return err
	case live.GetUID() != op.UID:
		return &StaleError{Replaced: true}
	}
	if ownership, claim := e.ownership(live); !e.mayWrite(op, ownership, claim) {
		return &OwnerError{Ownership: ownership, Claim: claim}
	}
	return nil
}

// Read reads the object of a record that the component drops, whole. It returns nil if the object is gone, replaced by
// another one, or not ours any more.
func (e *Executor) Read(ctx context.Context, record *apis.InventoryRecord) (*unstructured.Unstructured, error) {
	result := Result{Operation: plan.Operation{
		Action: plan.ActionDelete, Key: plan.KeyOf(*record), Version: record.Version, UID: record.UID, Pattern: -1,
	}}
	read := func(ctx context.Context, result *Result, target *unstructured.Unstructured) error {
		err := e.readCurrent(ctx, result.Operation, target)
		if err == nil {
			result.Object = target
		}
		return err
	}
	err := e.inServedVersion(ctx, &result, read)
	var owner *OwnerError
	if err == nil || errors.As(err, &owner) {
		return result.Object, nil
	}
	const text = "it may keep others from being written, and cannot be read: %w"
	return nil, fmt.Errorf(text, explain(err, record.Namespace))
}

// mayWrite reports whether the operation may write or delete an object of that ownership. The object has to be ours,
// unless the operation takes over a desired object that may be taken over. Recreating an object is a way to do so.
func (e *Executor) mayWrite(op plan.Operation, ownership plan.Ownership, claim string) bool {
	object := e.Objects[op.Key]
	if ownership == plan.Ours || object == nil {
		return ownership == plan.Ours
	}
	switch op.Action {
	case plan.ActionAdopt, plan.ActionRelabel, plan.ActionRecreate:
		recorded := e.Records[op.Key].UID
		return plan.MayTakeOver(object.Desired.AdoptionPolicy, ownership, recorded, op.UID) ||
			plan.IsRemnant(op.Key.GroupKind(), ownership, claim, recorded)
	}
	return false
}

// body returns what is written of an object: its manifest with our marks, see [write.Body].
func (e *Executor) body(object *manifest.Object, content map[string]any) *unstructured.Unstructured {
	return write.Body(content, map[string]string{e.Mark.key(generator.LabelOwnerID): e.Mark.ID}, map[string]string{
		e.Mark.key(generator.AnnotationOwnerID): e.Mark.Owner,
		e.Mark.key(generator.AnnotationDigest):  object.Desired.Digest,
	})
}
