package reconcilers

import (
	"encoding/json"
	"errors"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// carryOver changes resource by what differs between before and after, two trees of what another type shows of it. Members
// that did not change are neither decoded nor touched. After an error resource is as before.
func carryOver(resource client.Object, before, after map[string]any) error {
	if len(differing(before, after)) == 0 {
		return nil
	}
	current, err := treeOf(resource)
	if err != nil {
		return err
	}
	if u, ok := resource.(runtime.Unstructured); ok {
		return carryIntoContent(u, current, before, after)
	}
	target := reflect.ValueOf(resource)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		return errNotChangeable
	}
	if !isPlainStruct(target.Type().Elem()) {
		return carryIntoOpaque(target, mergeMaps(current, before, after))
	}
	var changes assignments
	if err := changes.add(target.Elem(), current, before, after); err != nil {
		return err
	}
	for _, assign := range changes {
		assign()
	}
	return nil
}

var errNotChangeable = errors.New("it cannot be changed")

// carryIntoContent is carryOver for unstructured objects.
func carryIntoContent(u runtime.Unstructured, current, before, after map[string]any) error {
	names := differing(before, after)
	decoded := map[string]any{}
	for _, name := range names {
		is, there := after[name]
		if !there {
			continue
		}
		data, err := json.Marshal(mergeValues(current[name], before[name], is))
		if err != nil {
			return err
		}
		var value any
		if err := utiljson.Unmarshal(data, &value); err != nil {
			return err
		}
		decoded[name] = value
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

// carryIntoOpaque is carryOver for types with a JSON form of their own making, which can be decoded as a whole only.
func carryIntoOpaque(target reflect.Value, merged map[string]any) error {
	data, err := json.Marshal(merged)
	if err != nil {
		return err
	}
	fresh := reflect.New(target.Type().Elem())
	if err := json.Unmarshal(data, fresh.Interface()); err != nil {
		return err
	}
	target.Elem().Set(fresh.Elem())
	return nil
}

// assignments are changes that are ready to be made, all or none.
type assignments []func()

// add adds what it takes to change target, a struct with the JSON form current. It goes down into structs, so that what the trees
// do not show of them stays.
func (a *assignments) add(target reflect.Value, current, before, after map[string]any) error {
	fields := fieldsOf(target.Type())
	for _, name := range differing(before, after) {
		f, ok := fields.find(name)
		if !ok {
			continue
		}
		is, there := after[name]
		if nested, ok := f.nested(target, is); ok {
			if err := a.add(nested, object(current[f.name]), object(before[name]), object(is)); err != nil {
				return err
			}
			continue
		}
		if !there {
			if field, err := target.FieldByIndexErr(f.index); err == nil {
				*a = append(*a, field.SetZero)
			}
			continue
		}
		fresh, err := decodeMember(target.Type(), f.name, mergeValues(current[f.name], before[name], is))
		if err != nil {
			return err
		}
		*a = append(*a, func() { f.copy(target, fresh) })
	}
	return nil
}

// object returns the members of tree, none if it is no object.
func object(tree any) map[string]any {
	members, _ := tree.(map[string]any)
	return members
}

// decodeMember returns a struct of type t of which one member is decoded: the tags of t say how.
func decodeMember(t reflect.Type, name string, tree any) (reflect.Value, error) {
	data, err := json.Marshal(map[string]any{name: tree})
	if err != nil {
		return reflect.Value{}, err
	}
	decoded := reflect.New(t)
	err = json.Unmarshal(data, decoded.Interface())
	return decoded.Elem(), err
}
