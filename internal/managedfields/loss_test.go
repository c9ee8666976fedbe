package managedfields_test

import (
	"testing"

	"github.com/espalier-dev/espalier/internal/managedfields"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestLosses(t *testing.T) {
	const update, apply = metav1.ManagedFieldsOperationUpdate, metav1.ManagedFieldsOperationApply
	ours := func(fields string) metav1.ManagedFieldsEntry { return managedEntry("me", apply, fields) }
	by := func(name, fields string) metav1.ManagedFieldsEntry { return managedEntry(name, update, fields) }
	type losses = []managedfields.Loss
	for name, test := range map[string]struct {
		wanted, there string
		entries       []metav1.ManagedFieldsEntry
		want          losses
	}{
		"none": {
			wanted: `{data: {a: "1"}}`, there: `{data: {a: "1", b: x}}`,
			entries: []metav1.ManagedFieldsEntry{ours(`{"f:data":{"f:a":{}}}`), by("them", `{"f:data":{"f:b":{}}}`)},
			want:    losses{},
		},
		"to others": {
			wanted: `{data: {a/b: "1", c: "1"}, metadata: {name: x}}`, there: `{data: {a/b: "2", c: "1"}}`,
			entries: []metav1.ManagedFieldsEntry{
				ours(`{"f:data":{"f:c":{}}}`), by("them", `{"f:data":{"f:a/b":{}}}`), by("both", `{"f:data":{"f:a/b":{}}}`),
				by("nobody", `{"f:data":{"f:c":{}}}`),
			},
			want: losses{{".data.a/b", "/data/a~1b", []string{"both", "them"}}},
		},
		"of a list by key": {
			wanted: `{hooks: [{name: a}, {name: b, ca: "1"}]}`, there: `{hooks: [{name: a}, {name: b, ca: "2"}]}`,
			entries: []metav1.ManagedFieldsEntry{
				ours(`{"f:hooks":{"k:{\"name\":\"a\"}":{".":{},"f:name":{}},"k:{\"name\":\"b\"}":{".":{},"f:name":{}}}}`),
				by("them", `{"f:hooks":{"k:{\"name\":\"b\"}":{"f:ca":{}}}}`),
			},
			want: losses{{`.hooks[name="b"].ca`, "/hooks/1/ca", []string{"them"}}},
		},
		"an item of a list": {
			wanted: `{hooks: [{name: a}, {name: b}]}`, there: `{hooks: [{name: a}]}`,
			entries: []metav1.ManagedFieldsEntry{ours(`{"f:hooks":{"k:{\"name\":\"a\"}":{".":{},"f:name":{}}}}`)},
			want:    losses{{".hooks[1]", "/hooks/1", nil}},
		},
		"a value of a set": {
			wanted: `{of: [a, b]}`, there: `{of: [a]}`,
			entries: []metav1.ManagedFieldsEntry{ours(`{"f:of":{"v:\"a\"":{}}}`)},
			want:    losses{{".of[1]", "/of/1", nil}},
		},
		"as a whole": {
			wanted: `{rules: [{a: b}]}`, there: `{rules: [{a: c}]}`,
			entries: []metav1.ManagedFieldsEntry{ours(`{"f:data":{}}`), managedEntry("aggregation", apply, `{"f:rules":{}}`)},
			want:    losses{{".rules", "/rules", []string{"aggregation"}}},
		},
		"a part to others": {
			wanted: `{spec: {a: {b: x}}}`, there: `{spec: {a: {b: y, c: z}}}`,
			entries: []metav1.ManagedFieldsEntry{ours(`{"f:spec":{}}`), by("them", `{"f:spec":{"f:a":{"f:b":{}}}}`)},
			want:    losses{{".spec.a.b", "/spec/a/b", []string{"them"}}},
		},
		"all members of a map": {
			wanted: `{data: {a: "1", b: "1"}}`, there: `{data: {a: "1", b: "2", c: "3"}}`,
			entries: []metav1.ManagedFieldsEntry{ours(`{"f:data":{}}`), by("them", `{"f:data":{"f:b":{},"f:c":{}}}`)},
			want:    losses{{".data.b", "/data/b", []string{"them"}}},
		},
		"removed by nobody known": {
			wanted: `{data: {a: "1", b: "2"}}`, there: `{data: {b: "2"}}`,
			entries: []metav1.ManagedFieldsEntry{ours(`{"f:data":{"f:b":{}}}`)},
			want:    losses{{".data.a", "/data/a", nil}},
		},
		"other values under our name": {
			wanted: `{data: {a: "1"}}`, there: `{data: {a: "2"}}`, entries: []metav1.ManagedFieldsEntry{ours(`{"f:data":{"f:a":{}}}`)},
			want: losses{{".data.a", "/data/a", nil}},
		},
		"not understood": {
			wanted: `{data: {a: "1"}}`, there: `{data: {a: "2"}}`, entries: []metav1.ManagedFieldsEntry{ours(`{`)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := managedfields.Losses(fromYAML(t, test.wanted), fromYAML(t, test.there), test.entries, managedfields.Owner{Name: "me"})
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("unexpected (-want, +got):\n%s", diff)
			}
		})
	}
}
