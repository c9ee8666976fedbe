package jsonmerge_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/espalier-dev/espalier/internal/jsonmerge"

	evanphx "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"gomodules.xyz/jsonpatch/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// content decodes JSON with its numbers as they are written.
func content(t testing.TB, text string) map[string]any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.UseNumber()
	var decoded map[string]any
	if err := decoder.Decode(&decoded); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return decoded
}

func encode(t testing.TB, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func patchOf(t testing.TB, raw, before, after map[string]any) []jsonpatch.Operation {
	t.Helper()
	operations, err := jsonmerge.PatchTree(raw, before, after)
	if err != nil {
		t.Fatal(err)
	}
	return operations
}

// patched applies the patch that does to raw what made after of before.
func patched(t testing.TB, raw, before, after map[string]any) map[string]any {
	t.Helper()
	operations := encode(t, patchOf(t, raw, before, after))
	if operations == "null" {
		return raw
	}
	patch, err := evanphx.DecodePatch([]byte(operations))
	if err != nil {
		t.Fatalf("%v in %s", err, operations)
	}
	result, err := patch.Apply([]byte(encode(t, raw)))
	if err != nil {
		t.Fatalf("%v for %s with %s", err, encode(t, raw), operations)
	}
	return content(t, string(result))
}

func TestAdmissionPatch(t *testing.T) {
	tests := map[string]struct {
		raw, before, after string
		operations         string
	}{
		"nothing": {
			raw:        `{"a":1,"newer":2}`,
			before:     `{"a":1,"default":3}`,
			after:      `{"a":1,"default":3}`,
			operations: `null`,
		},
		"of a map, what goes comes last": {
			raw:    `{"b":1,"d":1,"newer":1}`,
			before: `{"b":1,"d":1,"default":3}`,
			after:  `{"a":1,"c":{"x":null},"d":2,"default":3}`,
			operations: `[{"op":"add","path":"/a","value":1},` +
				`{"op":"add","path":"/c","value":{"x":null}},` +
				`{"op":"replace","path":"/d","value":2},` +
				`{"op":"remove","path":"/b"}]`,
		},
		"names of members are escaped": {
			raw:        `{"m":{"example.com/a~b":"1","example.com/newer":"2"}}`,
			before:     `{"m":{"example.com/a~b":"1"}}`,
			after:      `{"m":{"example.com/a~b":"2","/":""}}`,
			operations: `[{"op":"replace","path":"/m/example.com~1a~0b","value":"2"},{"op":"add","path":"/m/~1","value":""}]`,
		},
		"a default that is changed is added": {
			raw:        `{}`,
			before:     `{"replicas":1}`,
			after:      `{"replicas":2}`,
			operations: `[{"op":"add","path":"/replicas","value":2}]`,
		},
		"a default that is removed was never there": {
			raw:        `{}`,
			before:     `{"replicas":1,"more":null}`,
			after:      `{"more":null}`,
			operations: `null`,
		},
		"a default that becomes null was never there": {
			raw:        `{}`,
			before:     `{"replicas":1}`,
			after:      `{"replicas":null}`,
			operations: `null`,
		},
		"the parent comes with its defaults": {
			raw:        `{"spec":{"newer":1}}`,
			before:     `{"spec":{"probe":{"port":80},"default":1},"status":{}}`,
			after:      `{"spec":{"probe":{"port":80,"timeout":3},"default":1},"status":{}}`,
			operations: `[{"op":"add","path":"/spec/probe","value":{"port":80,"timeout":3}}]`,
		},
		"a member that was left out for being empty": {
			raw:        `{"zero":0,"spec":{"newer":1},"same":{"x":5}}`,
			before:     `{}`,
			after:      `{"zero":1,"spec":{"a":1},"same":{"x":5}}`,
			operations: `[{"op":"add","path":"/spec/a","value":1},{"op":"replace","path":"/zero","value":1}]`,
		},
		"a member of another sort": {
			raw:    `{"a":{"newer":1},"b":[1],"c":1,"d":null}`,
			before: `{"a":{},"b":[1],"c":1,"d":{"default":1}}`,
			after:  `{"a":[2],"b":{"x":1},"c":null,"d":{"default":1,"y":1}}`,
			operations: `[{"op":"replace","path":"/a","value":[2]},` +
				`{"op":"replace","path":"/b","value":{"x":1}},` +
				`{"op":"replace","path":"/c","value":null},` +
				`{"op":"replace","path":"/d","value":{"default":1,"y":1}}]`,
		},
		"what is written differently stays": {
			raw:        `{"l":[{"cpu":"1000m","n":1}]}`,
			before:     `{"l":[{"cpu":"1","n":1}]}`,
			after:      `{"l":[{"cpu":"1","n":2}]}`,
			operations: `[{"op":"replace","path":"/l/0/n","value":2}]`,
		},
		"numbers keep all of their digits": {
			raw:        `{"a":9007199254740993,"b":1}`,
			before:     `{"a":9007199254740993,"b":1}`,
			after:      `{"a":9007199254740994,"b":2}`,
			operations: `[{"op":"replace","path":"/a","value":9007199254740994},{"op":"replace","path":"/b","value":2}]`,
		},
		"an element of a list": {
			raw:        `{"l":[{"a":1,"newer":1},{"a":2,"newer":2}]}`,
			before:     `{"l":[{"a":1,"default":1},{"a":2,"default":1}]}`,
			after:      `{"l":[{"a":1,"default":1},{"a":3,"default":1}]}`,
			operations: `[{"op":"replace","path":"/l/1/a","value":3}]`,
		},
		"a list that grows in the middle": {
			raw:    `{"l":[{"a":1,"newer":1},{"a":2,"newer":2}]}`,
			before: `{"l":[{"a":1},{"a":2}]}`,
			after:  `{"l":[{"a":1},{"a":5},{"a":2}]}`,
			operations: `[{"op":"add","path":"/l/2","value":{"a":2,"newer":2}},` +
				`{"op":"replace","path":"/l/1/a","value":5},` +
				`{"op":"remove","path":"/l/1/newer"}]`,
		},
		"a list that loses its head": {
			raw:    `{"l":[{"a":1,"newer":1},{"a":2,"newer":2},{"a":3,"newer":3}]}`,
			before: `{"l":[{"a":1},{"a":2},{"a":3}]}`,
			after:  `{"l":[{"a":3}]}`,
			operations: `[{"op":"remove","path":"/l/2"},{"op":"remove","path":"/l/1"},` +
				`{"op":"replace","path":"/l/0/a","value":3},{"op":"replace","path":"/l/0/newer","value":3}]`,
		},
		"a list that is emptied": {
			raw:        `{"l":[{"a":1,"newer":1}]}`,
			before:     `{"l":[{"a":1}]}`,
			after:      `{"l":[]}`,
			operations: `[{"op":"remove","path":"/l/0"}]`,
		},
		"elements that are known by their names": {
			raw:    `{"l":[{"name":"a","v":1,"newer":1},{"name":"b","v":2,"newer":2}]}`,
			before: `{"l":[{"name":"a","v":1},{"name":"b","v":2}]}`,
			after:  `{"l":[{"name":"new","v":9},{"name":"a","v":5},{"name":"b","v":6}]}`,
			operations: `[{"op":"add","path":"/l/2","value":{"name":"b","newer":2,"v":6}},` +
				`{"op":"replace","path":"/l/0/name","value":"new"},{"op":"replace","path":"/l/0/v","value":9},` +
				`{"op":"remove","path":"/l/0/newer"},` +
				`{"op":"replace","path":"/l/1/name","value":"a"},{"op":"replace","path":"/l/1/newer","value":1},` +
				`{"op":"replace","path":"/l/1/v","value":5}]`,
		},
		"elements that change places": {
			raw:    `{"l":[{"name":"a","newer":1},{"name":"b","newer":2}]}`,
			before: `{"l":[{"name":"a"},{"name":"b"}]}`,
			after:  `{"l":[{"name":"b"},{"name":"a"}]}`,
			operations: `[{"op":"replace","path":"/l/0/name","value":"b"},{"op":"replace","path":"/l/0/newer","value":2},` +
				`{"op":"replace","path":"/l/1/name","value":"a"},{"op":"replace","path":"/l/1/newer","value":1}]`,
		},
		"an element that takes the place of another one": {
			raw:        `{"l":[{"name":"a","newer":1},{"name":"b","newer":2}]}`,
			before:     `{"l":[{"name":"a"},{"name":"b"}]}`,
			after:      `{"l":[{"name":"a"},{"name":"c"}]}`,
			operations: `[{"op":"replace","path":"/l/1/name","value":"c"},{"op":"remove","path":"/l/1/newer"}]`,
		},
		"elements that share a name keep their places": {
			raw:        `{"l":[{"name":"a","v":1,"newer":1},{"name":"a","v":2,"newer":2}]}`,
			before:     `{"l":[{"name":"a","v":1},{"name":"a","v":2}]}`,
			after:      `{"l":[{"name":"a","v":1},{"name":"a","v":3}]}`,
			operations: `[{"op":"replace","path":"/l/1/v","value":3}]`,
		},
		"an element that cannot be told apart is replaced": {
			raw:        `{"l":[{"name":"a","v":1,"newer":1},{"name":"a","v":2,"newer":2}]}`,
			before:     `{"l":[{"name":"a","v":1},{"name":"a","v":2}]}`,
			after:      `{"l":[{"name":"a","v":3}]}`,
			operations: `[{"op":"remove","path":"/l/1"},{"op":"replace","path":"/l/0/v","value":3},{"op":"remove","path":"/l/0/newer"}]`,
		},
		"an element that becomes two is replaced": {
			raw:    `{"l":[{"name":"a","v":1,"newer":1}]}`,
			before: `{"l":[{"name":"a","v":1}]}`,
			after:  `{"l":[{"name":"a","v":2},{"name":"a","v":3}]}`,
			operations: `[{"op":"add","path":"/l/1","value":{"name":"a","v":3}},` +
				`{"op":"replace","path":"/l/0/v","value":2},` +
				`{"op":"remove","path":"/l/0/newer"}]`,
		},
		"a new element in the place of one that moves": {
			raw:    `{"l":[{"name":"a","newer":1},{"v":1}]}`,
			before: `{"l":[{"name":"a"},{"v":1}]}`,
			after:  `{"l":[{"v":9},{"name":"a"}]}`,
			operations: `[{"op":"add","path":"/l/0/v","value":9},` +
				`{"op":"remove","path":"/l/0/name"},` +
				`{"op":"remove","path":"/l/0/newer"},` +
				`{"op":"add","path":"/l/1/name","value":"a"},` +
				`{"op":"add","path":"/l/1/newer","value":1},` +
				`{"op":"remove","path":"/l/1/v"}]`,
		},
		"names that the defaults made ambiguous": {
			raw:        `{"l":[{"name":"a","newer":1},{"name":"b","newer":2}]}`,
			before:     `{"l":[{"name":"a"},{"name":"a"}]}`,
			after:      `{"l":[{"name":"a","v":1},{"name":"a"}]}`,
			operations: `[{"op":"add","path":"/l/0/v","value":1}]`,
		},
		"an element by default does not ride along": {
			raw:        `{"l":[{"name":"a","v":1,"newer":1}]}`,
			before:     `{"l":[{"name":"sidecar"},{"name":"a","v":1}]}`,
			after:      `{"l":[{"name":"sidecar"},{"name":"a","v":2}]}`,
			operations: `[{"op":"replace","path":"/l/0/v","value":2}]`,
		},
		"an element by default that changes is added": {
			raw:        `{"l":[{"name":"a","newer":1}]}`,
			before:     `{"l":[{"name":"a"},{"name":"sidecar"}]}`,
			after:      `{"l":[{"name":"a"},{"name":"sidecar","v":2}]}`,
			operations: `[{"op":"add","path":"/l/1","value":{"name":"sidecar","v":2}}]`,
		},
		"a list that the defaults made another one of": {
			raw:        `{"l":[1,2]}`,
			before:     `{"l":[1,2,3]}`,
			after:      `{"l":[1,2,4]}`,
			operations: `[{"op":"add","path":"/l/2","value":4}]`,
		},
		"a list that the Go type writes in another form": {
			raw:    `{"l":["x"]}`,
			before: `{"l":[{"a":1},{"b":1}]}`,
			after:  `{"l":[{"a":1},{"b":1},{"c":1}]}`,
			operations: `[{"op":"add","path":"/l/1","value":{"b":1}},{"op":"add","path":"/l/2","value":{"c":1}},` +
				`{"op":"replace","path":"/l/0","value":{"a":1}}]`,
		},
		"lists in lists": {
			raw:        `{"l":[[{"a":1,"newer":1}],[]]}`,
			before:     `{"l":[[{"a":1}],[]]}`,
			after:      `{"l":[[{"a":2}],[1]]}`,
			operations: `[{"op":"replace","path":"/l/0/0/a","value":2},{"op":"add","path":"/l/1/0","value":1}]`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			raw, before, after := content(t, test.raw), content(t, test.before), content(t, test.after)
			operations := encode(t, patchOf(t, raw, before, after))
			if diff := cmp.Diff(test.operations, operations); diff != "" {
				t.Errorf("the patch differs (-expected, +actual):\n%s", diff)
			}
			given := []any{content(t, test.raw), content(t, test.before), content(t, test.after)}
			if diff := cmp.Diff(given, []any{raw, before, after}); diff != "" {
				t.Errorf("what was given has changed (-is +was), want it unchanged:\n%s", diff)
			}
			patched(t, raw, before, after)
			if diff := cmp.Diff(after, patched(t, before, before, after)); diff != "" {
				t.Errorf("with nothing unknown the outcome differs (-expected, +actual):\n%s", diff)
			}
		})
	}
}

