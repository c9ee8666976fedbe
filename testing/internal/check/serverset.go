package check

import (
	"encoding/json"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/testing/internal/objects"
)

// An API server gives objects what only a server sets: UID, resource version, generation, creation time and
// managed fields. Rows are written without them. So they are compared only where an expectation sets them, and so are
// the UIDs of owner references. The observed generation of a status that is current equals none, if the expectation has
// no generation.

// WithoutServerSet returns actual without what only a server sets and expected does not set.
func WithoutServerSet(expected, actual client.Object) client.Object {
	if gotype.IsNil(expected) || gotype.IsNil(actual) {
		return actual
	}
	if !hasServerSet(expected, actual) {
		return actual
	}
	actual = objects.Copy(actual)
	if expected.GetGeneration() == 0 {
		clearObserved(expected, actual)
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

// WithoutAnyServerSet returns a copy of an object as a row has it.
func WithoutAnyServerSet(obj client.Object) client.Object {
	var refs []metav1.OwnerReference
	for _, ref := range obj.GetOwnerReferences() {
		refs = append(refs, metav1.OwnerReference{Name: ref.Name})
	}
	unset := &metav1.PartialObjectMetadata{}
	unset.SetOwnerReferences(refs)
	return WithoutServerSet(unset, objects.Copy(obj))
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

// clearObserved clears the fields of the status of actual that observe its generation, unless expected sets them.
func clearObserved(expected, actual client.Object) {
	generation := actual.GetGeneration()
	if u, ok := actual.(*unstructured.Unstructured); ok {
		want, _ := expected.(*unstructured.Unstructured)
		if want == nil {
			want = &unstructured.Unstructured{}
		}
		clearObservedKeys(want.Object["status"], u.Object["status"], generation)
		return
	}
	if got, ok := statusOf(actual); ok {
		want, _ := statusOf(expected)
		if want.IsValid() && want.Type() != got.Type() {
			want = reflect.Value{}
		}
		clearObservedFields(want, got, generation)
	}
}

func clearObservedKeys(expected, actual any, generation int64) {
	switch actual := actual.(type) {
	case map[string]any:
		want, _ := expected.(map[string]any)
		if _, set := want["observedGeneration"]; !set && actual["observedGeneration"] == generation {
			delete(actual, "observedGeneration")
		}
		for key, nested := range actual {
			clearObservedKeys(want[key], nested, generation)
		}
	case []any:
		want, _ := expected.([]any)
		for i, nested := range actual {
			var at any
			if i < len(want) {
				at = want[i]
			}
			clearObservedKeys(at, nested, generation)
		}
	}
}

// clearObservedFields works with values of one type. An expected value that is not valid sets nothing.
func clearObservedFields(expected, actual reflect.Value, generation int64) {
	switch actual.Kind() {
	case reflect.Pointer:
		if actual.IsNil() {
			return
		}
		if expected.IsValid() {
			expected = expected.Elem()
		}
		clearObservedFields(expected, actual.Elem(), generation)
	case reflect.Slice:
		for i := range actual.Len() {
			var at reflect.Value
			if expected.IsValid() && i < expected.Len() {
				at = expected.Index(i)
			}
			clearObservedFields(at, actual.Index(i), generation)
		}
	case reflect.Struct:
		for i := range actual.NumField() {
			var want reflect.Value
			if expected.IsValid() {
				want = expected.Field(i)
			}
			field := actual.Field(i)
			switch {
			case !field.CanSet():
			case actual.Type().Field(i).Name == "ObservedGeneration" && field.CanInt():
				if field.Int() == generation && (!want.IsValid() || want.IsZero()) {
					field.SetInt(0)
				}
			default:
				clearObservedFields(want, field, generation)
			}
		}
	}
}

// AppliedWithoutServerSet returns actual without what only a server sets and expected does not set.
func AppliedWithoutServerSet(expected, actual runtime.ApplyConfiguration) runtime.ApplyConfiguration {
	if gotype.IsNil(expected) || gotype.IsNil(actual) {
		return actual
	}
	members := Sent(actual)
	if !clearMembers(Sent(expected), members) {
		return actual
	}
	return client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: members})
}

// PatchWithoutServerSet is AppliedWithoutServerSet for patches in JSON that are objects.
func PatchWithoutServerSet(expected, actual []byte) []byte {
	if !AreJSON(expected, actual) {
		return actual
	}
	wanted, _ := FromJSON(expected).(map[string]any)
	members, _ := FromJSON(actual).(map[string]any)
	if clearMembers(wanted, members) {
		if raw, err := json.Marshal(members); err == nil {
			return raw
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
		uid, has := wantRef["uid"]
		if !ok || has && uid != "" || wantRef["name"] != gotRef["name"] {
			continue
		}
		delete(gotRef, "uid")
		if has {
			gotRef["uid"] = uid
		}
		cleared = true
	}
	return cleared
}

// PreconditionsWithoutServerSet returns actual without the values that only a server sets, where the expected one is
// the empty value of an object of the row.
func PreconditionsWithoutServerSet(expected, actual *metav1.Preconditions) *metav1.Preconditions {
	if expected == nil || actual == nil {
		return actual
	}
	p := *actual
	if uid := expected.UID; uid != nil && *uid == "" && p.UID != nil {
		p.UID = uid
	}
	if version := expected.ResourceVersion; version != nil && *version == "" && p.ResourceVersion != nil {
		p.ResourceVersion = version
	}
	return &p
}

// WithServerFields gives expected, an object of a table, the metadata of actual that only a server sets.
func WithServerFields(expected, actual client.Object) {
	expected.SetResourceVersion(actual.GetResourceVersion())
	expected.SetUID(actual.GetUID())
	expected.SetGeneration(actual.GetGeneration())
	expected.SetCreationTimestamp(actual.GetCreationTimestamp())
	expected.SetManagedFields(actual.GetManagedFields())
}
