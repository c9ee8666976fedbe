package execute

import (
	"maps"
	"slices"
	"strconv"

	"github.com/espalier-dev/espalier/internal/managedfields"
)

// withIgnored returns content with the fields that pointers name as live has them: a field that live does not have is left out.
// With add, fields are also taken over that content does not have. A pointer that leads nowhere, or is none, changes nothing.
//
// What a pointer means by the index of a list is the element of content; that of live is the one of the same name, or, where
// elements have no names, of the same index. An element that live does not have is new, and written as it is.
//
// Neither content nor live is changed. The outcome shares what it holds with both.
func withIgnored(content, live map[string]any, pointers []string, add bool) map[string]any {
	for _, path := range managedfields.Pointers(pointers) {
		content = withPath(content, live, path, add)
	}
	return content
}

// withPath returns content with what is at path as live has it, see withIgnored.
func withPath(content, live map[string]any, path []string, add bool) map[string]any {
	copied := copyPath(optional{content, true}, optional{live, true}, path, add)
	if m, ok := copied.value.(map[string]any); ok {
		return m
	}
	return content
}

// optional is a value that may be missing.
type optional struct {
	value  any
	exists bool
}

// copyPath returns wanted with what is at path taken from live.
func copyPath(wanted, live optional, path []string, add bool) optional {
	if len(path) == 0 {
		if !wanted.exists && !add {
			return wanted
		}
		return live
	}
	if !wanted.exists {
		if !add || !live.exists {
			return wanted
		}
		child := copyPath(wanted, member(live, path[0]), path[1:], add)
		if _, isMap := live.value.(map[string]any); !isMap || !child.exists {
			return wanted
		}
		return optional{map[string]any{path[0]: child.value}, true}
	}
	switch node := wanted.value.(type) {
	case map[string]any:
		before := member(wanted, path[0])
		after := copyPath(before, member(live, path[0]), path[1:], add)
		if !before.exists && !after.exists {
			return wanted
		}
		node = maps.Clone(node)
		if after.exists {
			node[path[0]] = after.value
		} else {
			delete(node, path[0])
		}
		return optional{node, true}
	case []any:
		index, ok := indexIn(node, path[0])
		if !ok {
			return wanted
		}
		counterpart := elementLike(live, node[index], index)
		if !counterpart.exists && len(path) > 1 {
			return wanted
		}
		after := copyPath(optional{node[index], true}, counterpart, path[1:], add)
		if !after.exists {
			return optional{slices.Delete(slices.Clone(node), index, index+1), true}
		}
		node = slices.Clone(node)
		node[index] = after.value
		return optional{node, true}
	}
	return wanted
}

// member returns the member of a map, missing if v is none.
func member(v optional, name string) optional {
	m, ok := v.value.(map[string]any)
	if !ok {
		return optional{}
	}
	value, ok := m[name]
	return optional{value, ok}
}

func indexIn(list []any, text string) (int, bool) {
	index, err := strconv.Atoi(text)
	return index, err == nil && index >= 0 && index < len(list)
}

// elementLike returns the element of the list v that stands for the element at index of another list.
func elementLike(v optional, element any, index int) optional {
	list, ok := v.value.([]any)
	if !ok {
		return optional{}
	}
	name := member(optional{element, true}, "name")
	if _, ok := name.value.(string); ok {
		for _, candidate := range list {
			if member(optional{candidate, true}, "name") == name {
				return optional{candidate, true}
			}
		}
		return optional{}
	}
	if index >= len(list) {
		return optional{}
	}
	return optional{list[index], true}
}
