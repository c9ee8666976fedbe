package registry_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/espalier-dev/espalier/testing/internal/registry"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// mergeRows are objects of testdata/definitions/gadgets.yaml with each way to merge.
var mergeRows = map[string]string{
	"defaults": `spec: {owner: me}`,
	"keys of lists": `
spec: {owner: me, ports: [{number: 1}, {number: 1, protocol: UDP}], groups: [{name: a, members: [{id: b}, {}]}]}`,
	"sets":           `spec: {owner: me, tags: [a, b]}`,
	"maps":           `spec: {owner: me, labels: {a: one, b: two}, selector: {key: a, values: [b]}}`,
	"unknown fields": `spec: {owner: me, free: {known: 1, other: {deep: [{a: 1}]}}}`,
	"embedded resource": `
spec: {owner: me, template: {apiVersion: v1, kind: Pod, metadata: {name: a, finalizers: [a/b], labels: {a: b}}, x: {z: 1}}}`,
	"untyped": `spec: {owner: me, port: 80, nickname: null}`,
}

// TestFieldsOfCustomResources shows how objects are merged: as the fields that their manager owns. They are those that a
// real API server recorded.
func TestFieldsOfCustomResources(t *testing.T) {
	t.Parallel()
	strategy := strategyOf(t, definitionFrom(t, "gadgets"))
	got := answers{}
	for row, content := range mergeRows {
		obj := withContent(t, smallGadget(t, strategy), content)
		strategy.PrepareForCreate(obj)
		got[row] = []answer{{Object: fieldsOf(t, strategy, obj)}}
	}
	compareRecorded(t, "fields", got)
}

func TestFieldsOfCustomResourcesOnServer(t *testing.T) {
	t.Parallel()
	c, namespace := server(t)
	definition := definitionFrom(t, "gadgets")
	definition.Spec.Names.Plural, definition.Spec.Names.Kind = "merged", "Merged"
	definition.Name = "merged.definitions.espalier.dev"
	establish(t, c, definition)
	got := answers{}
	for row, content := range mergeRows {
		obj := withContent(t, objectOf(t, definition, namespace, row), content)
		if err := c.Create(t.Context(), obj, client.FieldOwner("test")); err != nil {
			t.Fatal(err)
		}
		managed := obj.GetManagedFields()
		if len(managed) != 1 || managed[0].Operation != metav1.ManagedFieldsOperationUpdate {
			t.Fatalf("the managed fields of %s are %v, want 1 entry of an update", row, managed)
		}
		got[row] = []answer{{Object: decodeFields(t, managed[0].FieldsV1.GetRawBytes())}}
	}
	recordServer(t, "fields", got)
}

// fieldsOf returns the fields of an object, as managed fields have them.
func fieldsOf(t *testing.T, strategy registry.Strategy, obj *unstructured.Unstructured) map[string]any {
	t.Helper()
	// An empty object has the fields that no manager owns.
	empty := strategy.New().(*unstructured.Unstructured)
	empty.Object["metadata"] = obj.Object["metadata"]
	before, err := strategy.Converter().ObjectToTyped(empty)
	if err != nil {
		t.Fatal(err)
	}
	after, err := strategy.Converter().ObjectToTyped(obj)
	if err != nil {
		t.Fatal(err)
	}
	change, err := before.Compare(after)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := change.Added.ToJSON()
	if err != nil {
		t.Fatal(err)
	}
	return decodeFields(t, encoded)
}

func decodeFields(t *testing.T, encoded []byte) (fields map[string]any) {
	t.Helper()
	if err := json.NewDecoder(bytes.NewReader(encoded)).Decode(&fields); err != nil {
		t.Fatal(err)
	}
	return fields
}
