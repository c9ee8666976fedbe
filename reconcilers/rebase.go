package reconcilers

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
)

// The functions of this file work on trees: JSON as it is decoded into any, numbers kept as they are written.

// treeOf returns the JSON form of v, which must be an object.
func treeOf(v any) (map[string]any, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var tree map[string]any
	if err := decoder.Decode(&tree); err != nil {
		return nil, err
	}
	return tree, nil
}

// differing returns the names of the members that are not the same in both, sorted.
func differing(before, after map[string]any) []string {
	var names []string
	for name, was := range before {
		if is, there := after[name]; !there || !reflect.DeepEqual(was, is) {
			names = append(names, name)
		}
	}
	for name := range after {
		if _, known := before[name]; !known {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// rebase returns current with what differs between before and after changed alike. current may have more in it than
// before: that stays. Nothing that it is given is changed, and what it returns may share with it.
func rebase(current, before, after any) any {
	if reflect.DeepEqual(before, after) {
		return current
	}
	switch after := after.(type) {
	case map[string]any:
		current, ok := current.(map[string]any)
		before, known := before.(map[string]any)
		if ok && known {
			return rebaseObject(current, before, after)
		}
	case []any:
		current, ok := current.([]any)
		before, known := before.([]any)
		if ok && known && len(current) == len(before) {
			return rebaseList(current, before, after)
		}
	}
	return after
}

func rebaseObject(current, before, after map[string]any) map[string]any {
	rebased := maps.Clone(current)
	for _, name := range differing(before, after) {
		if is, there := after[name]; there {
			rebased[name] = rebase(current[name], before[name], is)
		} else {
			delete(rebased, name)
		}
	}
	return rebased
}

// rebaseList expects current and before to be the same items, of which before may show less.
func rebaseList(current, before, after []any) []any {
	rebased := make([]any, len(after))
	for i, origin := range itemOrigins(before, after) {
		if origin < 0 {
			rebased[i] = after[i]
		} else {
			rebased[i] = rebase(current[origin], before[origin], after[i])
		}
	}
	return rebased
}

// itemOrigins tells for each item of after which item of before it was, -1 if it is new: one that is the same, where it was before
// if possible; else one of the same name; else the one in the same place.
func itemOrigins(before, after []any) []int {
	origin := slices.Repeat([]int{-1}, len(after))
	taken := make([]bool, len(before))
	claim := func(key func(any) (string, bool)) {
		for i, item := range after {
			is, ok := key(item)
			if origin[i] >= 0 || !ok || i >= len(before) || taken[i] {
				continue
			}
			if was, ok := key(before[i]); ok && was == is {
				origin[i], taken[i] = i, true
			}
		}
		free := map[string][]int{}
		for i, item := range before {
			if was, ok := key(item); ok && !taken[i] {
				free[was] = append(free[was], i)
			}
		}
		for i, item := range after {
			is, ok := key(item)
			if candidates := free[is]; origin[i] < 0 && ok && len(candidates) > 0 {
				origin[i], taken[candidates[0]], free[is] = candidates[0], true, candidates[1:]
			}
		}
	}
	claim(wholeItem)
	claim(itemName)
	for i := range min(len(before), len(after)) {
		if origin[i] < 0 && !taken[i] {
			origin[i] = i
		}
	}
	return origin
}

func wholeItem(item any) (string, bool) {
	data, err := json.Marshal(item)
	return string(data), err == nil
}

func itemName(item any) (string, bool) {
	members, _ := item.(map[string]any)
	name, ok := members["name"].(string)
	return name, ok
}
