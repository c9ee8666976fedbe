package edit

import (
	"maps"
	"slices"
)

// ensure returns a list with an item in the place of the first one that is the same, or at the end.
func ensure[T any](list []T, item T, same func(T) bool) []T {
	return ensureAt(list, slices.IndexFunc(list, same), item, same)
}

// ensureAt returns a list with an item at an index, or at the end if that is negative, without others that are the
// same.
func ensureAt[T any](list []T, at int, item T, same func(T) bool) []T {
	changed := make([]T, 0, len(list)+1)
	for i, old := range list {
		switch {
		case i == at:
			changed = append(changed, item)
		case !same(old):
			changed = append(changed, old)
		}
	}
	if at < 0 {
		changed = append(changed, item)
	}
	return changed
}

// remove returns a list without the items that are the same.
func remove[T any](list []T, same func(T) bool) []T {
	if !slices.ContainsFunc(list, same) {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), same)
}

// merge returns a copy of a map with further entries.
func merge[V any](to, from map[string]V) map[string]V {
	if len(from) == 0 {
		return to
	}
	merged := make(map[string]V, len(to)+len(from))
	maps.Copy(merged, to)
	maps.Copy(merged, from)
	return merged
}

// without returns a copy of a map without some entries.
func without[V any](from map[string]V, keys []string) map[string]V {
	left := maps.Clone(from)
	for _, key := range keys {
		delete(left, key)
	}
	return left
}
