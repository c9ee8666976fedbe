package reconcilers_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/espalier-dev/espalier/reconcilers"

	evanphx "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
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

// patched applies the patch that does to raw what made after of before.
func patched(t testing.TB, raw, before, after map[string]any) map[string]any {
	t.Helper()
	operations := encode(t, reconcilers.AdmissionPatch(raw, before, after))
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
		"members are sorted": {
			raw:    `{"b":1,"d":1,"newer":1}`,
			before: `{"b":1,"d":1,"default":3}`,
			after:  `{"a":1,"c":{"x":null},"d":2,"default":3}`,
			operations: `[{"op":"add","path":"/a","value":1},` +
				`{"op":"remove","path":"/b"},` +
				`{"op":"add","path":"/c","value":{"x":null}},` +
				`{"op":"replace","path":"/d","value":2}]`,
		},
		"names of members are escaped": {
			raw:        `{"m":{"example.com/a~b":"1","example.com/newer":"2"}}`,
			before:     `{"m":{"example.com/a~b":"1"}}`,
			after:      `{"m":{"example.com/a~b":"2","/":""}}`,
			operations: `[{"op":"add","path":"/m/~1","value":""},{"op":"replace","path":"/m/example.com~1a~0b","value":"2"}]`,
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
			raw:        `{"l":[{"a":1,"newer":1},{"a":2,"newer":2}]}`,
			before:     `{"l":[{"a":1},{"a":2}]}`,
			after:      `{"l":[{"a":1},{"a":5},{"a":2}]}`,
			operations: `[{"op":"add","path":"/l/1","value":{"a":5}}]`,
		},
		"a list that loses its head": {
			raw:        `{"l":[{"a":1,"newer":1},{"a":2,"newer":2},{"a":3,"newer":3}]}`,
			before:     `{"l":[{"a":1},{"a":2},{"a":3}]}`,
			after:      `{"l":[{"a":3}]}`,
			operations: `[{"op":"remove","path":"/l/1"},{"op":"remove","path":"/l/0"}]`,
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
			operations: `[{"op":"replace","path":"/l/0","value":{"name":"new","v":9}},` +
				`{"op":"replace","path":"/l/1","value":{"name":"a","newer":1,"v":5}},` +
				`{"op":"add","path":"/l/2","value":{"name":"b","newer":2,"v":6}}]`,
		},
		"elements that change places": {
			raw:    `{"l":[{"name":"a","newer":1},{"name":"b","newer":2}]}`,
			before: `{"l":[{"name":"a"},{"name":"b"}]}`,
			after:  `{"l":[{"name":"b"},{"name":"a"}]}`,
			operations: `[{"op":"replace","path":"/l/0","value":{"name":"b","newer":2}},` +
				`{"op":"replace","path":"/l/1","value":{"name":"a","newer":1}}]`,
		},
		"an element that takes the place of another one": {
			raw:        `{"l":[{"name":"a","newer":1},{"name":"b","newer":2}]}`,
			before:     `{"l":[{"name":"a"},{"name":"b"}]}`,
			after:      `{"l":[{"name":"a"},{"name":"c"}]}`,
			operations: `[{"op":"replace","path":"/l/1","value":{"name":"c"}}]`,
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
			operations: `[{"op":"remove","path":"/l/1"},{"op":"remove","path":"/l/0/newer"},{"op":"replace","path":"/l/0/v","value":3}]`,
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
			operations := encode(t, reconcilers.AdmissionPatch(raw, before, after))
			if diff := cmp.Diff(test.operations, operations); diff != "" {
				t.Errorf("the patch differs (-expected, +actual):\n%s", diff)
			}
			given := []any{content(t, test.raw), content(t, test.before), content(t, test.after)}
			if diff := cmp.Diff(given, []any{raw, before, after}); diff != "" {
				t.Errorf("what was given has changed:\n%s", diff)
			}
			patched(t, raw, before, after)
			if diff := cmp.Diff(after, patched(t, before, before, after)); diff != "" {
				t.Errorf("with nothing unknown the outcome differs (-expected, +actual):\n%s", diff)
			}
		})
	}
}

