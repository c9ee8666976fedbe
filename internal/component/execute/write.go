package execute

import (
	"context"
	"errors"
	"fmt"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/manifest"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/managedfields"
	"github.com/espalier-dev/espalier/internal/served"
	"github.com/espalier-dev/espalier/internal/write"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// desired returns the desired object of an operation, and the content of its manifest.
func (e *Executor) desired(key plan.Key) (*manifest.Object, map[string]any, error) {
	object := e.Objects[key]
	if object == nil {
		return nil, nil, errNoManifest
	}
	made, err := object.Manifest()
	if err == nil && (made == nil || made.Object == nil) {
		err = errNoManifest
	}
	if err == nil {
		if twice := managedfields.DuplicateIn(key.GroupKind(), made.Object); twice != nil {
			err = fmt.Errorf("%s has two elements with %s", twice.List, twice.Keys)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	return object, made.Object, nil
}

// create creates an object. If an object of that name exists, it is read, for the next plan to decide about it. If it
// is gone by then, the creation is tried again.
func (e *Executor) create(ctx context.Context, result *Result) error {
	op := result.Operation
	object, content, err := e.desired(op.Key)
	if err != nil {
		return err
	}
	for range attempts {
		body := e.body(object, content)
		err = e.Client.Create(ctx, body, e.fieldManager(), write.Strict)
		switch {
		case err == nil:
			result.Object = body
			return nil
		case apierrs.IsNotFound(err):
			return notFoundOnCreate(err, op.Key)
		case !apierrs.IsAlreadyExists(err):
			return err
		}
		live := e.target(op)
		err = e.Client.Get(ctx, client.ObjectKeyFromObject(live), live)
		switch {
		case err == nil:
			result.Object, result.Exists = live, true
			return &ExistsError{Key: op.Key}
		case !served.IsNotFound(err):
			return fmt.Errorf("%w, and cannot be read: %w", &ExistsError{Key: op.Key}, err)
		}
	}
	return &ExistsError{Key: op.Key}
}

// notFoundOnCreate explains what was not found when an object was created: its namespace or its type.
func notFoundOnCreate(err error, key plan.Key) error {
	var status apierrs.APIStatus
	if errors.As(err, &status) && key.Namespace != "" {
		details := status.Status().Details
		if details != nil && details.Group == "" && details.Kind == "namespaces" && details.Name == key.Namespace {
			return &NamespaceError{Namespace: key.Namespace, Err: err}
		}
	}
	return &WaitError{TypeMissing: true, Err: err}
}

// write writes an object that exists. After a conflict it reads the current object and tries again.
func (e *Executor) write(ctx context.Context, result *Result) error {
	op := result.Operation
	object, content, err := e.desired(op.Key)
	if err != nil {
		return err
	}
	adopt := op.Action == plan.ActionAdopt || op.Action == plan.ActionRelabel
	replace := op.Action == plan.ActionReplace || adopt && object.Desired.UpdatePolicy == apis.UpdateReplace
	w := e.writer(op, object)
	read := adopt || op.Override || len(object.Settings.IgnoreFields) > 0 || e.mayOwnExtraFields(w, object, content)
	for range attempts {
		switch {
		case replace:
			err = e.replace(ctx, result, w, object, content)
		case read:
			err = e.readThenApply(ctx, result, w, object, content)
		default:
			err = e.apply(ctx, result, w, e.body(object, content), write.Version{UID: op.UID})
			read = true
		}
		if !conflicts(err) {
			return err
		}
	}
	return err
}

// conflicts reports whether a write failed because the object has changed, was replaced by another one, or is gone.
// Reading the current object then helps.
func conflicts(err error) bool {
	return served.IsNotFound(err) || apierrs.IsConflict(err)
}

// mayOwnExtraFields reports whether we may own fields that are not in content, so that managed fields have to be merged
// before the apply. It does if our managed fields are not known.
func (e *Executor) mayOwnExtraFields(w write.Writer, object *manifest.Object, content map[string]any) bool {
	var entries []metav1.ManagedFieldsEntry
	if e.Managed != nil {
		entries = e.Managed(object.Desired.Key)
	}
	if len(entries) == 0 {
		return true
	}
	_, from := w.Migration.Migrate(entries, e.body(object, content).Object)
	return len(from) > 0
}

// writer returns the writer for an operation on a desired object.
func (e *Executor) writer(op plan.Operation, object *manifest.Object) write.Writer {
	ignored := managedfields.Pointers(object.Settings.IgnoreFields)
	migration := managedfields.Migration{
		Owner: managedfields.Owner{Name: string(e.fieldManager())},
		Kept:  write.Kept(op.Key.GroupKind(), ignored...),
	}
	if op.Override {
		migration.Reclaim = e.Reclaim
	}
	return write.Writer{Client: e.Client, Migration: migration, Force: true}
}

// apply applies body to the object of the operation, and to no other object or version.
func (e *Executor) apply(ctx context.Context, result *Result, w write.Writer,
	body *unstructured.Unstructured, only write.Version) error {
	_, err := w.Apply(ctx, body, only)
	if err == nil {
		result.Object = body
	}
	return err
}

// readThenApply reads the current object, merges its managed fields where needed, and applies content, provided that
// the object does not change in between.
func (e *Executor) readThenApply(ctx context.Context, result *Result, w write.Writer,
	object *manifest.Object, content map[string]any) error {
	op := result.Operation
	ignored := object.Settings.IgnoreFields
	full := e.target(op)
	var live client.Object = full
	if len(ignored) == 0 {
		live = partial(full)
	}
	if err := e.readCurrent(ctx, op, live); err != nil {
		return err
	}
	body := e.body(object, write.WithFields(content, full.Object, ignored, false))
	now, _, err := w.Migrate(ctx, body, write.VersionOf(live), live.GetManagedFields())
	if err != nil {
		return err
	}
	if err := e.apply(ctx, result, w, body, now); err != nil {
		return err
	}
	result.Unchanged = result.Object.GetResourceVersion() == now.ResourceVersion
	return nil
}

// replace updates the object that is there to the content that is desired, see [write.Writer.Replace].
func (e *Executor) replace(ctx context.Context, result *Result, w write.Writer,
	object *manifest.Object, content map[string]any) error {
	op := result.Operation
	live := e.target(op)
	if err := e.readCurrent(ctx, op, live); err != nil {
		return err
	}
	body := e.body(object, write.WithFields(content, live.Object, object.Settings.IgnoreFields, true))
	if err := w.Replace(ctx, body, live); err != nil {
		return err
	}
	result.Object = body
	result.Unchanged = body.GetResourceVersion() == live.GetResourceVersion()
	return nil
}

// target returns an object with the name of the object of the operation, in the desired version if it is desired.
func (e *Executor) target(op plan.Operation) *unstructured.Unstructured {
	kind := op.Key.GroupKind().WithVersion(op.Version)
	if object := e.Objects[op.Key]; object != nil && object.Desired.Version != "" {
		kind.Version = object.Desired.Version
	}
	return named(op.Key, kind)
}

// named returns an object with the name in key, in a version.
func named(key plan.Key, kind schema.GroupVersionKind) *unstructured.Unstructured {
	target := &unstructured.Unstructured{}
	target.SetGroupVersionKind(kind)
	target.SetNamespace(key.Namespace)
	target.SetName(key.Name)
	return target
}

// partial returns an object of the same name, which is read without anything but its metadata.
func partial(target *unstructured.Unstructured) *metav1.PartialObjectMetadata {
	p := &metav1.PartialObjectMetadata{}
	p.SetGroupVersionKind(target.GroupVersionKind())
	p.Namespace, p.Name = target.GetNamespace(), target.GetName()
	return p
}
