package testing

import (
	"encoding/json"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/objects"
)

// A faithful API server gives objects what only a server sets: UID, resource version, generation, creation time and
// managed fields. Rows are written without them. So they are compared only where an expectation sets them, and so are
// the UIDs of owner references. The observed generation of a status that is current equals none, if the expectation has
// no generation.

// withoutServerSet returns actual without what only a server sets and expected does not set.
func withoutServerSet(expected, actual client.Object) client.Object {
	if objects.IsNil(expected) || objects.IsNil(actual) {
		return actual
	}
	if _, ok := actual.(*Inventory); ok {
		return actual
	}
	if !hasServerSet(expected, actual) {
		return actual
	}
	actual = objects.Copy(actual)
	if expected.GetGeneration() == 0 {
		clearObserved(reflect.ValueOf(actual), actual.GetGeneration())
		actual.SetGeneration(0)
	}
	if expected.GetUID() == "" {
		actual.SetUID("")
	}
	if expected.GetResourceVersion() == "" {
		actual.SetResourceVersion("")
	}
	if expected.GetCreationTimestamp().Time.IsZero() {
		actual.SetCreationTimestamp(metav1.Time{})
	}
	if expected.GetManagedFields() == nil {
		actual.SetManagedFields(nil)
	}
	if refs := actual.GetOwnerReferences(); len(refs) > 0 {
		actual.SetOwnerReferences(withoutServerUIDs(expected.GetOwnerReferences(), refs))
	}
	return actual
}

// hasServerSet reports whether actual has something that only a server sets and expected does not set.
func hasServerSet(expected, actual client.Object) bool {
	hasUID := func(ref metav1.OwnerReference) bool { return ref.UID != "" }
	return actual.GetUID() != "" && expected.GetUID() == "" ||
		actual.GetResourceVersion() != "" && expected.GetResourceVersion() == "" ||
		actual.GetGeneration() != 0 && expected.GetGeneration() == 0 ||
		!actual.GetCreationTimestamp().Time.IsZero() && expected.GetCreationTimestamp().Time.IsZero() ||
		actual.GetManagedFields() != nil && expected.GetManagedFields() == nil ||
		slices.ContainsFunc(actual.GetOwnerReferences(), hasUID) &&
			!slices.Equal(actual.GetOwnerReferences(), expected.GetOwnerReferences())
}

// withoutAnyServerSet returns a copy of an object as a row has it.
func withoutAnyServerSet(obj client.Object) client.Object {
	var refs []metav1.OwnerReference
	for _, ref := range obj.GetOwnerReferences() {
		refs = append(refs, metav1.OwnerReference{Name: ref.Name})
	}
	unset := &metav1.PartialObjectMetadata{}
	unset.SetOwnerReferences(refs)
	return withoutServerSet(unset, objects.Copy(obj))
}

// withoutServerUIDs returns actual without the UIDs that the references at the same place do not set.
func withoutServerUIDs(expected, actual []metav1.OwnerReference) []metav1.OwnerReference {
	for i := range min(len(expected), len(actual)) {
		if expected[i].UID == "" && expected[i].Name == actual[i].Name {
			actual[i].UID = ""
		}
	}
	return actual
}

// clearObserved clears the fields of a status that observe a generation.
func clearObserved(obj reflect.Value, generation int64) {
	if u, ok := obj.Interface().(*unstructured.Unstructured); ok {
		clearObservedKeys(u.Object["status"], generation)
		return
	}
	if obj.Kind() == reflect.Pointer && obj.Elem().Kind() == reflect.Struct {
		if status := obj.Elem().FieldByName("Status"); status.IsValid() {
			clearObservedFields(status, generation)
		}
	}
}

func clearObservedKeys(value any, generation int64) {
	switch value := value.(type) {
	case map[string]any:
		if value["observedGeneration"] == generation {
			delete(value, "observedGeneration")
		}
		for _, nested := range value {
			clearObservedKeys(nested, generation)
		}
	case []any:
		for _, nested := range value {
			clearObservedKeys(nested, generation)
		}
	}
}

func clearObservedFields(v reflect.Value, generation int64) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			clearObservedFields(v.Elem(), generation)
		}
	case reflect.Slice:
		for i := range v.Len() {
			clearObservedFields(v.Index(i), generation)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Field(i)
			switch {
			case !field.CanSet():
			case v.Type().Field(i).Name == "ObservedGeneration" && field.CanInt() && field.Int() == generation:
				field.SetInt(0)
			default:
				clearObservedFields(field, generation)
			}
		}
	}
}

// appliedWithoutServerSet returns actual without what only a server sets and expected does not set.
func appliedWithoutServerSet(expected, actual runtime.ApplyConfiguration) runtime.ApplyConfiguration {
	if objects.IsNil(expected) || objects.IsNil(actual) {
		return actual
	}
	members := sent(actual)
	if !clearMembers(sent(expected), members) {
		return actual
	}
	return client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: members})
}

// patchWithoutServerSet is appliedWithoutServerSet for a patch. A JSON patch stays as it is.
func patchWithoutServerSet(expected, actual PatchRef) PatchRef {
	want, got := expected.inJSON(), actual.inJSON()
	if got.PatchType == types.JSONPatchType || !areJSON(want.Patch, got.Patch) {
		return actual
	}
	wanted, _ := fromJSON(want.Patch).(map[string]any)
	members, _ := fromJSON(got.Patch).(map[string]any)
	if clearMembers(wanted, members) {
		if raw, err := json.Marshal(members); err == nil {
			actual.Patch = raw
		}
	}
	return actual
}

// clearMembers removes what only a server sets from the metadata in actual, unless expected has it. It reports whether
// there was something.
func clearMembers(expected, actual map[string]any) (cleared bool) {
	want, _ := expected["metadata"].(map[string]any)
	got, _ := actual["metadata"].(map[string]any)
	for _, key := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"} {
		value, has := want[key]
		if _, sent := got[key]; !sent || has && value != nil && value != "" {
			continue
		}
		delete(got, key)
		if has {
			got[key] = value
		}
		cleared = true
	}
	wantRefs, _ := want["ownerReferences"].([]any)
	gotRefs, _ := got["ownerReferences"].([]any)
	for i := range min(len(wantRefs), len(gotRefs)) {
		wantRef, _ := wantRefs[i].(map[string]any)
		gotRef, ok := gotRefs[i].(map[string]any)
		if ok && wantRef["uid"] == "" && wantRef["name"] == gotRef["name"] {
			gotRef["uid"] = ""
			cleared = true
		}
	}
	return cleared
}

// deleteWithoutServerSet returns actual without preconditions of values that only a server sets, where the expected one
// is the empty value of an object of the row.
func deleteWithoutServerSet(expected, actual DeleteRef) DeleteRef {
	if expected.Preconditions == nil || actual.Preconditions == nil {
		return actual
	}
	p := *actual.Preconditions
	if uid := expected.Preconditions.UID; uid != nil && *uid == "" && p.UID != nil {
		p.UID = uid
	}
	if version := expected.Preconditions.ResourceVersion; version != nil && *version == "" && p.ResourceVersion != nil {
		p.ResourceVersion = version
	}
	actual.Preconditions = &p
	return actual
}