// Clients take the kind off what they write. It is no change, and neither is one that a tree sets.
func TestAdmissionPatchLeavesTheKind(t *testing.T) {
	object := func(kind, size any) client.Object {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": kind, "kind": kind, "size": size}}
	}
	bare := &unstructured.Unstructured{Object: map[string]any{"size": int64(1)}}
	for name, test := range map[string]struct {
		before, after client.Object
		want          string
	}{
		"gone":  {object("A", int64(1)), bare, `null`},
		"set":   {bare, object("A", int64(1)), `null`},
		"other": {object("A", int64(1)), object("B", int64(2)), `[{"op":"replace","path":"/size","value":2}]`},
	} {
		operations, err := jsonmerge.AdmissionPatch([]byte(`{"apiVersion":"A","kind":"A","size":1,"newer":1}`), test.before, test.after)
		if got := encode(t, operations); err != nil || got != test.want {
			t.Errorf("%s: got %s, %v, want %s", name, got, err, test.want)
		}
	}
	if operations, err := jsonmerge.AdmissionPatch([]byte(`[]`), bare, object("A", int64(2))); operations != nil || err != nil {
		t.Errorf("the operations of a list are %v and the error %v, want neither", operations, err)
	}
	if _, err := jsonmerge.AdmissionPatch([]byte(`{`), bare, bare); err == nil {
		t.Error("the patch of what is no JSON has no error, want one")
	}
}

