package jsonmerge_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gomodules.xyz/jsonpatch/v2"
)

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

// replacement returns another value. It is no map in the place of a map: that looks like the same one with other
// members.
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

// usualPatch returns the operations of the usual library, sorted by path. It is empty if they lead through a member
// without a name.
func usualPatch(t *testing.T, from, to map[string]any) string {
	t.Helper()
	operations, err := jsonpatch.CreatePatch([]byte(encode(t, from)), []byte(encode(t, to)))
	if err != nil {
		t.Fatal(err)
	}
	if len(operations) == 0 || strings.Contains(encode(t, operations), "//") {
		return ""
	}
	slices.SortFunc(operations, func(a, b jsonpatch.Operation) int { return strings.Compare(a.Path, b.Path) })
	return encode(t, operations)
}

func TestAdmissionPatchDoesWhatWasDone(t *testing.T) {
	changed, seeds := uint64(0), uint64(3000)
	if testing.Short() || raceDetector { // which finds nothing in pure functions
		seeds /= 10
	}
	for seed := range seeds {
		g := &gardener{Rand: rand.New(rand.NewPCG(seed, 1))}
		before := g.growMap(4)
		after := g.tend(before)
		raw := content(t, encode(t, before.written))
		from, to := content(t, encode(t, before.known)), content(t, encode(t, after.known))
		actual := patched(t, raw, from, to)
		if expected := content(t, encode(t, after.written)); !reflect.DeepEqual(expected, actual) {
			t.Fatalf("seed %d: the outcome differs (-expected, +actual):\n%s\nraw    %s\nbefore %s\nafter  %s\npatch  %s",
				seed, cmp.Diff(expected, actual),
				encode(t, raw), encode(t, from), encode(t, to), encode(t, patchOf(t, raw, from, to)))
		}
		if usual := usualPatch(t, from, to); usual != "" {
			operations := patchOf(t, from, from, to)
			slices.SortFunc(operations, func(a, b jsonpatch.Operation) int { return strings.Compare(a.Path, b.Path) })
			if actual := encode(t, operations); usual != actual {
				t.Fatalf("seed %d: the operations differ, want the same (-usual +actual):\n%s", seed,
					cmp.Diff(usual, actual))
			}
		}
		if actual := patched(t, from, from, to); !reflect.DeepEqual(to, actual) {
			t.Fatalf("seed %d: with nothing unknown the outcome differs (-expected, +actual):\n%s",
				seed, cmp.Diff(to, actual))
		}
		if !reflect.DeepEqual(from, to) {
			changed++
		}
	}
	if changed < seeds*2/3 {
		t.Errorf("%d of the objects were changed, want at least %d, or this test shows little", changed, seeds*2/3)
	}
}
