package managedfields_test

import (
	"testing"

	"github.com/espalier-dev/espalier/internal/managedfields"

	"github.com/google/go-cmp/cmp"
)

func TestChanges(t *testing.T) {
	const list = `{"f:spec":{"f:c":{"k:{\"name\":\"a\"}":{"f:name":{},"f:image":{}},` +
		`"k:{\"name\":\"b\"}":{".":{},"f:name":{}}}}}`
	for name, test := range map[string]struct {
		wanted, before, after string
		fields                string
		want                  []string
	}{
		"a value, beside one that the server keeps in its way": {
			wanted: `{spec: {a: 1, cpu: 1000m}}`, before: `{spec: {a: 2, cpu: "1"}}`, after: `{spec: {a: 1, cpu: "1"}}`,
			fields: `{"f:spec":{"f:a":{},"f:cpu":{}}}`, want: []string{".spec.a differs"},
		},
		"a new field": {
			wanted: `{spec: {a: 1}}`, before: `{}`, after: `{spec: {a: 1}}`, fields: `{"f:data":{}}`,
			want: []string{".spec.a is missing"},
		},
		"a field of others, and one that only has another owner": {
			wanted: `{spec: {a: 1, b: 1}}`, before: `{spec: {a: 2, b: 1}}`, after: `{spec: {a: 1, b: 1}}`,
			fields: `{"f:spec":{"f:x":{}}}`, want: []string{".spec.a was set by another client"},
		},
		"a field that is not desired, and one of which the default is set again": {
			wanted: `{spec: {a: 1}}`, before: `{spec: {a: 1, b: 1, c: 1}}`, after: `{spec: {a: 1, c: 1}}`,
			fields: `{"f:spec":{"f:a":{},"f:b":{},"f:c":{}}}`, want: []string{".spec.b is not desired"},
		},
		"all below a field": {
			wanted: `{}`, before: `{spec: {m: {a: 1, b: 1}, x: 1}}`, after: `{spec: {m: {b: 1}, x: 2}}`,
			fields: `{"f:spec":{"f:m":{".":{},"f:a":{},"f:b":{}},"f:n":{"f:a":{}}}}`, want: []string{".spec.m is not desired"},
		},
		"items": {
			wanted: `{spec: {c: [{name: a, image: "2"}, {name: n}]}}`,
			before: `{spec: {c: [{name: a, image: "1"}, {name: b}]}}`, after: `{spec: {c: [{name: a, image: "2"}, {name: n}]}}`,
			fields: list,
			want:   []string{".spec.c differs", `.spec.c[name="a"].image differs`, `.spec.c[name="b"] is not desired`},
		},
		"items that are their own keys, which are values": {
			wanted: `{spec: {s: [a]}}`, before: `{spec: {s: [a, b]}}`, after: `{spec: {s: [a]}}`,
			fields: `{"f:spec":{"f:s":{"v:\"a\"":{},"v:\"b\"":{}}}}`, want: []string{".spec.s differs"},
		},
		"fields that cannot be understood": {
			wanted: `{a: [1]}`, before: `{a: [2]}`, after: `{a: [1]}`, fields: `{"f:a":{"i:0":{}}}`,
			want: []string{".a differs"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			wanted := managedfields.Configuration(fromYAML(t, test.wanted))
			wanted["apiVersion"] = "v1"
			got := managedfields.Changes(wanted, fromYAML(t, test.before), fromYAML(t, test.after), applied(test.fields),
				managedfields.Owner{Name: "me"})
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("the changes differ (-expected, +actual):\n%s", diff)
			}
		})
	}
}
