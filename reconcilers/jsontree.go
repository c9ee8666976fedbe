package reconcilers

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
)

// A tree is JSON as it is decoded into any, with numbers kept as they are written.

// treeOf returns the JSON form of v, nil if that is no object.
func treeOf(v any) (map[string]any, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return decodeTree(data)
}

// decodeTree decodes a JSON object, nil if it is none.
func decodeTree(data []byte) (map[string]any, error) {
	if len(data) == 0 {
		return nil, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var decoded any
	if err := decoder.Decode(&decoded); err != nil {
		return nil, err
	}
	tree, _ := decoded.(map[string]any)
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
