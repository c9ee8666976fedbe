package execute_test

import (
	"testing"

	"github.com/espalier-dev/espalier/internal/component/execute"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func entry(manager string, operation metav1.ManagedFieldsOperationType, version, fields string, subresource ...string) metav1.ManagedFieldsEntry {
	e := metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, APIVersion: version, FieldsType: "FieldsV1"}
	if fields != "" {
		e.FieldsV1 = metav1.NewFieldsV1(fields)
	}
	for _, s := range subresource {
		e.Subresource = s
	}
	return e
}

func TestMerge(t *testing.T) {
	const apply, update = metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate
	type entries = []metav1.ManagedFieldsEntry
	const body = `{apiVersion: v1, spec: {a: 1, ports: [{port: 80, v: 1}, {port: 90, protocol: UDP}], set: [x, 2]}}`
	bad := entry("us", update, "v1", `{"f:spec":`)
	for _, test := range []struct {
		name          string
		before, after entries
		// unchanged: nothing has to be merged.
		unchanged bool
		reclaim   []string
		ignored   [][]string
	}{
		{name: "nothing", unchanged: true},
		{name: "all is applied", before: entries{entry("us", update, "v1", `{"f:spec":{".":{},"f:a":{}}}`)}, unchanged: true},
		{name: "no fields", before: entries{entry("us", update, "v1", ``)}, unchanged: true},
		{name: "a stray in what is applied", before: entries{entry("us", apply, "v1", `{"f:spec":{"f:b":{}}}`)}, unchanged: true},
		{name: "a stray becomes applied",
			before: entries{entry("them", update, "v1", `{"f:spec":{"f:c":{}}}`), entry("us", update, "v1", `{"f:spec":{"f:b":{}}}`)},
			after:  entries{entry("them", update, "v1", `{"f:spec":{"f:c":{}}}`), entry("us", apply, "v1", `{"f:spec":{"f:b":{}}}`)}},
		{name: "a stray joins what is applied",
			before: entries{entry("us", update, "v1", `{"f:spec":{"f:b":{}}}`), entry("us", apply, "v1", `{"f:spec":{"f:a":{}}}`)},
			after:  entries{entry("us", apply, "v1", `{"f:spec":{"f:a":{},"f:b":{}}}`)}},
		{name: "another version",
			before: entries{entry("us", apply, "v0", `{"f:spec":{"f:b":{}}}`), entry("us", apply, "v1", `{"f:spec":{"f:a":{}}}`)},
			after:  entries{entry("us", apply, "v1", `{"f:spec":{"f:a":{},"f:b":{}}}`)}},
		{name: "subresource", before: entries{entry("us", update, "v1", `{"f:spec":{"f:b":{}}}`, "scale")}, unchanged: true},
		{name: "others", before: entries{entry("kubectl-x", update, "v1", `{"f:spec":{"f:b":{}}}`)}, reclaim: []string{"", "kubectl-y"}, unchanged: true},
		{name: "reclaimed",
			before:  entries{entry("kubectl-x", apply, "v1", `{"f:spec":{"f:b":{}}}`), entry("kubectl", update, "v0", `{"f:spec":{"f:c":{}}}`), entry("kubectl", update, "v1", `{"f:spec":{"f:d":{}}}`, "status")},
			reclaim: []string{"kubectl"},
			after:   entries{entry("us", apply, "v1", `{"f:spec":{"f:b":{},"f:c":{}}}`), entry("kubectl", update, "v1", `{"f:spec":{"f:d":{}}}`, "status")}},
		{name: "finalizers stay",
			before: entries{entry("us", update, "v1", `{"f:metadata":{"f:finalizers":{".":{},"v:\"x\"":{}}},"f:spec":{"f:b":{}}}`)},
			after:  entries{entry("us", apply, "v1", `{"f:spec":{"f:b":{}}}`)}},
		{name: "only finalizers", before: entries{entry("us", update, "v1", `{"f:metadata":{"f:finalizers":{".":{},"v:\"x\"":{}}}}`)}, unchanged: true},
		{name: "ignored", before: entries{entry("us", update, "v1", `{"f:spec":{"f:b":{".":{},"f:c":{}}}}`)}, ignored: [][]string{{"spec", "b", "c"}}, unchanged: true},
		{name: "below what is ignored", before: entries{entry("us", update, "v1", `{"f:spec":{"f:b":{".":{},"f:c":{}}}}`)}, ignored: [][]string{{"spec", "b"}}, unchanged: true},
		{name: "ignored in a list", before: entries{entry("us", update, "v1", `{"f:spec":{"f:l":{"k:{\"name\":\"x\"}":{"f:c":{}}}}}`)}, ignored: [][]string{{"spec", "l", "0", "c"}}, unchanged: true},
		{name: "beside what is ignored",
			before:  entries{entry("us", update, "v1", `{"f:spec":{"f:b":{},"f:l":{"k:{\"name\":\"x\"}":{"f:d":{}}}}}`)},
			ignored: [][]string{{"spec", "c"}, {"spec", "l", "x", "d"}, {"spec", "l", "0", "c"}},
			after:   entries{entry("us", apply, "v1", `{"f:spec":{"f:b":{},"f:l":{"k:{\"name\":\"x\"}":{"f:d":{}}}}}`)}},
		{name: "elements that are applied",
			before:    entries{entry("us", update, "v1", `{"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:v":{}},"k:{\"port\":90,\"protocol\":\"UDP\"}":{}},"f:set":{"v:\"x\"":{},"v:2":{}}}}`)},
			unchanged: true},
		{name: "element of another protocol",
			before: entries{entry("us", update, "v1", `{"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"UDP\"}":{}}}}`)},
			after:  entries{entry("us", apply, "v1", `{"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"UDP\"}":{}}}}`)}},
		{name: "element by a key that is not known",
			before: entries{entry("us", update, "v1", `{"f:spec":{"f:ports":{"k:{\"port\":80,\"zone\":\"a\"}":{}}}}`)},
			after:  entries{entry("us", apply, "v1", `{"f:spec":{"f:ports":{"k:{\"port\":80,\"zone\":\"a\"}":{}}}}`)}},
		{name: "element of a set",
			before: entries{entry("us", update, "v1", `{"f:spec":{"f:set":{"v:\"y\"":{}}}}`)},
			after:  entries{entry("us", apply, "v1", `{"f:spec":{"f:set":{"v:\"y\"":{}}}}`)}},
		{name: "of another shape",
			before: entries{entry("us", update, "v1", `{"f:spec":{"f:a":{"f:b":{}},"f:set":{"f:b":{}}}}`)},
			after:  entries{entry("us", apply, "v1", `{"f:spec":{"f:a":{"f:b":{}},"f:set":{"f:b":{}}}}`)}},
		{name: "element of what is no list",
			before: entries{entry("us", update, "v1", `{"f:spec":{"f:a":{"v:1":{}}}}`)},
			after:  entries{entry("us", apply, "v1", `{"f:spec":{"f:a":{"v:1":{}}}}`)}},
		{name: "element by key of what has none",
			before: entries{entry("us", update, "v1", `{"f:spec":{"f:set":{"k:{\"name\":\"x\"}":{}}}}`)},
			after:  entries{entry("us", apply, "v1", `{"f:spec":{"f:set":{"k:{\"name\":\"x\"}":{}}}}`)}},
		{name: "elements by their place",
			before: entries{entry("us", update, "v1", `{"f:spec":{"f:set":{"i:1":{}}}}`), entry("us", update, "v1", `{"f:spec":{"f:set":{"i:2":{}}}}`)},
			after:  entries{entry("us", apply, "v1", `{"f:spec":{"f:set":{"i:1":{},"i:2":{}}}}`)}},
		{name: "fields of a later time",
			before:    entries{{Manager: "us", Operation: update, APIVersion: "v1", FieldsType: "FieldsV2", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:b":{}}}`)}},
			unchanged: true},
		{name: "what cannot be understood stays",
			before: entries{bad, entry("us", update, "v1", `{"f:spec":{"f:b":{}}}`)},
			after:  entries{bad, entry("us", apply, "v1", `{"f:spec":{"f:b":{}}}`)}},
		{name: "what is applied cannot be understood",
			before:    entries{entry("us", apply, "v1", `{"f:spec":`), entry("us", update, "v1", `{"f:spec":{"f:b":{}}}`)},
			unchanged: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			var before entries
			for _, e := range test.before {
				before = append(before, *e.DeepCopy())
			}
			got, changed := execute.Merge(before, parse(t, body), test.reclaim, test.ignored)
			want := test.after
			if test.unchanged {
				want = test.before
			}
			if changed == test.unchanged || !equal(texts(got), texts(want)) {
				t.Errorf("got (changed: %t)\n%v\nwant\n%v", changed, texts(got), texts(want))
			}
			if !equal(texts(before), texts(test.before)) {
				t.Errorf("the argument is now %v, want %v", texts(before), texts(test.before))
			}
		})
	}
}

func texts(entries []metav1.ManagedFieldsEntry) []string {
	var lines []string
	for _, e := range entries {
		line := e.Manager + " " + string(e.Operation) + " " + e.APIVersion + " " + e.Subresource
		if e.FieldsV1 != nil {
			line += " " + e.FieldsV1.GetRawString()
		}
		lines = append(lines, line)
	}
	return lines
}
