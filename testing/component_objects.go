package testing

import (
	"reflect"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/component/engine"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/testing/internal/objects"
)

// WithOwnership returns a copy of obj with the label and annotation by which a [component.ComponentReconciler] of
// that prefix marks the objects of owner, for tables that expect obj to be created. The digest is not among them: it is
// compared only where an expectation has one. It panics if the kind of owner is not known.
func WithOwnership[Type client.Object](obj Type, prefix string, owner client.Object, scheme *runtime.Scheme) Type {
	owner = objects.Copy(owner)
	kind, err := objects.KindOf(owner, scheme)
	if err != nil {
		panic(err)
	}
	text := engine.OwnerText(kind.GroupKind(), client.ObjectKeyFromObject(owner), "", owner.GetUID())
	owned := objects.Copy(obj)
	owned.SetLabels(with(owned.GetLabels(), prefix+"/"+generator.LabelOwnerID, engine.OwnerID(text)))
	owned.SetAnnotations(with(owned.GetAnnotations(), prefix+"/"+generator.AnnotationOwnerID, text))
	return owned
}

func with(m map[string]string, key, value string) map[string]string {
	if m == nil {
		m = map[string]string{}
	}
	m[key] = value
	return m
}

// componentStatuses returns the statuses of components that obj has, in the order of its fields.
func componentStatuses(obj client.Object) []*apis.ComponentStatus {
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

// IgnoreComputed clears the times and digests in the status of a component, and the UIDs, digests and the like in its
// inventory records. An expectation that starts from a [RolledOut] resource then does not compare them, see
// [DefaultDiffer].
func IgnoreComputed(status *apis.ComponentStatus) {
	none := &apis.ComponentStatus{Inventory: keysOnly(status.Inventory)}
	status.Inventory = copyOfRecords(status.Inventory)
	ignoreUnsetStatus(none, status)
}

// ignoreUnset returns actual without the computed fields of component statuses that expected does not set: times,
// digests and, in records, what identifies the state of an object.
func ignoreUnset(expected, actual client.Object) client.Object {
	want := componentStatuses(expected)
	if len(want) == 0 || reflect.TypeOf(expected) != reflect.TypeOf(actual) {
		return actual
	}
	actual = objects.Copy(actual)
	for i, status := range componentStatuses(actual) {
		if i < len(want) {
			ignoreUnsetStatus(want[i], status)
		}
	}
	return actual
}

func ignoreUnsetStatus(expected, actual *apis.ComponentStatus) {
	ignoreField(expected.LastObservedAt, &actual.LastObservedAt)
	ignoreField(expected.LastAppliedAt, &actual.LastAppliedAt)
	ignoreField(expected.ProcessingSince, &actual.ProcessingSince)
	ignoreField(expected.ProcessingDigest, &actual.ProcessingDigest)
	ignoreField(expected.LastProcessingDigest, &actual.LastProcessingDigest)
	ignoreUnsetRecords(expected.Inventory, actual.Inventory)
}

func ignoreUnsetRecords(expected, actual []apis.InventoryRecord) {
	wanted := make(map[plan.Key]*apis.InventoryRecord, len(expected))
	for i := range expected {
		wanted[plan.KeyOf(expected[i])] = &expected[i]
	}
	for i := range actual {
		record := &actual[i]
		if want, ok := wanted[plan.KeyOf(*record)]; ok {
			ignoreField(want.UID, &record.UID)
			ignoreField(want.Digest, &record.Digest)
			ignoreField(want.Fields, &record.Fields)
			ignoreField(want.Generation, &record.Generation)
			ignoreField(want.LastAppliedAt, &record.LastAppliedAt)
		}
	}
}

// ignoreField clears a field that the expectation does not set. Maps and lists are not set if they are empty.
func ignoreField[T any](expected T, actual *T) {
	v := reflect.ValueOf(&expected).Elem()
	if v.IsZero() || (v.Kind() == reflect.Map || v.Kind() == reflect.Slice) && v.Len() == 0 {
		reflect.ValueOf(actual).Elem().SetZero()
	}
}

// ignoreUnsetDigest returns a written object without the digest of a component, if expected has the label of the
// component but no digest.
func ignoreUnsetDigest(expected, actual client.Object) client.Object {
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

// ignoreUnsetApplied is ignoreUnsetDigest for server-side apply. It ignores the resource version too: a component sends
// the version of an object that it had to read, which depends on what it knew.
func ignoreUnsetApplied(expected, actual runtime.ApplyConfiguration) runtime.ApplyConfiguration {
	want, got := sent(expected), sent(actual)
	if want == nil || got == nil {
		return actual
	}
	labels, _, _ := unstructured.NestedStringMap(want, "metadata", "labels")
	annotations, _, _ := unstructured.NestedStringMap(want, "metadata", "annotations")
	if len(ownerPrefixes(labels)) == 0 {
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

// ownerPrefixes returns the prefixes of the components whose owner label is among the labels.
func ownerPrefixes(labels map[string]string) []string {
	var prefixes []string
	for label := range labels {
		if prefix, owned := strings.CutSuffix(label, "/"+generator.LabelOwnerID); owned {
			prefixes = append(prefixes, prefix)
		}
	}
	return prefixes
}

// digestsOf returns the keys of the digests of the components of the labels.
func digestsOf(labels map[string]string) []string { return unsetDigests(labels, nil) }

// unsetDigests returns the keys of the digests that are not among the annotations, for the components of the labels.
func unsetDigests(labels, annotations map[string]string) []string {
	var keys []string
	for _, prefix := range ownerPrefixes(labels) {
		if key := prefix + "/" + generator.AnnotationDigest; annotations[key] == "" {
			keys = append(keys, key)
		}
	}
	return keys
}
