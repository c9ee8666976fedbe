package managedfields_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/espalier-dev/espalier/internal/managedfields"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// entry is a managed fields entry by a manager, for v1.
func managedEntry(manager string, operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: operation, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
	}
}

func applied(fields string) []metav1.ManagedFieldsEntry {
	return []metav1.ManagedFieldsEntry{managedEntry("me", metav1.ManagedFieldsOperationApply, fields)}
}

func fromYAML(t testing.TB, text string) map[string]any {
	t.Helper()
	content := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &content); err != nil {
		t.Fatal(err)
	}
	content["apiVersion"] = "v1"
	return content
}

// differences returns those between a configuration and an object with managed fields, a line for each, sorted. A nil
// list of managed fields is one that is not known.
func differences(wanted, there map[string]any, entries []metav1.ManagedFieldsEntry, ignoreForeign bool) []string {
	found := managedfields.Compare(wanted, there, entries, managedfields.Owner{Name: "me"}, ignoreForeign)
	return slices.Sorted(maps.Keys(found))
}

func TestCompare(t *testing.T) {
	type entries = []metav1.ManagedFieldsEntry
	const update = metav1.ManagedFieldsOperationUpdate
	for name, test := range map[string]struct {
		wanted, there string
		entries       entries
		leave         bool
		want          []string
	}{
		"in sync": {
			wanted:  `{kind: A, metadata: {name: n, namespace: k, labels: {a.b/c: x}}, data: {a: "1"}}`,
			there:   `{metadata: {name: n, uid: u, labels: {a.b/c: x, other: y}}, data: {a: "1", b: "2"}, status: {}}`,
			entries: applied(`{"f:metadata":{"f:labels":{"f:a.b/c":{}}},"f:data":{"f:a":{}}}`),
		},
		"another value": {
			wanted: `{data: {a: "1"}}`, there: `{data: {a: "2"}}`, entries: applied(`{"f:data":{"f:a":{}}}`), want: []string{".data.a differs"},
		},
		"gone": {
			wanted: `{data: {a: "1"}}`, there: `{}`, entries: applied(`{"f:data":{"f:a":{}}}`), want: []string{".data.a differs"},
		},
		"not ours": {
			wanted: `{data: {a: "1"}}`, there: `{data: {a: "1"}}`, entries: applied(`{"f:data":{"f:b":{}}}`),
			want: []string{".data.a not ours", ".data.b left over"},
		},
		"left over": {
			wanted: `{data: {a: "1"}}`, there: `{data: {a: "1", b: "1"}}`, entries: applied(`{"f:data":{"f:a":{},"f:b":{}},"f:spec":{"f:c":{}}}`),
			want: []string{".data.b left over", ".spec left over"},
		},
		"all left over": {
			wanted: `{data: {}}`, there: `{data: {b: "1"}}`, entries: applied(`{"f:data":{"f:b":{}}}`),
			want: []string{".data differs", ".data.b left over"},
		},
		"numbers": {
			wanted: `{spec: {a: 1, b: 1.5, c: 2, d: 0}}`, there: `{spec: {a: 1.0, b: 1.5, c: 3}}`,
			entries: applied(`{"f:spec":{"f:a":{},"f:b":{},"f:c":{},"f:d":{}}}`), want: []string{".spec.c differs"},
		},
		"zeros that a Go type leaves out": {
			wanted: `{spec: {a: 0, b: "", c: false, d: [], e: {}, f: null}}`, there: `{}`,
			entries: applied(`{"f:spec":{"f:a":{},"f:b":{},"f:c":{},"f:d":{},"f:e":{},"f:f":{}}}`),
		},
		"zeros that are something": {
			wanted: `{spec: {a: 0, b: "", c: false, d: [], e: {}}}`, there: `{spec: {a: 1, b: x, c: true, d: [1], e: {x: 1}}}`,
			entries: applied(`{"f:spec":{"f:a":{},"f:b":{},"f:c":{},"f:d":{},"f:e":{}}}`),
			want:    []string{".spec.a differs", ".spec.b differs", ".spec.c differs", ".spec.d differs", ".spec.e differs"},
		},
		"owned as a whole": {
			wanted: `{spec: {sel: {a: {b: x}}, list: [{a: 1}, {b: 2}]}}`, there: `{spec: {sel: {a: {b: x, c: ""}}, list: [{a: 1}, {b: 2, c: null}]}}`,
			entries: applied(`{"f:spec":{"f:sel":{},"f:list":{}}}`),
		},
		"owned as a whole, with more": {
			wanted: `{spec: {sel: {a: x}, list: [1]}}`, there: `{spec: {sel: {a: x, b: y}, list: [1, 2]}}`,
			entries: applied(`{"f:spec":{"f:sel":{},"f:list":{}}}`), want: []string{".spec.list differs", ".spec.sel differs"},
		},
		"of other kinds": {
			wanted: `{spec: {a: {x: 1}, b: [1], c: x, d: {y: z}}}`, there: `{spec: {a: [1], b: {x: 1}, c: {x: 1}, d: x}}`,
			entries: applied(`{"f:spec":{"f:a":{"f:x":{}},"f:b":{},"f:c":{},"f:d":{}}}`),
			want:    []string{".spec.a.x differs", ".spec.b differs", ".spec.c differs", ".spec.d differs"},
		},
		"items by key": {
			wanted: `{spec: {c: [{name: b, image: "1"}, {name: a, image: "2"}]}}`,
			there:  `{spec: {c: [{name: a, image: "2", pull: x}, {name: other}, {name: b, image: "1"}]}}`,
			entries: applied(`{"f:spec":{"f:c":{"k:{\"name\":\"a\"}":{".":{},"f:name":{},"f:image":{}},` +
				`"k:{\"name\":\"b\"}":{".":{},"f:name":{},"f:image":{}}}}}`),
		},
		"items by key, otherwise": {
			wanted: `{spec: {c: [{name: a, image: "1"}, {name: d}]}}`,
			there:  `{spec: {c: [{name: a, image: "2"}, {name: b, image: "1"}]}}`,
			entries: applied(`{"f:spec":{"f:c":{"k:{\"name\":\"a\"}":{".":{},"f:name":{},"f:image":{}},` +
				`"k:{\"name\":\"b\"}":{".":{},"f:name":{},"f:image":{}}}}}`),
			want: []string{`.spec.c[1] not ours`, `.spec.c[name="a"].image differs`, `.spec.c[name="b"] left over`},
		},
		"a key that has its default": {
			wanted: `{spec: {p: [{port: 80}, {port: 81, protocol: UDP}]}}`,
			there:  `{spec: {p: [{port: 80, protocol: TCP}, {port: 81, protocol: UDP}]}}`,
			entries: applied(`{"f:spec":{"f:p":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{}},` +
				`"k:{\"port\":81,\"protocol\":\"UDP\"}":{".":{},"f:port":{},"f:protocol":{}}}}}`),
		},
		"a key that may be one of two": {
			wanted:  `{spec: {p: [{port: 80}]}}`,
			there:   `{spec: {p: [{port: 80, protocol: TCP}, {port: 80, protocol: UDP}]}}`,
			entries: applied(`{"f:spec":{"f:p":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{"f:port":{}},"k:{\"port\":80,\"protocol\":\"UDP\"}":{"f:port":{}}}}}`),
			want:    []string{`.spec.p[port=80,protocol="UDP"] left over`},
		},
		"items owned as a whole": {
			wanted: `{refs: [{uid: u, kind: A}]}`, there: `{refs: [{uid: v}, {uid: u, kind: B}]}`,
			entries: applied(`{"f:refs":{"k:{\"uid\":\"u\"}":{}}}`), want: []string{`.refs[uid="u"] differs`},
		},
		"a set": {
			wanted: `{set: [a, 1]}`, there: `{set: [1, b, a]}`, entries: applied(`{"f:set":{"v:\"a\"":{},"v:1":{}}}`),
		},
		"a set, otherwise": {
			wanted: `{set: [a, c]}`, there: `{set: [b, c]}`, entries: applied(`{"f:set":{"v:\"a\"":{},"v:\"b\"":{}}}`),
			want: []string{`.set[1] not ours`, `.set[="a"] differs`, `.set[="b"] left over`},
		},
		"items by keys of two kinds": {
			wanted: `{l: [{a: x}]}`, there: `{l: [{a: x}]}`, entries: applied(`{"f:l":{"k:{\"a\":\"x\"}":{},"k:{\"b\":\"x\"}":{}}}`),
			want: []string{".l unclear", `.l[a="x"] left over`, `.l[b="x"] left over`},
		},
		"others have members of it, left": {
			wanted: `{data: {}}`, there: `{data: {b: "1"}}`, leave: true,
			entries: entries{managedEntry("other", update, `{"f:data":{"f:b":{}}}`)},
		},
		"items by index": {
			wanted: `{l: [1]}`, there: `{l: [1]}`, entries: applied(`{"f:l":{"i:0":{}}}`), want: []string{".l unclear", ".l[0] left over"},
		},
		"a list without an owner": {
			wanted: `{l: [1]}`, there: `{l: [1]}`, entries: applied(`{"f:m":{}}`), want: []string{".l not ours", ".m left over"},
		},
		"a status of our name": {
			wanted: `{data: {a: "1"}}`, there: `{data: {a: "1"}}`,
			entries: append(applied(`{"f:data":{"f:a":{}}}`), metav1.ManagedFieldsEntry{
				Manager: "me", Operation: update, APIVersion: "v1", FieldsType: "FieldsV1", Subresource: "status",
				FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:x":{}}}`),
			}),
		},
		"plain writes of ours": {
			wanted: `{data: {a: "1"}}`, there: `{data: {a: "1"}}`, entries: entries{managedEntry("me", update, `{"f:data":{".":{},"f:a":{}}}`)},
		},
		"plain writes of ours, left over": {
			wanted: `{data: {a: "1"}}`, there: `{data: {a: "1"}}`, entries: entries{managedEntry("me", update, `{"f:data":{".":{},"f:a":{},"f:b":{}}}`)},
			want: []string{".data.b left over"},
		},
		"created, with defaults": {
			wanted: `{spec: {a: "1"}}`, there: `{spec: {a: "1", b: "1"}}`,
			entries: entries{managedEntry("me", update, `{"f:spec":{"f:a":{},"f:b":{}}}`)}, want: []string{".spec.b left over"},
		},
		"another version": {
			wanted: `{data: {a: "1"}}`, there: `{data: {a: "1"}}`,
			entries: entries{{
				Manager: "me", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1beta1", FieldsType: "FieldsV1",
				FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:a":{}}}`),
			}},
			want: []string{" unclear"},
		},
		"broken":    {wanted: `{data: {a: "1"}}`, there: `{data: {a: "1"}}`, entries: applied(`{"f:data":`), want: []string{" unclear"}},
		"no fields": {wanted: `{data: {a: "1"}}`, there: `{}`, entries: entries{{Manager: "me", Operation: update, APIVersion: "v1"}}, want: []string{" unclear"}},
		"a broken one of others": {
			wanted: `{data: {a: "1"}}`, there: `{data: {a: "1"}}`, entries: append(applied(`{"f:data":{"f:a":{}}}`), managedEntry("other", update, `[]`)),
		},
		"others have it": {
			wanted: `{data: {a: "1", b: "1"}}`, there: `{data: {a: "2", b: "1"}}`,
			entries: entries{managedEntry("other", update, `{"f:data":{"f:a":{},"f:b":{}}}`)}, want: []string{".data.a not ours", ".data.b not ours"},
		},
		"others have it, left": {
			wanted: `{data: {a: "1", b: "1", c: "1"}}`, there: `{data: {a: "2", b: "1"}}`, leave: true,
			entries: entries{managedEntry("other", update, `{"f:data":{"f:a":{},"f:b":{}}}`)}, want: []string{".data.b not ours", ".data.c not ours"},
		},
		"not known": {wanted: `{data: {a: "1", l: [1]}}`, there: `{data: {a: "1", b: "1", l: [1]}}`},
		"not known, another value": {
			wanted: `{data: {a: "1", l: [1]}}`, there: `{data: {a: "2", l: [1, 2]}}`, want: []string{".data.a differs", ".data.l differs"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := differences(fromYAML(t, test.wanted), fromYAML(t, test.there), test.entries, test.leave)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("differences differ (-expected, +actual):\n%s", diff)
			}
		})
	}
}
