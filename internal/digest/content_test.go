package digest_test

import (
	"testing"

	"github.com/espalier-dev/espalier/internal/digest"
)

// contents are all different from each other.
func contents() map[string]any {
	return map[string]any{
		"nil": nil, "false": false, "true": true, "int64": int64(1), "int": 1, "float": 1.0, "string": "1", "zero": int64(0), "empty string": "",
		"nil map": map[string]any(nil), "empty map": map[string]any{}, "map": map[string]any{"a": "b"}, "map of nil": map[string]any{"a": nil},
		"map of string": map[string]string{"a": "b"}, "nested": map[string]any{"a": map[string]any{"a": "b"}},
		"swapped": map[string]any{"a": "c", "b": "d"}, "swapped, other": map[string]any{"a": "d", "b": "c"},
		"nil list": []any(nil), "empty list": []any{}, "list": []any{"a"}, "list of nil": []any{nil}, "strings": []string{"a"},
		"split": []any{"a", []any{"b"}}, "other split": []any{[]any{"a"}, "b"}, "flat": []any{"a", "b"}, "reversed": []any{"b", "a"},
		"struct": struct{ A any }{"a"},
	}
}

func TestDigestsTellContentApart(t *testing.T) {
	wrap := func(v any) any { return map[string]any{"list": []any{v}, "map": map[string]any{"v": v}} }
	first, second := contents(), contents()
	for a, va := range first {
		for b, vb := range second {
			da, okA := digest.Of(wrap(va))
			db, okB := digest.Of(wrap(vb))
			if !okA || !okB || (da == db) != (a == b) {
				t.Errorf("digests of %q and %q: there are %v and %v, equal is %v, want both, equal: %v", a, b, okA,
					okB, da == db, a == b)
			}
		}
	}
}

func TestContentOfManyEntriesIsDigestedWithoutAllocations(t *testing.T) {
	content := map[string]any{"a": map[string]any{"b": []any{"c", int64(1), map[string]any{"d": true, "e": 1.5}}}, "f": "g"}
	if n := testing.AllocsPerRun(100, func() { digest.Of(content) }); n > 0 {
		t.Errorf("there are %v allocations, want none", n)
	}
}

func TestContentWithoutADigest(t *testing.T) {
	loop := map[string]any{}
	loop["list"] = []any{"a", loop, loop}
	for name, value := range map[string]any{"loop": loop, "channel": map[string]any{"a": []any{make(chan int)}}} {
		if _, ok := digest.Of(value); ok {
			t.Errorf("%s has a digest, want none", name)
		}
	}
}
