package execute

import (
	"context"
	"errors"
	"fmt"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/manifest"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/component/served"
	"github.com/espalier-dev/espalier/internal/managedfields"

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
		err = checkDuplicates(key.GroupKind(), made.Object)
	}
	if err != nil {
		return nil, nil, err
	}
	return object, made.Object, nil
}

// strict makes the API server refuse fields that it does not know, as it does in an apply.
const strict client.FieldValidation = metav1.FieldValidationStrict

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
		err = e.Client.Create(ctx, body, e.fieldManager(), strict)
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
	read := adopt || op.Override || len(object.Settings.IgnoreFields) > 0 || e.mayOwnExtraFields(object, content)
	for range attempts {
		switch {
		case replace:
			err = e.replace(ctx, result, object, content)
		case read:
			err = e.readThenApply(ctx, result, object, content)
		default:
			err = e.apply(ctx, result, e.body(object, content))
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
	return served.IsNotFound(err) || apierrs.IsConflict(managedfields.AsConflict(err))
}

// mayOwnExtraFields reports whether we may own fields that are not in content, so that managed fields have to be merged
// before the apply. It does if our managed fields are not known.
func (e *Executor) mayOwnExtraFields(object *manifest.Object, content map[string]any) bool {
	var entries []metav1.ManagedFieldsEntry
	key := object.Desired.Key
	if e.Managed != nil {
		entries = e.Managed(key)
	}
	if len(entries) == 0 {
		return true
	}
	_, changed := e.migrationFor(plan.Operation{Key: key}, object, e.body(object, content)).migrate(entries)
	return changed
}

// apply applies body to the object of the operation, and to no other object.
func (e *Executor) apply(ctx context.Context, result *Result, body *unstructured.Unstructured) error {
	body.SetUID(result.Operation.UID)
	err := e.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(body), e.fieldManager(), client.ForceOwnership)
	if err == nil {
		result.Object = body
	}
	return err
}

// readThenApply reads the current object, merges its managed fields where needed, and applies content, provided that
// the object does not change in between.
func (e *Executor) readThenApply(ctx context.Context, result *Result,
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
	body := e.body(object, withIgnored(content, full.Object, ignored, false))
	version := live.GetResourceVersion()
	if migrated, changed := e.migrationFor(op, object, body).migrate(live.GetManagedFields()); changed {
		var err error
		if version, err = e.setManagedFields(ctx, op, migrated, version); err != nil {
			return err
		}
	}
	body.SetResourceVersion(version)
	if err := e.apply(ctx, result, body); err != nil {
		return err
	}
	result.Unchanged = result.Object.GetResourceVersion() == version
	return nil
}

// setManagedFields replaces the managed fields of the object, if it still has that resource version, and returns the
// new version.
func (e *Executor) setManagedFields(ctx context.Context, op plan.Operation,
	entries []metav1.ManagedFieldsEntry, version string) (string, error) {
	patch, err := managedfields.Patch(entries, version)
	if err != nil {
		return "", err
	}
	target := partial(e.target(op))
	if err := e.Client.Patch(ctx, target, patch, e.fieldManager()); err != nil {
		return "", err
	}
	return target.ResourceVersion, nil
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
