package generate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// site is a place in a resource where a value is or may be.
type site struct {
	*node
	// at is the path as in errors, with each name or index after a point.
	at      string
	value   any
	present bool
	// set replaces or adds the value, and remove removes it. Remove is nil if the value has to be there.
	set    func(value any)
	remove func()
}

// sites returns the places in a value, those around others first. Places that are given by hints are not among them.
func sites(n *node, at string, value any) []site {
	var found []site
	add := func(s site) {
		if s.fixed {
			return
		}
		found = append(found, s)
		if s.present {
			found = append(found, sites(s.node, s.at, s.value)...)
		}
	}
	switch value := value.(type) {
	case map[string]any:
		for _, field := range n.fields {
			was, ok := value[field.name]
			s := site{node: field.node, at: at + "." + field.name, value: was, present: ok}
			s.set = func(to any) { value[field.name] = to }
			if !field.required {
				s.remove = func() { delete(value, field.name) }
			}
			add(s)
		}
		for _, key := range n.entryKeys(value) {
			add(site{
				node: n.entries, at: at + "." + key, value: value[key], present: true,
				set: func(to any) { value[key] = to }, remove: func() { delete(value, key) },
			})
		}
	case []any:
		for i := range value {
			if n.items != nil {
				add(site{
					node: n.items, at: fmt.Sprintf("%s.%d", at, i), value: value[i], present: true,
					set: func(to any) { value[i] = to },
				})
			}
		}
	}
	return found
}

// entryKeys returns the keys of the entries of a map.
func (n *node) entryKeys(value map[string]any) []string {
	if n.entries == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(value)), func(key string) bool {
		return slices.ContainsFunc(n.fields, func(f fieldNode) bool { return f.name == key })
	})
}

// below returns the sites at and below the path of an error: all of them if there are none.
func below(all []site, path string) []site {
	path = "." + strings.NewReplacer("[", ".", "]", "").Replace(path)
	var found []site
	for _, s := range all {
		if s.at == path || strings.HasPrefix(s.at, path+".") {
			found = append(found, s)
		}
	}
	if len(found) == 0 {
		return all
	}
	return found
}
