package managedfields_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/managedfields"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A migration changes nothing of what it is given, and does not depend on the order of names.
func TestMigrate(t *testing.T) {
	wanted := managedfields.Configuration{"apiVersion": "v1", "kind": "ConfigMap"}
	const update, apply = metav1.ManagedFieldsOperationUpdate, metav1.ManagedFieldsOperationApply
	given := []metav1.ManagedFieldsEntry{
		managedEntry("old", update, `{"f:a":{}}`),
		managedEntry("me", update, `{"f:b":{}}`),
		managedEntry("me-too", update, `{"f:c":{}}`),
		managedEntry("old", apply, `{"f:d":{}}`),
		{Manager: "older", Operation: update, APIVersion: "v1", FieldsType: "FieldsV1"},
		{Manager: "old", Operation: update, APIVersion: "v1", FieldsType: "FieldsV1", Subresource: "status", FieldsV1: metav1.NewFieldsV1(`{"f:s":{}}`)},
	}
	before := copyEntries(given)
	want := []metav1.ManagedFieldsEntry{managedEntry("me", apply, `{"f:a":{},"f:b":{}}`), given[2], given[3], given[5]}
	for range 20 {
		me := managedfields.Owner{Name: "me", Before: []string{"older", "old"}}
		got, from := managedfields.Migration{Owner: me, All: true}.Migrate(given, wanted)
		if want := []string{"me", "old", "older"}; !slices.Equal(from, want) {
			t.Fatalf("migrated the fields of %q, want %q", from, want)
		}
		slices.SortFunc(got, func(a, b metav1.ManagedFieldsEntry) int {
			return strings.Compare(a.Manager+a.Subresource, b.Manager+b.Subresource)
		})
		slices.SortFunc(want, func(a, b metav1.ManagedFieldsEntry) int {
			return strings.Compare(a.Manager+a.Subresource, b.Manager+b.Subresource)
		})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("managed fields differ (-expected, +actual):\n%s", diff)
		}
		if diff := cmp.Diff(before, given); diff != "" {
			t.Fatalf("what was given was changed (-was +is), want it unchanged:\n%s", diff)
		}
	}
	for name, entries := range map[string][]metav1.ManagedFieldsEntry{"none": nil, "nothing of ours": {given[2]}, "applied already": {want[0]}} {
		got, from := managedfields.Migration{Owner: managedfields.Owner{Name: "me"}, All: true}.Migrate(entries, wanted)
		if diff := cmp.Diff(entries, got); diff != "" || len(from) > 0 {
			t.Errorf("%s: migrated the fields of %q, want none (-expected, +actual):\n%s", name, from, diff)
		}
	}
	broken := []metav1.ManagedFieldsEntry{managedEntry("old", update, `{"f:a":`)}
	me := managedfields.Owner{Name: "me", Before: []string{"old"}}
	got, from := managedfields.Migration{Owner: me, All: true}.Migrate(broken, wanted)
	if diff := cmp.Diff(broken, got); diff != "" || len(from) > 0 {
		t.Errorf("migrated broken fields of %q, want none (-expected, +actual):\n%s", from, diff)
	}
}

func copyEntries(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	copied := make([]metav1.ManagedFieldsEntry, len(entries))
	for i := range entries {
		copied[i] = *entries[i].DeepCopy()
	}
	return copied
}
