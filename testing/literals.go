package testing

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/testing/internal/literal"
	"github.com/espalier-dev/espalier/testing/internal/objects"
	"github.com/espalier-dev/espalier/testing/internal/recording"
	"github.com/espalier-dev/espalier/testing/internal/words"
)

// objectLiterals returns what a table may have for an object that was created or updated, the shortest first: typed,
// and without what a Differ usually ignores.
func objectLiterals(obj client.Object, scheme *runtime.Scheme) []client.Object {
	if kept, ok := asInventory(obj).(*Inventory); ok {
		return []client.Object{kept.pastable(), kept}
	}
	var literals []client.Object
	if typed, ok := asTyped(obj, scheme); ok {
		literals = append(literals, withoutComputed(sentPart(typed, scheme)), sentPart(typed, scheme))
	}
	return append(literals, withoutComputed(sentPart(obj, scheme)), sentPart(obj, scheme), objects.Copy(obj))
}

// statusLiterals is objectLiterals for an object of which only the status is written.
func statusLiterals(obj client.Object, scheme *runtime.Scheme) []client.Object {
	literals := objectLiterals(obj, scheme)
	return append([]client.Object{statusPart(literals[0])}, literals...)
}

// asTyped returns an unstructured object in the Go type that the scheme has for its kind. It is not ok for an object
// that has a Go type already, and for one with content that the type has no field for.
func asTyped(obj client.Object, scheme *runtime.Scheme) (client.Object, bool) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, false
	}
	made, err := scheme.New(u.GroupVersionKind())
	if err != nil {
		return nil, false
	}
	typed, ok := made.(client.Object)
	if !ok || reflect.TypeOf(typed) == reflect.TypeOf(obj) {
		return nil, false
	}
	err = runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, typed, true)
	return typed, err == nil
}

// withoutComputed returns a copy of an object without transition times, and without what components compute.
func withoutComputed(obj client.Object) client.Object {
	obj = objects.Copy(obj)
	clearTransitionTimes(reflect.ValueOf(obj))
	for _, status := range componentStatuses(obj) {
		IgnoreComputed(status)
	}
	annotations := obj.GetAnnotations()
	for _, key := range digestsOf(obj.GetLabels()) {
		delete(annotations, key)
	}
	obj.SetAnnotations(annotations)
	return obj
}

// clearTransitionTimes clears the fields that IgnoreLastTransitionTime ignores.
func clearTransitionTimes(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			clearTransitionTimes(v.Elem())
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			clearTransitionTimes(v.Index(i))
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if it.Key().Kind() == reflect.String && it.Key().String() == transitionTime {
				v.SetMapIndex(it.Key(), reflect.Value{})
				continue
			}
			clearTransitionTimes(it.Value())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			switch {
			case !field.IsExported() || !v.Field(i).CanSet():
			case strings.HasSuffix(field.Name, "LastTransitionTime"):
				v.Field(i).SetZero()
			default:
				clearTransitionTimes(v.Field(i))
			}
		}
	}
}

// statusPart returns a copy of an object that has its name and its status.
func statusPart(obj client.Object) client.Object {
	obj = objects.Copy(obj)
	if u, ok := obj.(*unstructured.Unstructured); ok {
		part := &unstructured.Unstructured{Object: map[string]any{}}
		if status, ok := u.Object["status"]; ok {
			part.Object["status"] = status
		}
		part.SetGroupVersionKind(u.GroupVersionKind())
		part.SetNamespace(u.GetNamespace())
		part.SetName(u.GetName())
		return part
	}
	v := reflect.ValueOf(obj)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct || !v.Elem().FieldByName("Status").IsValid() {
		return obj
	}
	namespace, name := obj.GetNamespace(), obj.GetName()
	for i := range v.Elem().NumField() {
		if field := v.Elem().Field(i); field.CanSet() && v.Elem().Type().Field(i).Name != "Status" {
			field.SetZero()
		}
	}
	obj.SetNamespace(namespace)
	obj.SetName(name)
	return obj
}

// withOptionsOf returns the literal of an object that was written by a call with options.
func withOptionsOf(obj any, action Action) any {
	seen := recording.OptionsOf(action)
	if seen.FieldManager == "" && !seen.DryRun {
		return obj
	}
	options := WriteOptions{FieldOwner: seen.FieldManager}
	if seen.DryRun {
		options.DryRun = new(true)
	}
	return literal.Call{Package: words.Harness, Func: "WithOptions", Args: []any{obj, options}}
}

