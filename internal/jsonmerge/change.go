package jsonmerge

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var errNotChangeable = errors.New("it cannot be changed")

// ApplyChange changes resource by the difference between before and after, two trees of what another type shows of it. Members
// that did not change are neither decoded nor touched. After an error resource is as before.
func ApplyChange(resource client.Object, before, after map[string]any) error {
	names := differing(before, after)
	if len(names) == 0 {
		return nil
	}
	current, err := Tree(resource)
	if err != nil {
		return err
	}
	if u, ok := resource.(runtime.Unstructured); ok {
		return applyToContent(u, names, mergeMaps(current, before, after))
	}
	target := reflect.ValueOf(resource)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		return errNotChangeable
	}
	target = target.Elem()
	document, changed := mergeMaps(current, before, after), [][]int{nil}
	if isPlainStruct(target.Type()) {
		document, changed = changedFields(target, nil, current, before, after)
	}
	data, err := json.Marshal(document)
	if err != nil {
		return err
	}
	fresh := reflect.New(target.Type())
	if err := json.Unmarshal(data, fresh.Interface()); err != nil {
		return err
	}
	for _, index := range changed {
		copyField(target, fresh.Elem(), index)
	}
	return nil
}

// applyToContent gives an unstructured object the named members of merged.
func applyToContent(u runtime.Unstructured, names []string, merged map[string]any) error {
	data, err := json.Marshal(merged)
	if err != nil {
		return err
	}
	var decoded map[string]any
	if err := utiljson.Unmarshal(data, &decoded); err != nil {
		return err
	}
	content := u.UnstructuredContent()
	for _, name := range names {
		if value, there := decoded[name]; there {
			content[name] = value
		} else {
			delete(content, name)
		}
	}
	u.SetUnstructuredContent(content)
	return nil
}

// changedFields returns the members of target that change, as a document to be decoded, and the indexes of their fields. Target is a
// struct, at the given index of the object, with the JSON form current. Structs in it are changed member by member, so that what
// the trees do not show of them stays.
func changedFields(target reflect.Value, at []int, current, before, after map[string]any) (document map[string]any, changed [][]int) {
	document = map[string]any{}
	fields := FieldsOf(target.Type())
	for _, name := range differing(before, after) {
		f, ok := findField(fields, name)
		if !ok {
			continue
		}
		index := slices.Concat(at, f.Index)
		is, there := after[name]
		if nested, ok := f.nested(target, is); ok {
			inner, below := changedFields(nested, index, object(current[f.Name]), object(before[name]), object(is))
			document[f.Name] = inner
			changed = append(changed, below...)
			continue
		}
		if there {
			document[f.Name] = mergeValues(current[f.Name], before[name], is)
		}
		changed = append(changed, index)
	}
	return document, changed
}

// object returns the members of tree, none if it is no object.
func object(tree any) map[string]any {
	members, _ := tree.(map[string]any)
	return members
}

// copyField gives target the field at index of fresh. A field behind a nil pointer comes with the struct that the pointer is to.
func copyField(target, fresh reflect.Value, index []int) {
	for _, i := range index {
		if target.Kind() == reflect.Pointer {
			if target.IsNil() {
				break
			}
			if fresh.IsNil() {
				fresh = reflect.New(fresh.Type().Elem())
			}
			target, fresh = target.Elem(), fresh.Elem()
		}
		target, fresh = target.Field(i), fresh.Field(i)
	}
	target.Set(fresh)
}