// twin is a value as the client wrote it, and as the Go type knows it. One that is there by default is not written.
type twin struct {
	written, known any
	byDefault      bool
}

// gardener makes twins, and changes both alike. It counts, to give each scalar a value of its own.
type gardener struct {
	*rand.Rand
	count int
}

func (g *gardener) fresh() string {
	g.count++
	return fmt.Sprintf("v%d", g.count)
}

func (g *gardener) chance(percent int) bool {
	return g.IntN(100) < percent
}

func (g *gardener) grow(depth int) twin {
	if depth <= 0 || g.chance(20) {
		scalar := g.fresh()
		return twin{written: scalar, known: scalar}
	}
	switch g.IntN(5) {
	case 0:
		return g.growList(depth, "name")
	case 1:
		return g.growList(depth, "id")
	case 2:
		var scalars []any
		for range g.IntN(4) {
			scalars = append(scalars, g.fresh())
		}
		return twin{written: list(scalars), known: list(scalars)}
	default:
		return g.growMap(depth)
	}
}

func list(elements []any) []any {
	return append([]any{}, elements...)
}

func (g *gardener) growMap(depth int) twin {
	written, known := map[string]any{}, map[string]any{}
	for _, key := range []string{"a", "b/c", "d~", ""} {
		if g.chance(70) {
			member := g.grow(depth - 1)
			written[key], known[key] = member.written, member.known
		}
	}
	if g.chance(50) {
		written["newer"] = map[string]any{"x": g.fresh()}
	}
	if g.chance(50) {
		known["default"] = map[string]any{"x": g.fresh()}
	}
	return twin{written: written, known: known}
}

// growList makes a list of maps that have a member with a value of its own: the name of the element, or just any.
func (g *gardener) growList(depth int, key string) twin {
	written, known := []any{}, []any{}
	for range g.IntN(5) {
		element := g.growMap(depth - 1)
		id := g.fresh()
		element.known.(map[string]any)[key] = id
		if key == "name" && g.chance(15) {
			known = append(known, element.known)
			continue
		}
		element.written.(map[string]any)[key] = id
		written, known = append(written, element.written), append(known, element.known)
	}
	return twin{written: written, known: known}
}

// tend returns tw with changes, the same ones for both.
func (g *gardener) tend(tw twin) twin {
	switch known := tw.known.(type) {
	case map[string]any:
		return g.tendMap(tw.written.(map[string]any), known)
	case []any:
		return g.tendList(tw.written.([]any), known)
	default:
		return g.replacement(known)
	}
}

// replacement returns another value. It is no map in the place of a map: that looks like the same one with other members.
func (g *gardener) replacement(old any) twin {
	value := any(g.fresh())
	if _, isMap := old.(map[string]any); !isMap && g.chance(20) {
		value = map[string]any{"fresh": value}
	}
	return twin{written: value, known: value}
}

func (g *gardener) tendMap(written, known map[string]any) twin {
	tendedWritten, tendedKnown := map[string]any{}, map[string]any{}
	for key, value := range written {
		tendedWritten[key] = value
	}
	for key, value := range known {
		tendedKnown[key] = value
	}
	for _, key := range []string{"a", "b/c", "d~", ""} {
		member, ok := known[key]
		var tended twin
		switch {
		case !ok && g.chance(20):
			tended = g.replacement(member)
		case ok && g.chance(10):
			delete(tendedWritten, key)
			delete(tendedKnown, key)
			continue
		case ok && g.chance(10):
			tended = g.replacement(member)
		case ok && g.chance(50):
			tended = g.tend(twin{written: written[key], known: member})
		default:
			continue
		}
		tendedWritten[key], tendedKnown[key] = tended.written, tended.known
	}
	return twin{written: tendedWritten, known: tendedKnown}
}

