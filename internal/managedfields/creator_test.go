package managedfields_test

import (
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/managedfields"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The names are stored in clusters.
func TestCreatorStaysTheSame(t *testing.T) {
	wanted := fromYAML(t, `{kind: A, metadata: {name: n, labels: {a: x}}, data: {a: "1"}, list: [{b: 1}, 2]}`)
	if got := managedfields.Configuration(wanted).Creator("me"); got != "me@auyanqea" {
		t.Errorf("the creator is %s, want me@auyanqea", got)
	}
	long := strings.Repeat("m", 120)
	if got := managedfields.Configuration(wanted).Creator(long); got != long {
		t.Errorf("the creator is %s, want the name of the manager, since there is no room for more", got)
	}
}

// What the API server added to a created object is known as long as the same fields are wanted.
func TestCompareWithWhatWasCreated(t *testing.T) {
	const created = `{metadata: {labels: {a: x}}, data: {a: "1", b: [{c: 1}]}}`
	const there = `{metadata: {labels: {a: x}}, data: {a: "1", b: [{c: 1, added: 2}], added: "3"}}`
	const fields = `{"f:metadata":{"f:labels":{".":{},"f:a":{}}},"f:data":{".":{},"f:a":{},"f:b":{},"f:added":{}}}`
	creator := managedfields.Configuration(fromYAML(t, created)).Creator("me")
	const update = metav1.ManagedFieldsOperationUpdate
	for name, test := range map[string]struct {
		wanted, manager string
		want            []string
	}{
		"the same":         {wanted: created, manager: creator},
		"another value":    {wanted: strings.Replace(created, `"1"`, `"2"`, 1), manager: creator, want: []string{".data.a differs"}},
		"a field less":     {wanted: `{metadata: {labels: {a: x}}, data: {b: [{c: 1}]}}`, manager: creator, want: []string{".data.a left over", ".data.added left over", ".data.b differs"}},
		"a part less":      {wanted: `{metadata: {labels: {a: x}}, data: {a: "1", b: [{}]}}`, manager: creator, want: []string{".data.added left over", ".data.b differs"}},
		"an older release": {wanted: created, manager: "me", want: []string{".data.added left over", ".data.b differs"}},
		"another manager": {wanted: created, manager: "other@abcdefgh", want: []string{
			".data.a not ours", ".data.b not ours", ".metadata.labels.a not ours",
		}},
	} {
		entry := managedEntry(test.manager, update, fields)
		got := differences(fromYAML(t, test.wanted), fromYAML(t, there), []metav1.ManagedFieldsEntry{entry}, false)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: differences differ (-expected, +actual):\n%s", name, diff)
		}
	}
}
