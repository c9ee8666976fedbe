// Package jsonmerge applies to a value in full what was changed in the same value as another Go type shows it. A webhook patches
// the object as the client wrote it, although its Go type may know fewer fields. A node below a cast changes the resource,
// although the type of the cast may show only a part of it.
//
// Values are compared and merged as trees: JSON as it is decoded into any, with the numbers as they are written. No function
// changes a tree. A tree that is returned may share parts with its arguments.
package jsonmerge

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
)

// Tree returns the JSON form of v. It is nil if that is no object.
func Tree(v any) (map[string]any, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return decode(data)
}

// decode decodes a JSON object. It returns nil for anything else.
func decode(data []byte) (map[string]any, error) {
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

// differing returns the sorted names of the members that are not the same in both.
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
