package testing

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/internal/component/engine"
	"github.com/espalier-dev/espalier/internal/component/plan"
)

// Marked returns a copy of obj with the marks that a [components.ComponentReconciler] of that prefix puts on the objects of owner, for
// whom a table expects to be created. The digest is not among them: it is compared only where an expectation has one. It panics if
// the kind of owner is not known.
func Marked[Type client.Object](obj Type, prefix string, owner client.Object, scheme *runtime.Scheme) Type {
	owner = realObject(owner)
	kind, err := kindOf(owner, scheme)
	if err != nil {
		panic(err)
	}
	text := engine.OwnerText(kind.GroupKind(), client.ObjectKeyFromObject(owner), owner.GetUID())
	marked := copyOf(obj)
	marked.SetLabels(with(marked.GetLabels(), prefix+"/"+component.LabelOwnerID, engine.OwnerID(text)))
	marked.SetAnnotations(with(marked.GetAnnotations(), prefix+"/"+component.AnnotationOwnerID, text))
	return marked
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
	collectStatuses(reflect.ValueOf(obj), &found)
	return found
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

// LeaveOpen clears what the status of a component says about times, digests and, in records, the state of an object, so that an
// expectation that starts from a [RolledOut] resource does not compare it, see [DefaultDiffer].
func LeaveOpen(status *apis.ComponentStatus) {
	none := &apis.ComponentStatus{Inventory: bare(status.Inventory)}
	status.Inventory = copyOfRecords(status.Inventory)
	leaveUnsaidStatus(none, status)
}

// leaveUnsaid returns actual without what it says of the components of a resource that expected leaves open: times, digests and, in
// records, what identifies the state of an object.
func leaveUnsaid(expected, actual client.Object) client.Object {
	said := componentStatuses(expected)
	if len(said) == 0 || reflect.TypeOf(expected) != reflect.TypeOf(actual) {
		return actual
	}
	actual = realObject(actual)
	for i, status := range componentStatuses(actual) {
		if i >= len(said) {
			break
		}
		leaveUnsaidStatus(said[i], status)
	}
	return actual
}

func leaveUnsaidStatus(expected, actual *apis.ComponentStatus) {
	leaveOpen(expected.LastObservedAt, &actual.LastObservedAt)
	leaveOpen(expected.LastAppliedAt, &actual.LastAppliedAt)
	leaveOpen(expected.ProcessingSince, &actual.ProcessingSince)
	leaveOpen(expected.ProcessingDigest, &actual.ProcessingDigest)
	leaveOpen(expected.LastProcessingDigest, &actual.LastProcessingDigest)
	leaveUnsaidRecords(expected.Inventory, actual.Inventory)
}

func leaveUnsaidRecords(expected, actual []apis.InventoryRecord) {
	said := make(map[plan.Key]*apis.InventoryRecord, len(expected))
	for i := range expected {
		said[plan.KeyOf(expected[i])] = &expected[i]
	}
	for i := range actual {
		record := &actual[i]
		want, ok := said[plan.KeyOf(*record)]
		if !ok {
			continue
		}
		leaveOpen(want.UID, &record.UID)
		leaveOpen(want.Digest, &record.Digest)
		leaveOpen(want.Fields, &record.Fields)
		leaveOpen(want.Generation, &record.Generation)
		leaveOpen(want.LastAppliedAt, &record.LastAppliedAt)
	}
}

// leaveOpen drops what nothing is expected of.
func leaveOpen[T comparable](expected T, actual *T) {
	var none T
	if expected == none {
		*actual = none
	}
}

// withoutUnsaidDigest returns a written object without the digest of a component that expected has the mark of, and no digest.
func withoutUnsaidDigest(expected, actual client.Object) client.Object {
	keys := unsaidDigests(expected.GetLabels(), expected.GetAnnotations())
	if len(keys) == 0 {
		return actual
	}
	actual = realObject(actual)
	annotations := actual.GetAnnotations()
	for _, key := range keys {
		delete(annotations, key)
	}
	actual.SetAnnotations(annotations)
	return actual
}

// withoutUnsaidApplied is withoutUnsaidDigest for what is applied. A component names the version of an object that it had to read, which
// depends on what it knew.
func withoutUnsaidApplied(expected, actual runtime.ApplyConfiguration) runtime.ApplyConfiguration {
	want, got := sent(expected), sent(actual)
	if want == nil || got == nil {
		return actual
	}
	labels, _, _ := unstructured.NestedStringMap(want, "metadata", "labels")
	annotations, _, _ := unstructured.NestedStringMap(want, "metadata", "annotations")
	if !isMarked(labels) {
		return actual
	}
	if version, _, _ := unstructured.NestedString(want, "metadata", "resourceVersion"); version == "" {
		unstructured.RemoveNestedField(got, "metadata", "resourceVersion")
	}
	for _, key := range unsaidDigests(labels, annotations) {
		unstructured.RemoveNestedField(got, "metadata", "annotations", key)
	}
	return client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: got})
}

// isMarked tells whether labels have the mark of a component.
func isMarked(labels map[string]string) bool {
	for label := range labels {
		if strings.HasSuffix(label, "/"+component.LabelOwnerID) {
			return true
		}
	}
	return false
}

// unsaidDigests are the keys of the digests of the components whose mark is among the labels.
func unsaidDigests(labels, annotations map[string]string) []string {
	var keys []string
	for label := range labels {
		prefix, marked := strings.CutSuffix(label, "/"+component.LabelOwnerID)
		if key := prefix + "/" + component.AnnotationDigest; marked && annotations[key] == "" {
			keys = append(keys, key)
		}
	}
	return keys
}
