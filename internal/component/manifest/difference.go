package manifest

import (
	"maps"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/internal/component/plan"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// ChangedSince returns the keys of the objects that are prepared now or were then, and would be written again, created
// or deleted because of what has changed since. The order of the objects does not matter. The keys are sorted.
func (c *Cache) ChangedSince(s Snapshot) []plan.Key {
	before, after := s.differentFrom(c.entries), Snapshot{c.entries}.differentFrom(s.entries)
	var changed []plan.Key
	for key, i := range after {
		if was, ok := before[key]; !ok || !i.sameAs(was) {
			changed = append(changed, key)
		}
	}
	for key := range before {
		if _, ok := after[key]; !ok {
			changed = append(changed, key)
		}
	}
	slices.SortFunc(changed, func(a, b plan.Key) int { return strings.Compare(a.String(), b.String()) })
	return changed
}

// differentFrom returns the items of the entries that are not at the same place in others.
func (s Snapshot) differentFrom(others []entry) map[plan.Key]*item {
	items := map[plan.Key]*item{}
	for n := range s.entries {
		if n < len(others) && s.entries[n].hash == others[n].hash {
			continue
		}
		for _, i := range s.entries[n].items {
			items[i.key()] = i
		}
	}
	return items
}

// sameAs reports whether nothing is written because of the difference of two items.
func (i *item) sameAs(other *item) bool {
	return i.digest == other.digest && (i.digest == plan.DigestOnce || maps.Equal(i.data, other.data))
}

// FirstDifference returns the key of the first of changed that two lists have different manifests of, and the path of
// the first field that differs, such as .data.a. If there is none, it returns the first of changed, and no path. Fields
// are compared in the order of their names.
func FirstDifference(before, after []Object, changed []plan.Key) (key plan.Key, path string) {
	for _, key := range changed {
		was, is := manifestOf(before, key), manifestOf(after, key)
		if was == nil || is == nil {
			continue
		}
		if path, differs := firstDifference(was.Object, is.Object, nil); differs {
			return key, path.String()
		}
	}
	if len(changed) > 0 {
		key = changed[0]
	}
	return key, ""
}

func manifestOf(objects []Object, key plan.Key) *unstructured.Unstructured {
	for i := range objects {
		if objects[i].Desired.Key == key {
			manifest, _ := objects[i].Manifest()
			return manifest
		}
	}
	return nil
}

func firstDifference(was, is any, at fieldpath.Path) (path fieldpath.Path, differs bool) {
	below := func(element fieldpath.PathElement) fieldpath.Path { return append(slices.Clone(at), element) }
	switch was := was.(type) {
	case map[string]any:
		is, ok := is.(map[string]any)
		if !ok {
			return at, true
		}
		names := slices.Sorted(maps.Keys(was))
		for name := range is {
			if _, ok := was[name]; !ok {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		for _, name := range names {
			field := below(fieldpath.PathElement{FieldName: &name})
			if path, differs := firstDifference(was[name], is[name], field); differs {
				return path, true
			}
		}
		return nil, false
	case []any:
		is, ok := is.([]any)
		if !ok || len(was) != len(is) {
			return at, true
		}
		for index := range was {
			element := below(fieldpath.PathElement{Index: &index})
			if path, differs := firstDifference(was[index], is[index], element); differs {
				return path, true
			}
		}
		return nil, false
	}
	switch is.(type) {
	case map[string]any, []any:
		return at, true
	}
	return at, was != is
}
