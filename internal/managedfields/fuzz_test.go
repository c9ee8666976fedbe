package managedfields_test

import (
	"encoding/json"
	"testing"

	"github.com/espalier-dev/espalier/internal/managedfields"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

var fuzzed = []string{
	`{}`, `null`, `[]`, `{"metadata":1,"status":{}}`, `{"metadata":{"uid":"u","labels":{"a.b":"c"}},"data":{"":null,"a":[]}}`,
	`{"spec":{"c":[{"name":"a","p":[{"port":80}]},{"name":"a"},1,null,[[]]]},"metadata":{"finalizers":["a","a"]}}`,
	`{"spec":1e400}`, `{"a":{"a":{"a":[{"a":{}}]}}}`,
}

var fuzzedFields = []string{
	`{}`, ``, `null`, `{"f:spec":{"f:c":{"k:{\"name\":\"a\"}":{".":{},"f:p":{"k:{\"port\":80}":{}}}}}}`,
	`{"f:metadata":{"f:finalizers":{"v:\"a\"":{},"i:0":{},"v:{}":{},"k:{}":{}}}}`, `{"f:a":{"v:1":{"f:b":{}},"k:{\"x\":[1]}":{}}}`, `{".":{},"x:y":{}}`,
}

// Invariant L7: no content makes FromObject panic, and applying the outcome again changes nothing about it.
func FuzzFromObject(f *testing.F) {
	for _, content := range fuzzed {
		f.Add(content)
	}
	kind := unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	f.Fuzz(func(t *testing.T, content string) {
		u := &unstructured.Unstructured{}
		if err := json.Unmarshal([]byte(content), &u.Object); err != nil || u.Object == nil {
			t.Skip()
		}
		u.SetGroupVersionKind(kind.GroupVersionKind())
		wanted, err := managedfields.FromObject(u, kind.GroupVersionKind())
		if err != nil {
			t.Fatalf("content that can be decoded cannot be applied: %v", err)
		}
		again, err := managedfields.FromObject(&unstructured.Unstructured{Object: runtime.DeepCopyJSON(wanted)}, kind.GroupVersionKind())
		if diff := cmp.Diff(wanted, again); err != nil || diff != "" {
			t.Errorf("what is applied of what is applied differs (%v), want the same (-first +again):\n%s", err, diff)
		}
		if found := differences(wanted, wanted, nil, false); len(found) > 0 {
			t.Errorf("the content differs from itself in %v, want no difference", found)
		}
	})
}

// Invariant L7: no content and no managed fields make a comparison or a migration panic.
func FuzzCompare(f *testing.F) {
	for i, content := range fuzzed {
		for _, fields := range fuzzedFields {
			f.Add(content, fuzzed[(i+1)%len(fuzzed)], fields, fields, i%2 == 0)
			f.Add(content, content, fields, `{}`, i%2 == 0)
		}
	}
	f.Fuzz(func(t *testing.T, wantedText, thereText, ours, theirs string, leave bool) {
		var wanted, there map[string]any
		if utiljson.Unmarshal([]byte(wantedText), &wanted) != nil || utiljson.Unmarshal([]byte(thereText), &there) != nil || wanted == nil {
			t.Skip()
		}
		wanted["apiVersion"] = "v1"
		entries := []metav1.ManagedFieldsEntry{
			managedEntry("me", metav1.ManagedFieldsOperationApply, ours),
			managedEntry("me", metav1.ManagedFieldsOperationUpdate, theirs),
			managedEntry("other", metav1.ManagedFieldsOperationUpdate, theirs),
		}
		once := differences(wanted, there, entries, leave)
		if diff := cmp.Diff(once, differences(wanted, there, entries, leave)); diff != "" {
			t.Errorf("the comparison differs from the same comparison, want the same (-once +again):\n%s", diff)
		}
		_, _ = managedfields.Migration{Owner: managedfields.Owner{Name: "me", Before: []string{"other"}}, All: true}.Migrate(entries, wanted)
		_, _ = managedfields.Configuration(wanted).Without([]string{ours})
	})
}
