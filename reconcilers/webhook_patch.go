package reconcilers

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// patchFor returns the operations that do to the object of a request, given as it came, what a tree did to its decoded and
// defaulted form. There are none for what is not an object.
func patchFor(raw []byte, before, after client.Object) ([]jsonpatch.JsonPatchOperation, error) {
	from, err := decodeTree(raw)
	if err != nil {
		return nil, fmt.Errorf("unable to decode the object of the request: %w", err)
	}
	unchanged, err := contentOf(before)
	if err != nil {
		return nil, err
	}
	changed, err := contentOf(after)
	if err != nil {
		return nil, err
	}
	for _, key := range []string{"apiVersion", "kind"} {
		// Clients take these off what they write; it is no change of the resource.
		if kept, ok := unchanged[key]; ok {
			changed[key] = kept
		} else {
			delete(changed, key)
		}
	}
	return admissionPatch(from, unchanged, changed), nil
}

func contentOf(obj client.Object) (map[string]any, error) {
	content, err := treeOf(obj)
	if err != nil {
		return nil, fmt.Errorf("unable to marshal the resource: %w", err)
	}
	if content == nil {
		content = map[string]any{}
	}
	return content, nil
}

// loggable returns of the operations what may be logged: of a Secret not the values (law L9).
func loggable(operations []jsonpatch.JsonPatchOperation, req admission.Request, resource client.Object) []jsonpatch.JsonPatchOperation {
	if !isSecret(resource) && (req.Kind.Group != corev1.GroupName || req.Kind.Kind != "Secret") {
		return operations
	}
	masked := slices.Clone(operations)
	for i := range masked {
		if masked[i].Value != nil {
			masked[i].Value = withheld
		}
	}
	return masked
}

// admissionPatch returns the operations that do to raw what made after of before, in an order that depends on nothing else. raw is an
// object as a client wrote it, before the same object with its defaults and without what the Go type does not know. All are
// decoded JSON, with numbers as they are written, and none is changed.
func admissionPatch(raw, before, after map[string]any) []jsonpatch.JsonPatchOperation {
	if raw == nil {
		return nil
	}
	d := differ{}
	d.maps("", raw, mergeMaps(raw, before, after))
	return d.operations
}

// differ collects the operations that make one value of another.
type differ struct {
	operations []jsonpatch.JsonPatchOperation
}

func (d *differ) add(operation, path string, value any) {
	d.operations = append(d.operations, jsonpatch.NewOperation(operation, path, plain(value)))
}

func (d *differ) remove(path string) {
	d.operations = append(d.operations, jsonpatch.NewOperation("remove", path, nil))
}

func (d *differ) values(path string, from, to any) {
	if reflect.DeepEqual(from, to) {
		return
	}
	switch to := to.(type) {
	case map[string]any:
		if from, ok := from.(map[string]any); ok {
			d.maps(path, from, to)
			return
		}
	case []any:
		if from, ok := from.([]any); ok {
			d.lists(path, from, to)
			return
		}
	}
	d.add("replace", path, to)
}

func (d *differ) maps(path string, from, to map[string]any) {
	keys := slices.Collect(maps.Keys(from))
	for key := range to {
		if _, known := from[key]; !known {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		below := path + "/" + pointerEscapes.Replace(key)
		old, had := from[key]
		value, has := to[key]
		switch {
		case !has:
			d.remove(below)
		case !had:
			d.add("add", below, value)
		case key == "" && !reflect.DeepEqual(old, value):
			// Not all that apply patches find the way through a member without a name.
			d.add("replace", below, value)
		default:
			d.values(below, old, value)
		}
	}
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// lists leaves the common head and tail alone, and compares what is between them element by element.
func (d *differ) lists(path string, from, to []any) {
	head, tail := commonEnds(from, to)
	at := func(i int) string { return path + "/" + strconv.Itoa(i) }
	fromEnd, toEnd := len(from)-tail, len(to)-tail
	for i := fromEnd - 1; i >= toEnd; i-- {
		d.remove(at(i))
	}
	for i := head; i < toEnd; i++ {
		switch {
		case i >= fromEnd:
			d.add("add", at(i), to[i])
		case sameElement(from[i], to[i]):
			d.values(at(i), from[i], to[i])
		default:
			d.add("replace", at(i), to[i])
		}
	}
}

// plain gives numbers the type that decoding JSON usually gives them, where that loses nothing.
func plain(value any) any {
	switch value := value.(type) {
	case map[string]any:
		members := make(map[string]any, len(value))
		for key, member := range value {
			members[key] = plain(member)
		}
		return members
	case []any:
		items := make([]any, len(value))
		for i, item := range value {
			items[i] = plain(item)
		}
		return items
	case json.Number:
		number, err := value.Float64()
		if text, fails := json.Marshal(number); err == nil && fails == nil && string(text) == value.String() {
			return number
		}
	}
	return value
}