// Where the client wrote all that the Go type knows, and nothing else, a patch is the one of the library that webhooks
// usually use. No case changes two members of one map in ways whose order the library leaves to chance.
func TestAdmissionPatchIsTheUsualOne(t *testing.T) {
	const given = `{"l":[{"name":"a"},{"name":"b"},{"name":"c"}],"m":{"x":1}}`
	for name, changed := range map[string]string{
		"an item comes first":   `{"l":[{"name":"n"},{"name":"a"},{"name":"b"},{"name":"c"}],"m":{"x":1}}`,
		"the first item goes":   `{"l":[{"name":"b"},{"name":"c"}],"m":{"x":1}}`,
		"an item is replaced":   `{"l":[{"name":"a"},{"name":"z"},{"name":"c"}],"m":{"x":1}}`,
		"items change places":   `{"l":[{"name":"a"},{"name":"c"},{"name":"b"}],"m":{"x":1}}`,
		"all items but one go":  `{"l":[{"name":"a"}],"m":{"x":1}}`,
		"items of other sorts":  `{"l":["a",{"name":"b"},null,1,[]],"m":{"x":1}}`,
		"a member of two":       `{"l":[{"name":"a"},{"name":"b"},{"name":"c"}],"m":{"y":1}}`,
		"nothing":               given,
		"a map for a list":      `{"l":{},"m":{"x":1}}`,
		"more items, and fewer": `{"l":[{"v":1},{"name":"b"},{"name":"d"},4,5],"m":{"x":1}}`,
	} {
		t.Run(name, func(t *testing.T) {
			usual, err := jsonpatch.CreatePatch([]byte(given), []byte(changed))
			if err != nil {
				t.Fatal(err)
			}
			if len(usual) == 0 {
				usual = nil
			}
			operations := patchOf(t, content(t, given), content(t, given), content(t, changed))
			if diff := cmp.Diff(encode(t, usual), encode(t, operations)); diff != "" {
				t.Errorf("the patch differs, want the same (-usual +actual):\n%s", diff)
			}
		})
	}
}

