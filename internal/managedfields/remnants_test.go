package managedfields

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// made is what the maker of an object wrote: the owner reference, a finalizer, and fields with and without lists.
const made = `{"f:metadata":{"f:ownerReferences":{".":{},"k:{\"uid\":\"u\"}":{}},"f:finalizers":{".":{},"v:\"a/b\"":{}},
	"f:annotations":{".":{},"f:old":{}}},"f:spec":{"f:paused":{},"f:ports":{
	"k:{\"port\":80}":{".":{},"f:port":{},"f:name":{}},"k:{\"port\":81}":{".":{},"f:port":{}}}}}`

func entryOf(manager string, operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: operation, APIVersion: "v1", FieldsType: fieldsType,
		FieldsV1: metav1.NewFieldsV1(fields),
	}
}

func TestRemnants(t *testing.T) {
	const update, apply = metav1.ManagedFieldsOperationUpdate, metav1.ManagedFieldsOperationApply
	wanted := Configuration{"apiVersion": "v1", "kind": "Service", "spec": map[string]any{
		"ports": []any{map[string]any{"port": int64(80)}},
	}}
	live := func() map[string]any {
		return map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{"old": "yes", "theirs": "yes"}},
			"spec": map[string]any{"paused": true, "ports": []any{
				map[string]any{"port": int64(80), "name": "web"}, map[string]any{"port": int64(81)},
			}},
		}
	}
	ours := entryOf("ours", apply, `{"f:spec":{"f:ports":{"k:{\"port\":80}":{".":{},"f:port":{}}}}}`)
	theirs := entryOf("theirs", update, `{"f:metadata":{"f:annotations":{"f:theirs":{}}}}`)
	maker, status := entryOf("maker", update, made), entryOf("maker", update, made)
	status.Subresource = "status"
	const all = `[maker .metadata.annotations.old maker .spec.paused maker .spec.ports[port=80].name ` +
		`maker .spec.ports[port=81]]`
	for name, test := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		before  []string
		applied bool
		want    string
	}{
		"of the maker":         {entries: []metav1.ManagedFieldsEntry{ours, maker, theirs}, applied: true, want: all},
		"before an apply":      {entries: []metav1.ManagedFieldsEntry{maker, theirs}, want: all},
		"of the owner itself":  {entries: []metav1.ManagedFieldsEntry{maker}, before: []string{"maker"}, want: "[]"},
		"of a subresource":     {entries: []metav1.ManagedFieldsEntry{ours, status}, applied: true, want: "[]"},
		"of nobody knows whom": {entries: []metav1.ManagedFieldsEntry{entryOf(unknown, update, made)}, want: "[]"},
		"applied":              {entries: []metav1.ManagedFieldsEntry{entryOf("maker", apply, made)}, want: "[]"},
		"of another resource":  {entries: []metav1.ManagedFieldsEntry{theirs}, want: "[]"},
		"without any entry":    {want: "[]"},
		"that nobody can read": {entries: []metav1.ManagedFieldsEntry{entryOf("maker", update, `[`)}, want: "[]"},
	} {
		owner := Owner{Name: "ours", Before: test.before}
		m := Migration{Owner: owner, Kept: [][]string{{"metadata", "finalizers"}}}
		remnants := m.Remnants(wanted, live(), test.entries, "u")
		names := []string{}
		for _, remnant := range remnants {
			names = append(names, remnant.Manager, remnant.String())
		}
		if got := fmt.Sprint(names); got != test.want || owner.HasApplied(test.entries) != test.applied {
			t.Errorf("%s: found %s, want %s, applied %t", name, got, test.want, test.applied)
		}
		if len(remnants) == 0 {
			continue
		}
		before := live()
		rest := WithoutRemnants(before, remnants)
		const want = "map[metadata:map[annotations:map[theirs:yes]] spec:map[ports:[map[port:80]]]]"
		if got := fmt.Sprint(rest); got != want {
			t.Errorf("%s: without them there is %s", name, got)
		}
		if got := fmt.Sprint(before); got != fmt.Sprint(live()) {
			t.Errorf("%s: the object itself has become %s", name, got)
		}
		rest["spec"].(map[string]any)["paused"] = true
		for _, remnant := range remnants {
			if is := remnant.IsDefault(before, rest); is != (remnant.String() == ".spec.paused") {
				t.Errorf("%s: %s is a default: %t", name, remnant, is)
			}
		}
	}
}
