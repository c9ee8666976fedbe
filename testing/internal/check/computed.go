package check

import (
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/testing/internal/objects"
)

// ComponentStatuses returns the statuses of components that obj has, in the order of its fields.
func ComponentStatuses(obj client.Object) []*apis.ComponentStatus {
	var found []*apis.ComponentStatus
	if mayHaveStatus(reflect.TypeOf(obj)) {
		collectStatuses(reflect.ValueOf(obj), &found)
	}
	return found
}

// withStatus reports by Go type whether objects may have the status of a component. Most have none, and to look for it
// takes a third of a comparison.
var withStatus sync.Map // of bool by reflect.Type

func mayHaveStatus(t reflect.Type) bool {
	if known, ok := withStatus.Load(t); ok {
		return known.(bool)
	}
	may := reachesStatus(t, map[reflect.Type]bool{})
	withStatus.Store(t, may)
	return may
}

// reachesStatus reports whether collectStatuses may come from a value of the type to a status. Seen are the types on
// the way.
func reachesStatus(t reflect.Type, seen map[reflect.Type]bool) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == reflect.TypeFor[apis.ComponentStatus]() {
		return true
	}
	if t.Kind() != reflect.Struct || seen[t] {
		return false
	}
	seen[t] = true
	for i := range t.NumField() {
		if field := t.Field(i); field.IsExported() && reachesStatus(field.Type, seen) {
			return true
		}
	}
	return false
}

func collectStatuses(v reflect.Value, found *[]*apis.ComponentStatus) {
	switch {
	case v.Kind() == reflect.Pointer && !v.IsNil() && v.Elem().Kind() == reflect.Struct:
		v = v.Elem()
	case v.Kind() != reflect.Struct || !v.CanAddr():
		return
	}
	if status, ok := v.Addr().Interface().(*apis.ComponentStatus); ok {
		*found = append(*found, status)
		return
	}
	for i := range v.NumField() {
		if v.Type().Field(i).IsExported() {
			collectStatuses(v.Field(i), found)
		}
	}
}

// IgnoreComputed clears in a status what IgnoreUnset ignores.
func IgnoreComputed(status *apis.ComponentStatus) {
	none := &apis.ComponentStatus{Inventory: KeysOnly(status.Inventory)}
	status.Inventory = CopyOfRecords(status.Inventory)
	ignoreUnsetStatus(none, status)
}

// IgnoreUnset returns actual without the computed fields of component statuses that expected does not set: times,
// digests and, in records, what identifies the state of an object.
func IgnoreUnset(expected, actual client.Object) client.Object {
	want := ComponentStatuses(expected)
	if len(want) == 0 || reflect.TypeOf(expected) != reflect.TypeOf(actual) {
		return actual
	}
	actual = objects.Copy(actual)
	for i, status := range ComponentStatuses(actual) {
		if i < len(want) {
			ignoreUnsetStatus(want[i], status)
		}
	}
	return actual
}

func ignoreUnsetStatus(expected, actual *apis.ComponentStatus) {
	IgnoreField(expected.LastObservedAt, &actual.LastObservedAt)
	IgnoreField(expected.LastAppliedAt, &actual.LastAppliedAt)
	IgnoreField(expected.ProcessingSince, &actual.ProcessingSince)
	IgnoreField(expected.ProcessingDigest, &actual.ProcessingDigest)
	IgnoreField(expected.LastProcessingDigest, &actual.LastProcessingDigest)
	IgnoreUnsetRecords(expected.Inventory, actual.Inventory)
}

func IgnoreUnsetRecords(expected, actual []apis.InventoryRecord) {
	wanted := make(map[plan.Key]*apis.InventoryRecord, len(expected))
	for i := range expected {
		wanted[plan.KeyOf(expected[i])] = &expected[i]
	}
	for i := range actual {
		record := &actual[i]
		if want, ok := wanted[plan.KeyOf(*record)]; ok {
			IgnoreField(want.UID, &record.UID)
			IgnoreField(want.Digest, &record.Digest)
			IgnoreField(want.Fields, &record.Fields)
			IgnoreField(want.Generation, &record.Generation)
			IgnoreField(want.LastAppliedAt, &record.LastAppliedAt)
		}
	}
}

// IgnoreField clears a field that the expectation does not set. Maps and lists are not set if they are empty.
func IgnoreField[T any](expected T, actual *T) {
	v := reflect.ValueOf(&expected).Elem()
	if v.IsZero() || (v.Kind() == reflect.Map || v.Kind() == reflect.Slice) && v.Len() == 0 {
		reflect.ValueOf(actual).Elem().SetZero()
	}
}

// IgnoreUnsetDigest returns a written object without the digest of a component, if expected has the label of the
// component but no digest.
func IgnoreUnsetDigest(expected, actual client.Object) client.Object {
	keys := unsetDigests(expected.GetLabels(), expected.GetAnnotations())
	if len(keys) == 0 {
		return actual
	}
	actual = objects.Copy(actual)
	annotations := actual.GetAnnotations()
	for _, key := range keys {
		delete(annotations, key)
	}
	actual.SetAnnotations(annotations)
	return actual
}

// IgnoreUnsetApplied is IgnoreUnsetDigest for server-side apply. It ignores the resource version too: a component sends
// the version of an object that it had to read, which depends on what it knew.
func IgnoreUnsetApplied(expected, actual runtime.ApplyConfiguration) runtime.ApplyConfiguration {
	want, got := Sent(expected), Sent(actual)
	if want == nil || got == nil {
		return actual
	}
	labels, _, _ := unstructured.NestedStringMap(want, "metadata", "labels")
	annotations, _, _ := unstructured.NestedStringMap(want, "metadata", "annotations")
	if len(OwnerPrefixes(labels)) == 0 {
		return actual
	}
	if version, _, _ := unstructured.NestedString(want, "metadata", "resourceVersion"); version == "" {
		unstructured.RemoveNestedField(got, "metadata", "resourceVersion")
	}
	for _, key := range unsetDigests(labels, annotations) {
		unstructured.RemoveNestedField(got, "metadata", "annotations", key)
	}
	return client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: got})
}

// OwnerPrefixes returns the prefixes of the components whose owner label is among the labels.
func OwnerPrefixes(labels map[string]string) []string {
	var prefixes []string
	for label := range labels {
		if prefix, owned := strings.CutSuffix(label, "/"+generator.LabelOwnerID); owned {
			prefixes = append(prefixes, prefix)
		}
	}
	return prefixes
}

// DigestsOf returns the keys of the digests of the components of the labels.
func DigestsOf(labels map[string]string) []string { return unsetDigests(labels, nil) }

// unsetDigests returns the keys of the digests that are not among the annotations, for the components of the labels.
func unsetDigests(labels, annotations map[string]string) []string {
	var keys []string
	for _, prefix := range OwnerPrefixes(labels) {
		if key := prefix + "/" + generator.AnnotationDigest; annotations[key] == "" {
			keys = append(keys, key)
		}
	}
	return keys
}

// CopyOfRecords returns a deep copy of records.
func CopyOfRecords(records []apis.InventoryRecord) []apis.InventoryRecord {
	copied := slices.Clone(records)
	for i := range copied {
		copied[i] = *records[i].DeepCopy()
	}
	return copied
}

// KeysOnly returns records with nothing but the keys of their objects.
func KeysOnly(records []apis.InventoryRecord) []apis.InventoryRecord {
	keys := make([]apis.InventoryRecord, len(records))
	for i, r := range records {
		keys[i] = apis.InventoryRecord{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
	}
	return keys
}