func (g *gardener) tendList(written, known []any) twin {
	key := ""
	if len(known) > 0 {
		if first, ok := known[0].(map[string]any); ok {
			for _, candidate := range []string{"name", "id"} {
				if _, has := first[candidate]; has {
					key = candidate
				}
			}
		}
	}
	switch key {
	case "name":
		return g.tendNamed(written, known)
	case "id":
		return g.tendPlaces(written, known)
	}
	tended := list(known)
	g.Shuffle(len(tended), func(i, j int) { tended[i], tended[j] = tended[j], tended[i] })
	tended = append(tended[:g.IntN(len(tended)+1)], g.fresh())
	return twin{written: tended, known: tended}
}

// tendNamed does anything to a list whose elements have names.
func (g *gardener) tendNamed(written, known []any) twin {
	writtenAs := map[any]any{}
	for _, element := range written {
		writtenAs[element.(map[string]any)["name"]] = element
	}
	var elements []twin
	for _, element := range known {
		counterpart, is := writtenAs[element.(map[string]any)["name"]]
		kept := twin{written: counterpart, known: element, byDefault: !is}
		if !kept.byDefault && g.chance(30) {
			kept = g.tend(kept)
		}
		if !g.chance(15) {
			elements = append(elements, kept)
		}
		if g.chance(15) {
			added := map[string]any{"name": g.fresh()}
			elements = append(elements, twin{written: added, known: added})
		}
	}
	if g.chance(30) {
		g.Shuffle(len(elements), func(i, j int) { elements[i], elements[j] = elements[j], elements[i] })
	}
	tended := twin{written: []any{}, known: []any{}}
	for _, element := range elements {
		if !element.byDefault {
			tended.written = append(tended.written.([]any), element.written)
		}
		tended.known = append(tended.known.([]any), element.known)
	}
	return tended
}

// tendPlaces changes elements in their places, or takes some that stand together away, or puts some in.
func (g *gardener) tendPlaces(written, known []any) twin {
	if g.chance(50) {
		tendedWritten, tendedKnown := list(written), list(known)
		for i := range known {
			if g.chance(40) {
				tended := g.tend(twin{written: written[i], known: known[i]})
				tendedWritten[i], tendedKnown[i] = tended.written, tended.known
			}
		}
		return twin{written: tendedWritten, known: tendedKnown}
	}
	from := g.IntN(len(known) + 1)
	to := from + g.IntN(len(known)-from+1)
	var added []any
	if from == to {
		added = append(added, map[string]any{"id": g.fresh()}, map[string]any{"id": g.fresh()})
	}
	cut := func(elements []any) []any { return append(append(list(elements[:from]), added...), elements[to:]...) }
	return twin{written: cut(written), known: cut(known)}
}

func TestAdmissionPatchDoesWhatWasDone(t *testing.T) {
	changed := 0
	for seed := range uint64(3000) {
		g := &gardener{Rand: rand.New(rand.NewPCG(seed, 1))}
		before := g.growMap(4)
		after := g.tend(before)
		raw := content(t, encode(t, before.written))
		from, to := content(t, encode(t, before.known)), content(t, encode(t, after.known))
		actual := patched(t, raw, from, to)
		if diff := cmp.Diff(content(t, encode(t, after.written)), actual); diff != "" {
			t.Fatalf("seed %d: the outcome differs (-expected, +actual):\n%s\nraw    %s\nbefore %s\nafter  %s\npatch  %s", seed, diff,
				encode(t, raw), encode(t, from), encode(t, to), encode(t, reconcilers.AdmissionPatch(raw, from, to)))
		}
		if diff := cmp.Diff(to, patched(t, from, from, to)); diff != "" {
			t.Fatalf("seed %d: with nothing unknown the outcome differs (-expected, +actual):\n%s", seed, diff)
		}
		if !cmp.Equal(from, to) {
			changed++
		}
	}
	if changed < 2000 {
		t.Errorf("only %d of the objects were changed, so this test shows little", changed)
	}
}

// FuzzAdmissionPatch gives the function objects that have nothing to do with each other: the patch has to fit all the same.
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
		first := encode(t, reconcilers.AdmissionPatch(raw, before, after))
		if again := encode(t, reconcilers.AdmissionPatch(raw, before, after)); first != again {
			t.Errorf("the patch is not the same again:\n%s\n%s", first, again)
		}
	})
}
