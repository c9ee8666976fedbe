package reconcilers

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// firstDifference returns the path of the first field in which two contents differ, such as .spec.containers[0].image,
// in the order of the names. It is false if they do not differ. Path is the path of a and b themselves. A path never
// has a value in it.
func firstDifference(path string, a, b any) (string, bool) {
	switch a := a.(type) {
	case map[string]any:
		if b, ok := b.(map[string]any); ok {
			return firstDifferentMember(path, a, b)
		}
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return path, true
		}
		for i := range a {
			if found, ok := firstDifference(fmt.Sprintf("%s[%d]", path, i), a[i], b[i]); ok {
				return found, true
			}
		}
		return "", false
	}
	return path, !reflect.DeepEqual(a, b)
}

func firstDifferentMember(path string, a, b map[string]any) (string, bool) {
	names := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		member := path + "." + name
		if strings.ContainsAny(name, "./") {
			member = path + "[" + name + "]"
		}
		valueOfA, inA := a[name]
		valueOfB, inB := b[name]
		if inA != inB {
			return member, true
		}
		if found, ok := firstDifference(member, valueOfA, valueOfB); ok {
			return found, true
		}
	}
	return "", false
}
