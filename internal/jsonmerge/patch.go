package jsonmerge

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-openapi/jsonpointer"
	"gomodules.xyz/jsonpatch/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// AdmissionPatch returns the operations that apply to the object of a request, given as it came, what was changed in its decoded and
// defaulted form. If the request shows nothing but what the Go type knows, these are the operations of jsonpatch.CreatePatch
// for the request and after, in one of the orders that it may choose, and always the same one. Beyond that
//
//   - fields that the Go type does not know stay, also in the items of lists that move;
//   - defaults are not written, unless they are in a parent that the request lacks and the change creates;
//   - the apiVersion and kind are never changed, for clients take them off what they write;
//   - numbers keep all of their digits.
//
// There are no operations for what is not an object.
func AdmissionPatch(raw []byte, before, after client.Object) ([]jsonpatch.Operation, error) {
	from, err := decode(raw)
	if err != nil {
		return nil, fmt.Errorf("unable to decode the object of the request: %w", err)
	}
	unchanged, err := Tree(before)
	if err != nil {
		return nil, fmt.Errorf("unable to marshal the resource: %w", err)
	}
	changed, err := Tree(after)
	if err != nil {
		return nil, fmt.Errorf("unable to marshal the resource: %w", err)
	}
	for _, key := range []string{"apiVersion", "kind"} {
		if kept, ok := unchanged[key]; ok && changed != nil {
			changed[key] = kept
		} else {
			delete(changed, key)
		}
	}
	return patchTree(from, unchanged, changed)
}

// patchTree returns the operations that change raw as before became after.
func patchTree(raw, before, after map[string]any) ([]jsonpatch.Operation, error) {
	if raw == nil {
		return nil, nil
	}
	merged := mergeMaps(raw, before, after)
	operations, err := jsonpatch.CreatePatch([]byte(text(raw)), []byte(text(merged)))
	if err != nil || len(operations) == 0 {
		return nil, err
	}
	for i, operation := range operations {
		if end := strings.Index(operation.Path, "//"); end >= 0 {
			// Not all that apply patches find the way through a member without a name: it is replaced as a whole.
			pointer, err := jsonpointer.New(operation.Path[:end+1])
			if err != nil {
				return nil, err
			}
			value, _, err := pointer.Get(merged)
			if err != nil {
				return nil, err
			}
			operation = jsonpatch.NewOperation("replace", pointer.String(), value)
		}
		operation.Value = plain(operation.Value)
		operations[i] = operation
	}
	slices.SortFunc(operations, compareOperations)
	return slices.CompactFunc(operations, func(a, b jsonpatch.Operation) bool { return a.Path == b.Path }), nil
}

// compareOperations sorts operations into an order in which jsonpatch.CreatePatch may return them: of a map, members that stay or
// come are before members that go; of a list, items are removed from its end or added to it before others change.
func compareOperations(a, b jsonpatch.Operation) int {
	as, bs := strings.Split(a.Path, "/"), strings.Split(b.Path, "/")
	for i := range min(len(as), len(bs)) {
		rankA, indexA := rank(a.Operation, as, i)
		rankB, indexB := rank(b.Operation, bs, i)
		if c := cmp.Or(rankA-rankB, indexA-indexB, strings.Compare(as[i], bs[i])); c != 0 {
			return c
		}
	}
	return len(as) - len(bs)
}

// rank returns the order among siblings of the token at i, and its index in a list, which counts down for removals.
func rank(operation string, tokens []string, i int) (rank, index int) {
	last := i == len(tokens)-1
	index, err := strconv.Atoi(tokens[i])
	switch {
	case err == nil && last && operation == "remove":
		return -2, -index
	case err == nil && last && operation == "add":
		return -1, index
	case last && operation == "remove":
		return 1, 0
	default:
		return 0, index
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
		if err == nil && text(number) == value.String() {
			return number
		}
	}
	return value
}
