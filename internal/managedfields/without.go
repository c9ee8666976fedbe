package managedfields

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// Without returns a copy of the configuration without the fields at paths, as the API server writes them in conflicts,
// and without the maps that this leaves empty. It returns false if there is nothing at one of the paths.
func (c Configuration) Without(paths []string) (Configuration, bool) {
	rest := runtime.DeepCopyJSON(c)
	for _, path := range paths {
		if !removeField(rest, path) {
			return nil, false
		}
	}
	return rest, true
}

// removeField walks the members that there are, since their names may hold what separates names in a path.
func removeField(members map[string]any, path string) bool {
	for _, name := range slices.Sorted(maps.Keys(members)) {
		rest, ok := strings.CutPrefix(path, "."+name)
		if !ok {
			continue
		}
		if rest == "" {
			delete(members, name)
			return true
		}
		if !removeFrom(members[name], rest) {
			continue
		}
		if inner, ok := members[name].(map[string]any); ok && len(inner) == 0 {
			delete(members, name)
		}
		return true
	}
	return false
}

func removeFrom(v any, path string) bool {
	switch v := v.(type) {
	case map[string]any:
		return removeField(v, path)
	case []any:
		for _, item := range v {
			rest, ok := cutElement(path, item)
			if ok && rest != "" && removeFrom(item, rest) {
				return true
			}
		}
	}
	return false
}

// keyPart is one key of an element: [name="web" of [name="web",port=80].
var keyPart = regexp.MustCompile(`^[\[,]([^=]+)=("(?:[^"\\]|\\.)*"|[^",\]]*)`)

// cutElement cuts from the front of path the element [name="web",port=80], if item is of these keys. A key that item
// lacks has its default, which only the API server knows.
func cutElement(path string, item any) (rest string, ok bool) {
	members, _ := item.(map[string]any)
	found := false
	for {
		part := keyPart.FindStringSubmatch(path)
		if part == nil {
			rest, ok = strings.CutPrefix(path, "]")
			return rest, ok && found
		}
		if member, ok := members[part[1]]; ok {
			if value.ToString(value.NewValueInterface(member)) != part[2] {
				return "", false
			}
			found = true
		}
		path = path[len(part[0]):]
	}
}
