// Package jsonmerge applies to a value in full what was changed in the same value as another Go type shows it. A
// webhook patches the object as the client wrote it, although its Go type may know fewer fields. A node below a cast
// changes the resource, although the type of the cast may show only a part of it.
//
// Values are compared and merged as trees: JSON as it is decoded into any, with the numbers as they are written. No
// function changes a tree. A tree that is returned may share parts with its arguments.
package jsonmerge

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	utiljson "k8s.io/apimachinery/pkg/util/json"
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
		if is, there := after[name]; !there || !sameTree(was, is) {
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

// sameTree reports whether two trees are equal. Unlike reflect.DeepEqual, it allocates nothing.
func sameTree(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, sameTree)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, sameTree)
	default:
		return a == b
	}
}

// Normalize returns content with the types that come from decoding JSON as the API machinery does it. Authors write int
// and []string where it has int64 and []any only. It returns content itself if that has these types already.
func Normalize(content map[string]any) (map[string]any, error) {
	if isNormal(content, 0) {
		return content, nil
	}
	data, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	var decoded map[string]any
	err = utiljson.Unmarshal(data, &decoded)
	return decoded, err
}

// maxDepth is how deeply content is nested at most. Content that holds itself is deeper, and is left to others to
// refuse.
const maxDepth = 1000

func isNormal(v any, depth int) bool {
	if depth > maxDepth {
		return false
	}
	switch v := v.(type) {
	case map[string]any:
		for _, member := range v {
			if !isNormal(member, depth+1) {
				return false
			}
		}
		return true
	case []any:
		return !slices.ContainsFunc(v, func(item any) bool { return !isNormal(item, depth+1) })
	case nil, string, bool, int64, float64:
		return true
	default:
		return false
	}
}