// FuzzAdmissionPatch gives the function objects that have nothing to do with each other: the patch has to fit all the
// same.
func FuzzAdmissionPatch(f *testing.F) {
	f.Add(`{"a":1}`, `{"a":1,"b":{}}`, `{"a":2,"b":{"c":[1]}}`)
	f.Add(`{"l":[{"name":"a"}]}`, `{"l":[{"name":"b"},{"name":"a"}]}`, `{"l":[{"name":"a"},{"name":"c"}]}`)
	f.Add(`{"l":[null,1,1e3]}`, `{"l":null}`, `{"l":[[],{},""]}`)
	f.Fuzz(func(t *testing.T, rawText, beforeText, afterText string) {
		var objects []map[string]any
		for _, text := range []string{rawText, beforeText, afterText} {
			var decoded map[string]any
			if json.Unmarshal([]byte(text), &decoded) != nil || decoded == nil {
				t.Skip("not an object")
			}
			objects = append(objects, content(t, encode(t, decoded)))
		}
		raw, before, after := objects[0], objects[1], objects[2]
		patched(t, raw, before, after)
		if diff := cmp.Diff(after, patched(t, before, before, after)); diff != "" {
			t.Errorf("with nothing unknown the outcome differs (-expected, +actual):\n%s", diff)
		}
		first := encode(t, patchOf(t, raw, before, after))
		if again := encode(t, patchOf(t, raw, before, after)); first != again {
			t.Errorf("the patch of the same objects is\n%s\nand again\n%s, want the same", first, again)
		}
	})
}
