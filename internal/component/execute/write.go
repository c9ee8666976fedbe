package execute

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/manifest"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/component/served"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// desired returns the object that the operation is to write, and the content of its manifest.
func (e *Executor) desired(key plan.Key) (*manifest.Object, map[string]any, error) {
	object := e.Objects[key]
	if object == nil {
		return nil, nil, errNoManifest
	}
	made, err := object.Manifest()
	switch {
	case err != nil:
		return nil, nil, err
	case made == nil || made.Object == nil:
		return nil, nil, errNoManifest
	}
	return object, made.Object, nil
}

// create posts an object. One that exists is read, for the next plan to decide about; if it is gone by then, the
// object is posted again.
func (e *Executor) create(ctx context.Context, result *Result) error {
	op := result.Operation
	object, content, err := e.desired(op.Key)
	if err != nil {
		return err
	}
	for range attempts {
		body := e.body(object, content)
		err = e.Client.Create(ctx, body, e.fieldManager())
		switch {
		case err == nil:
			result.Object = body
			return nil
		case apierrs.IsNotFound(err):
			return missing(err, op.Key)
		case !apierrs.IsAlreadyExists(err):
			return err
		}
		live := e.target(op)
		err = e.Client.Get(ctx, client.ObjectKeyFromObject(live), live)
		switch {
		case err == nil:
			result.Object = live
			return &ExistsError{Key: op.Key}
		case !served.IsNotFound(err):
			return fmt.Errorf("%w, and cannot be read: %w", &ExistsError{Key: op.Key}, err)
		}
	}
	return &ExistsError{Key: op.Key}
}

// missing tells what it is that was not found when an object was created.
func missing(err error, key plan.Key) error {
	var status apierrs.APIStatus
	if errors.As(err, &status) && key.Namespace != "" {
		details := status.Status().Details
		if details != nil && details.Group == "" && details.Kind == "namespaces" && details.Name == key.Namespace {
			return &NamespaceError{Namespace: key.Namespace, Err: err}
		}
	}
	return &WaitError{TypeMissing: true, Err: err}
}

// write writes an object that exists. On a conflict it looks at what is there now, and tries again.
func (e *Executor) write(ctx context.Context, result *Result) error {
	op := result.Operation
	object, content, err := e.desired(op.Key)
	if err != nil {
		return err
	}
	replace := op.Action == plan.ActionReplace || op.Action == plan.ActionAdopt && object.Desired.UpdatePolicy == apis.UpdateReplace
	look := op.Action == plan.ActionAdopt || op.Override || len(object.Settings.IgnoreFields) > 0 || e.mayHoldStrays(object, content)
	for range attempts {
		switch {
		case replace:
			err = e.replace(ctx, result, object, content)
		case look:
			err = e.applyAfterLook(ctx, result, object, content)
		default:
			err = e.apply(ctx, result, e.body(object, content))
			look = true
		}
		if !conflicts(err) {
			return err
		}
	}
	return err
}

// conflicts tells whether the object has changed, is another one, or is gone, so that a look at what is there helps.
func conflicts(err error) bool {
	if apierrs.IsConflict(err) || served.IsNotFound(err) {
		return true
	}
	// That is how a write with another UID is refused, by some ways.
	var status apierrs.APIStatus
	if !apierrs.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(cause metav1.StatusCause) bool {
		return cause.Field == "metadata.uid"
	})
}

// mayHoldStrays tells whether, for all that is known, fields may have to be merged before object is applied.
func (e *Executor) mayHoldStrays(object *manifest.Object, content map[string]any) bool {
	if e.Managed == nil {
		return true
	}
	entries := e.Managed(object.Desired.Key)
	if len(entries) == 0 {
		return true
	}
	_, changed := e.merger(plan.Operation{Key: object.Desired.Key}, object, e.body(object, content)).merge(entries)
	return changed
}

// apply applies body to the object that the operation means, and to no other.
func (e *Executor) apply(ctx context.Context, result *Result, body *unstructured.Unstructured) error {
	body.SetUID(result.Operation.UID)
	err := e.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(body), e.fieldManager(), client.ForceOwnership)
	if err == nil {
		result.Object = body
	}
	return err
}

// applyAfterLook applies the content of object to what is there, provided that nothing comes between.
func (e *Executor) applyAfterLook(ctx context.Context, result *Result, object *manifest.Object, content map[string]any) error {
	op := result.Operation
	ignored := object.Settings.IgnoreFields
	var live client.Object
	if len(ignored) == 0 {
		live = partial(e.target(op))
	} else {
		live = e.target(op)
	}
	if err := e.look(ctx, op, live); err != nil {
		return err
	}
	if full, ok := live.(*unstructured.Unstructured); ok {
		content = withIgnored(content, full.Object, ignored, false)
	}
	body := e.body(object, content)
	version := live.GetResourceVersion()
	merged, changed := e.merger(op, object, body).merge(live.GetManagedFields())
	if changed {
		var err error
		if version, err = e.setManagedFields(ctx, op, merged, version); err != nil {
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

// look reads the object that the operation means into live, and makes sure that it is that object and may be written.
func (e *Executor) look(ctx context.Context, op plan.Operation, live client.Object) error {
	if err := e.find(ctx, op, live); err != nil {
		return err
	}
	return e.admit(op, live)
}

// find reads the object that the operation means into live, and makes sure that it is that object.
func (e *Executor) find(ctx context.Context, op plan.Operation, live client.Object) error {
	err := e.Client.Get(ctx, types.NamespacedName{Namespace: op.Key.Namespace, Name: op.Key.Name}, live)
	switch {
	case served.IsNotFound(err):
		return &StaleError{Key: op.Key}
	case err != nil:
		return err
	case live.GetUID() != op.UID:
		return &StaleError{Key: op.Key, Replaced: true}
	}
	return nil
}

// setManagedFields replaces the managed fields of the object, if it still has that resource version, and returns the new one.
func (e *Executor) setManagedFields(ctx context.Context, op plan.Operation, entries []metav1.ManagedFieldsEntry, version string) (string, error) {
	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": entries},
		// Replaced rather than tested, another version is a conflict and not an invalid request.
		{"op": "replace", "path": "/metadata/resourceVersion", "value": version},
	})
	if err != nil {
		return "", err
	}
	target := partial(e.target(op))
	if err := e.Client.Patch(ctx, target, client.RawPatch(types.JSONPatchType, patch), e.fieldManager()); err != nil {
		return "", err
	}
	return target.ResourceVersion, nil
}

// target returns an object that names the one of the operation, in the version that is desired, if it is.
func (e *Executor) target(op plan.Operation) *unstructured.Unstructured {
	kind := op.Key.GroupKind().WithVersion(op.Version)
	if object := e.Objects[op.Key]; object != nil && object.Desired.Version != "" {
		kind.Version = object.Desired.Version
	}
	return named(op.Key, kind)
}

// named returns an object that names the one of that key, in a version.
func named(key plan.Key, kind schema.GroupVersionKind) *unstructured.Unstructured {
	target := &unstructured.Unstructured{}
	target.SetGroupVersionKind(kind)
	target.SetNamespace(key.Namespace)
	target.SetName(key.Name)
	return target
}

// partial returns an object that names the same one, to read no more than its metadata.
func partial(target *unstructured.Unstructured) *metav1.PartialObjectMetadata {
	p := &metav1.PartialObjectMetadata{}
	p.SetGroupVersionKind(target.GroupVersionKind())
	p.Namespace, p.Name = target.GetNamespace(), target.GetName()
	return p
}
