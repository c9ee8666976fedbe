package write

import (
	"maps"
	"slices"
	"strconv"

	"github.com/espalier-dev/espalier/internal/managedfields"
)

// WithFields returns content with the fields that JSON pointers name as live has them: a field that live does not have is
// left out. With add, fields are also taken over that content does not have. A pointer that leads nowhere, or is none,
// changes nothing.
//
// What a pointer means by the index of a list is the element of content; the element of live is the one of the same
// name, or, where elements have no names, of the same index. An element that live does not have is new, and written as
// it is.
//
// Neither content nor live is changed. The outcome shares what it holds with both.
func WithFields(content, live map[string]any, pointers []string, add bool) map[string]any {
	for _, path := range managedfields.Pointers(pointers) {
		content = withPath(content, live, path, add)
	}
	return content
}

// withPath returns content with what is at path as live has it, see WithFields.
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
	if list, ok := wanted.value.([]any); ok {
		return copyElement(list, live, path, add)
	}
	members, isMap := wanted.value.(map[string]any)
	if !isMap && (wanted.exists || !add) {
		return wanted
	}
	before := member(wanted, path[0])
	after := copyPath(before, member(live, path[0]), path[1:], add)
	if !before.exists && !after.exists {
		return wanted
	}
	copied := map[string]any{}
	maps.Copy(copied, members)
	if after.exists {
		copied[path[0]] = after.value
	} else {
		delete(copied, path[0])
	}
	return optional{copied, true}
}

// copyElement is copyPath for a list: the path begins with the index of one of its elements.
func copyElement(wanted []any, live optional, path []string, add bool) optional {
	index, err := strconv.Atoi(path[0])
	if err != nil || index < 0 || index >= len(wanted) {
		return optional{wanted, true}
	}
	counterpart := elementLike(live, wanted[index], index)
	if !counterpart.exists && len(path) > 1 {
		return optional{wanted, true}
	}
	copied := slices.Clone(wanted)
	after := copyPath(optional{wanted[index], true}, counterpart, path[1:], add)
	if !after.exists {
		return optional{slices.Delete(copied, index, index+1), true}
	}
	copied[index] = after.value
	return optional{copied, true}
}

// member returns the member of a map, missing if v is none.
func member(v optional, name string) optional {
	m, _ := v.value.(map[string]any)
	value, ok := m[name]
	return optional{value, ok}
}

// elementLike returns the element of the list v that stands for the element at index of another list.
func elementLike(v optional, element any, index int) optional {
	list, _ := v.value.([]any)
	name := member(optional{element, true}, "name")
	if _, ok := name.value.(string); ok {
		index = slices.IndexFunc(list, func(e any) bool { return member(optional{e, true}, "name") == name })
	}
	if index < 0 || index >= len(list) {
		return optional{}
	}
	return optional{list[index], true}
}
