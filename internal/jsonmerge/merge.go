package jsonmerge

import (
	"encoding/json"
	"maps"
	"slices"
)

// mergeValues returns raw, the value in full, with the changes from before to after. Before is nil if the Go type does
// not show the value.
func mergeValues(raw, before, after any) any {
	if sameTree(before, after) {
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
	for _, name := range differing(before, after) {
		value, kept := after[name]
		written, has := raw[name]
		switch {
		case !kept:
			delete(merged, name)
		case has:
			merged[name] = mergeValues(written, before[name], value)
		case value != nil:
			merged[name] = value
		}
	}
	return merged
}

// mergeLists merges the items that it can follow from raw to before, and from there to after. Other items are written
// as after has them. An unchanged item that only the defaults added to before is left out. If an item of raw is not
// found in before, the result is after.
func mergeLists(raw, before, after []any) []any {
	written := match(raw, before)
	found := 0
	for _, i := range written {
		if i >= 0 {
			found++
		}
	}
	if found < len(raw) {
		return after
	}
	merged := make([]any, 0, len(after))
	for i, origin := range match(before, after) {
		switch {
		case origin < 0:
			merged = append(merged, after[i])
		case written[origin] >= 0:
			merged = append(merged, mergeValues(raw[written[origin]], before[origin], after[i]))
		case !sameTree(before[origin], after[i]):
			merged = append(merged, after[i])
		}
	}
	return merged
}

// match returns for each item of to the index of the same item in from, or -1 for a new item. Equal items are the same,
// those at one index first, and so are items of one name if no other item has that name. In lists of one length, what
// remains at one index is the same item, unless the names say that it is not.
func match(from, to []any) []int {
	origin := slices.Repeat([]int{-1}, len(to))
	equal := map[string][]int{}
	for i, item := range from {
		key := text(item)
		equal[key] = append(equal[key], i)
	}
	matched := make([]bool, len(from))
	pair := func(i, j int) { origin[j], matched[i] = i, true }
	for i := range min(len(from), len(to)) {
		if sameTree(from[i], to[i]) {
			pair(i, i)
		}
	}
	for j, item := range to {
		same := slices.DeleteFunc(equal[text(item)], func(i int) bool { return matched[i] })
		if origin[j] < 0 && len(same) > 0 {
			pair(same[0], j)
		}
		equal[text(item)] = same
	}
	fromNames, toNames := uniqueNames(from), uniqueNames(to)
	for name, j := range toNames {
		if i, ok := fromNames[name]; ok && origin[j] < 0 && !matched[i] {
			pair(i, j)
		}
	}
	if len(from) != len(to) {
		return origin
	}
	for i := range to {
		_, wasNamed := fromNames[nameOf(from[i])]
		_, isNamed := toNames[nameOf(to[i])]
		if origin[i] < 0 && !matched[i] && (nameOf(from[i]) == nameOf(to[i]) || !wasNamed || !isNamed) {
			pair(i, i)
		}
	}
	return origin
}

// text returns the JSON of an item, which is the same for equal items.
func text(item any) string {
	data, _ := json.Marshal(item)
	return string(data)
}

// nameOf returns the name of an item of a list, or an empty string if the item has none.
func nameOf(item any) string {
	members, _ := item.(map[string]any)
	name, _ := members["name"].(string)
	return name
}

// uniqueNames returns the indexes of the items by their names, without names that several items have.
func uniqueNames(list []any) map[string]int {
	count, indexes := map[string]int{}, map[string]int{}
	for i, item := range list {
		name := nameOf(item)
		count[name]++
		indexes[name] = i
	}
	maps.DeleteFunc(indexes, func(name string, _ int) bool { return name == "" || count[name] > 1 })
	return indexes
}