// deleteLiterals returns the expectation of a delete with its options.
func deleteLiterals(action DeleteAction, live bool) []DeleteRef {
	ref, opts := NewDeleteRef(action), action.GetDeleteOptions()
	ref.Preconditions, ref.PropagationPolicy = opts.Preconditions, opts.PropagationPolicy
	if live {
		// The UIDs and versions of a real API server are others in each run.
		ref.Preconditions = nil
	}
	if recording.OptionsOf(action).DryRun {
		ref.DryRun = new(true)
	}
	return []DeleteRef{ref}
}

// patchLiterals returns the expectations of a patch with its options, the shortest first: without transition times.
func patchLiterals(action PatchAction) []PatchRef {
	ref, seen := NewPatchRef(action), recording.OptionsOf(action)
	ref.FieldOwner = seen.FieldManager
	ref.Force, ref.DryRun = ifSet(seen.Force), ifSet(seen.DryRun)
	short := ref
	short.Patch = withoutTransitionTimes(ref.Patch)
	return []PatchRef{short, ref}
}

// applyLiterals returns the expectations of an apply with its options: typed where the scheme has the kind.
func applyLiterals(action ApplyAction, scheme *runtime.Scheme) []ApplyRef {
	ref, seen := NewApplyRef(action), recording.OptionsOf(action)
	ref.FieldOwner, ref.Force, ref.DryRun = seen.FieldManager, &seen.Force, ifSet(seen.DryRun)
	var literals []ApplyRef
	for _, configuration := range appliedLiterals(ref.ApplyConfiguration, scheme) {
		ref.ApplyConfiguration = configuration
		literals = append(literals, ref)
	}
	return literals
}

func appliedLiterals(ac runtime.ApplyConfiguration, scheme *runtime.Scheme) []runtime.ApplyConfiguration {
	content, ok := ac.(interface{ UnstructuredContent() map[string]any })
	if !ok {
		return []runtime.ApplyConfiguration{ac}
	}
	u := &unstructured.Unstructured{Object: content.UnstructuredContent()}
	var literals []runtime.ApplyConfiguration
	short := withoutComputed(u).(*unstructured.Unstructured)
	if len(ownerPrefixes(u.GetLabels())) > 0 {
		// A component sends it for some objects, see ignoreUnsetApplied.
		short.SetResourceVersion("")
	}
	for _, sent := range []*unstructured.Unstructured{short, u} {
		if typed, ok := asTyped(sent, scheme); ok {
			typed.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
			literals = append(literals, applied{object: typed, scheme: scheme})
		}
	}
	return append(literals, client.ApplyConfigurationFromUnstructured(short), ac)
}

func ifSet(option bool) *bool {
	if option {
		return &option
	}
	return nil
}

// trackLiteral returns the usual call for a request to a tracker.
func trackLiteral(r TrackRequest) any {
	ref := r.TrackedReference
	if ref.Selector != nil {
		return r
	}
	return literal.Call{
		Package: words.Harness, Func: "CreateTrackRequest",
		Args:   []any{ref.APIGroup, ref.Kind, ref.Namespace, ref.Name},
		Method: "By", MethodArgs: []any{r.Tracker.Namespace, r.Tracker.Name},
	}
}

// matching returns the first value that matches, else the last one.
func matching[T any](values []T, matches func(T) bool) T {
	for _, value := range values {
		if matches(value) {
			return value
		}
	}
	return values[len(values)-1]
}

// nameOfObject returns the kind and the name of an object.
func nameOfObject(obj client.Object, scheme *runtime.Scheme) string {
	if gotype.IsNil(obj) {
		return "nil"
	}
	obj = objects.Copy(obj)
	if kept, ok := obj.(*Inventory); ok {
		return objectText(cmp.Or(kept.Kind, "Inventory"), kept.Namespace, kept.Name)
	}
	kind, err := objects.KindOf(obj, scheme)
	if err != nil {
		kind.Kind = fmt.Sprintf("%T", obj)
	}
	name := obj.GetName()
	if name == "" && obj.GetGenerateName() != "" {
		name = obj.GetGenerateName() + "*"
	}
	return objectText(kind.Kind, obj.GetNamespace(), name)
}

func objectText(kind, namespace, name string) string {
	return strings.TrimSpace(kind + " " + objects.Path(namespace, name))
}

func nameOfEvent(e Event) string {
	about := objectText(e.Kind, e.Namespace, e.Name)
	return strings.TrimSpace(fmt.Sprintf("%s %s on %s: %q", e.Type, e.Reason, about, e.Message+e.Note))
}

func nameOfTrack(r TrackRequest) string {
	ref := r.TrackedReference
	name := ref.Name
	if ref.Selector != nil {
		name = "* (" + ref.Selector.String() + ")"
	}
	return objectText(ref.Kind, ref.Namespace, name) + " by " + objects.Path(r.Tracker.Namespace, r.Tracker.Name)
}
