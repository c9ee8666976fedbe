package reconcilers

import (
	"encoding/json"
	"maps"
	"reflect"
)

// The functions of this file do to a value in full (raw: as a client wrote it, or as the type of the resource has it) what was done to
// the same value as another Go type knows it: before and after. All values are trees, and none is changed; what the functions
// return may share parts with them.

// mergeValues returns raw with what made after of before. Before is nil if the Go type does not show it.
func mergeValues(raw, before, after any) any {
	if reflect.DeepEqual(before, after) {
		return raw
	}
	switch after := after.(type) {
	case map[string]any:
		raw, isMap := raw.(map[string]any)
		before, wasMap := before.(map[string]any)
		if isMap && (wasMap || before == nil) {
			return mergeMaps(raw, before, after)
		}
	case []any:
		raw, isList := raw.([]any)
		before, wasList := before.([]any)
		if isList && wasList {
			return mergeLists(raw, before, after)
		}
	}
	return after
}

func mergeMaps(raw, before, after map[string]any) map[string]any {
	merged := maps.Clone(raw)
	for key := range before {
		if _, kept := after[key]; !kept {
			delete(merged, key)
		}
	}
	for key, value := range after {
		old, had := before[key]
		if had && reflect.DeepEqual(old, value) {
			continue
		}
		written, has := raw[key]
		switch {
		case has:
			merged[key] = mergeValues(written, old, value)
		case value != nil:
			merged[key] = value
		}
	}
	return merged
}

// mergeLists keeps of raw the elements that can be told to be those of after. An element that is in before by default only, and
// unchanged in after, is left out. If raw and before have nothing to do with each other, it returns after.
func mergeLists(raw, before, after []any) []any {
	written, ok := writtenAs(raw, before)
	if !ok {
		return after
	}
	merged := make([]any, 0, len(after))
	for i, origin := range origins(before, after) {
		switch {
		case origin < 0:
			merged = append(merged, after[i])
		case written[origin] >= 0:
			merged = append(merged, mergeValues(raw[written[origin]], before[origin], after[i]))
		case !reflect.DeepEqual(before[origin], after[i]):
			merged = append(merged, after[i])
		}
	}
	return merged
}

// writtenAs tells for each element of before which one of raw it is, -1 for none. It returns false if elements of raw are
// none of before.
func writtenAs(raw, before []any) ([]int, bool) {
	written := make([]int, len(before))
	if alike(raw, before) {
		for i := range written {
			written[i] = i
		}
		return written, true
	}
	places := placesByName(raw)
	unique := placesByName(before)
	found := 0
	for i, element := range before {
		written[i] = -1
		name := nameOf(element)
		if place, ok := places[name]; ok && place >= 0 && unique[name] >= 0 {
			written[i] = place
			found++
		}
	}
	return written, found == len(raw)
}

// alike tells whether a and b have the same elements as far as their names tell.
func alike(a, b []any) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !sameElement(a[i], b[i]) {
			return false
		}
	}
	return true
}

// origins tells for each element of after which one of before it is, -1 for none: those of the common head and tail, those of the same
// name where no other has that name, those without a name that are equal, and the rest of a list of the same length by their
// places, unless their names tell that they are others.
func origins(before, after []any) []int {
	head, tail := commonEnds(before, after)
	shift := len(before) - len(after)
	beforePlaces, afterPlaces := placesByName(before), placesByName(after)
	origin := make([]int, len(after))
	taken := make([]bool, len(before))
	for i, element := range after {
		origin[i] = -1
		name := nameOf(element)
		place, named := beforePlaces[name]
		switch {
		case i < head:
			origin[i] = i
		case i >= len(after)-tail:
			origin[i] = i + shift
		case named && place >= 0 && afterPlaces[name] >= 0:
			origin[i] = place
		}
		if origin[i] >= 0 {
			taken[origin[i]] = true
		}
	}
	matchEqual(before, after, origin, taken)
	if shift != 0 {
		return origin
	}
	for i, element := range after {
		if origin[i] < 0 && !taken[i] && !distinct(before[i], element, beforePlaces, afterPlaces) {
			origin[i] = i
		}
	}
	return origin
}

// matchEqual finds the origins of elements without a name that are the same as one which is not taken.
func matchEqual(before, after []any, origin []int, taken []bool) {
	free := map[string][]int{}
	for i, element := range before {
		if key, err := json.Marshal(element); err == nil && !taken[i] && nameOf(element) == "" {
			free[string(key)] = append(free[string(key)], i)
		}
	}
	if len(free) == 0 {
		return
	}
	for i, element := range after {
		if origin[i] >= 0 || nameOf(element) != "" {
			continue
		}
		key, err := json.Marshal(element)
		if same := free[string(key)]; err == nil && len(same) > 0 {
			origin[i], taken[same[0]], free[string(key)] = same[0], true, same[1:]
		}
	}
}

// distinct tells whether a and b have names, different ones, that no other element of their lists has.
func distinct(a, b any, aPlaces, bPlaces map[string]int) bool {
	return !sameElement(a, b) && aPlaces[nameOf(a)] >= 0 && bPlaces[nameOf(b)] >= 0
}

// commonEnds returns how many elements a and b have in common at the beginning and, after that, at the end.
func commonEnds(a, b []any) (head, tail int) {
	shorter := min(len(a), len(b))
	for head < shorter && reflect.DeepEqual(a[head], b[head]) {
		head++
	}
	for tail < shorter-head && reflect.DeepEqual(a[len(a)-1-tail], b[len(b)-1-tail]) {
		tail++
	}
	return head, tail
}

// sameElement tells whether a and b may be the same element of a list: they are not if they have different names.
func sameElement(a, b any) bool {
	nameOfA, nameOfB := nameOf(a), nameOf(b)
	return nameOfA == nameOfB || nameOfA == "" || nameOfB == ""
}

// nameOf returns the name by which people tell elements of a list apart, empty if it has none.
func nameOf(element any) string {
	members, _ := element.(map[string]any)
	name, _ := members["name"].(string)
	return name
}

// placesByName returns where in a list the elements with names are, -1 for a name that several have.
func placesByName(list []any) map[string]int {
	places := map[string]int{}
	for i, element := range list {
		name := nameOf(element)
		if name == "" {
			continue
		}
		if _, again := places[name]; again {
			i = -1
		}
		places[name] = i
	}
	return places
}
