package managedfields

import (
	"slices"

	"github.com/espalier-dev/espalier/internal/digest"
	"github.com/espalier-dev/espalier/internal/kinds"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// Differences are the reasons to apply a configuration to an object: a path, what is wrong there, and the digest of
// what was found. There are none if the two agree.
type Differences map[string]uint64

// What may be wrong at a path.
const (
	differs  = "differs"   // The value is another.
	notOurs  = "not ours"  // The manager does not own what it wants.
	leftOver = "left over" // The manager owns what it does not want any more.
	unclear  = "unclear"   // The managed fields cannot be understood.
)

func (d Differences) add(path fieldpath.Path, fault string, found any) {
	d[path.String()+" "+fault], _ = digest.Of(found)
}

// SubsetOf reports whether every difference is among known.
func (d Differences) SubsetOf(known Differences) bool {
	for difference, found := range d {
		if sum, ok := known[difference]; !ok || sum != found {
			return false
		}
	}
	return true
}

// Compare returns the differences between a configuration and an object with the given content and managed fields.
// Without managed fields it is not known who owns what; values are all there is to compare then. With ignoreForeign, a
// field that others own is no difference though it has another value.
//
// What the API server added is no difference if that is known: in an object that was created with the fields that are
// wanted and never applied, see [Configuration.Creator], and where it is a well-known default of a built-in kind.
func Compare(
	wanted Configuration, there map[string]any, entries []metav1.ManagedFieldsEntry, owner Owner, ignoreForeign bool,
) Differences {
	return compare(wanted, there, entries, owner, ignoreForeign).found
}

func compare(
	wanted Configuration, there map[string]any, entries []metav1.ManagedFieldsEntry, owner Owner, ignoreForeign bool,
) comparison {
	c := comparison{unowned: len(entries) == 0, found: Differences{}, added: addedTo(wanted["apiVersion"])}
	ours, applied, others := &fieldpath.Set{}, &fieldpath.Set{}, &fieldpath.Set{}
	for _, entry := range entries {
		fields, err := FieldsOf(&entry)
		ok := err == nil && entry.FieldsV1 != nil && entry.APIVersion == wanted["apiVersion"]
		switch {
		case !ok && owner.owns(entry):
			// Field names of another version may mean something else.
			c.found.add(nil, unclear, nil)
			return c
		case !ok:
			// The API server decides on conflicts with other owners.
		case owner.owns(entry):
			ours = ours.Union(fields)
			if entry.Manager == owner.Name || entry.Manager != wanted.Creator(owner.Name) {
				applied = applied.Union(fields)
			}
		default:
			others = others.Union(fields)
		}
	}
	if !ours.Empty() && applied.Empty() {
		c.added = anything
	}
	if !ignoreForeign {
		others = &fieldpath.Set{}
	}
	body := wanted.body()
	c.members(nil, body, ours, others, there)
	c.leftovers(nil, applied, body)
	return c
}

// comparison collects differences. What kind of list or map it meets, it takes from the fields that are owned. What it
// cannot take from there counts as a difference.
type comparison struct {
	// unowned is true if it is not known who owns what.
	unowned bool
	found   Differences
	// added reports whether the API server has added that member to what is owned as a whole.
	added func(name string, value any) bool
	// notOwned, changed and left are the paths of fields that the manager does not own, that have another value, or
	// that are left over. Of what is left over, tops are the paths that are below no other one.
	notOwned, changed, left, tops []fieldpath.Path
}

func (c *comparison) members(path fieldpath.Path, want map[string]any, ours, others *fieldpath.Set, there any) {
	have, _ := there.(map[string]any)
	for name, value := range want {
		c.member(path, fieldpath.FieldNameElement(name), value, ours, others, have[name])
	}
}

// member compares the value at one element of path.
func (c *comparison) member(
	path fieldpath.Path, at fieldpath.PathElement, want any, ours, others *fieldpath.Set, have any,
) {
	owned := ours.Members.Has(at)
	inner, nested := children(ours, at)
	theirs, shared := children(others, at)
	path = append(path, at)
	switch want := want.(type) {
	case map[string]any:
		if len(want) > 0 && (nested || !owned) {
			c.members(path, want, inner, theirs, have)
			return
		}
	case []any:
		if len(want) > 0 && nested {
			c.items(path, want, inner, theirs, have)
			return
		}
	}
	same := agrees(want, have, c.added)
	switch {
	case !c.unowned && !owned && !nested:
		if !same && (shared || others.Members.Has(at)) {
			return
		}
		c.found.add(path, notOurs, have)
		c.notOwned = append(c.notOwned, path.Copy())
	case !same:
		c.found.add(path, differs, have)
		c.changed = append(c.changed, path.Copy())
	}
}

func children(fields *fieldpath.Set, at fieldpath.PathElement) (*fieldpath.Set, bool) {
	if inner, ok := fields.Children.Get(at); ok {
		return inner, true
	}
	return &fieldpath.Set{}, false
}

// items compares a list whose items are owned one by one.
func (c *comparison) items(path fieldpath.Path, want []any, ours, others *fieldpath.Set, there any) {
	keys, ok := keysOf(ours)
	if !ok {
		c.found.add(path, unclear, there)
		return
	}
	list, _ := there.([]any)
	have := itemsByElement(list, keys)
	for i, item := range want {
		at := itemElement(item, keys)
		if _, nested := children(ours, at); !nested && !ours.Members.Has(at) {
			missing := append(path, fieldpath.IndexElement(i))
			c.found.add(missing, notOurs, nil)
			c.notOwned = append(c.notOwned, missing.Copy())
			continue
		}
		c.member(path, at, item, ours, others, have[at.String()])
	}
}

// leftovers finds fields that are owned and not wanted.
func (c *comparison) leftovers(path fieldpath.Path, ours *fieldpath.Set, want any) {
	members, _ := want.(map[string]any)
	items := map[string]any{}
	if list, ok := want.([]any); ok {
		if keys, ok := keysOf(ours); ok {
			items = itemsByElement(list, keys)
		}
	}
	wanted := func(at fieldpath.PathElement, inner *fieldpath.Set) (value any, ok bool) {
		if at.FieldName != nil {
			value, ok = members[*at.FieldName]
		} else {
			value, ok = items[at.String()]
		}
		if !ok {
			whole := append(path, at)
			c.found.add(whole, leftOver, nil)
			c.tops = append(c.tops, whole.Copy())
			inner.Iterate(func(rest fieldpath.Path) { c.left = append(c.left, append(whole.Copy(), rest...)) })
		}
		return value, ok
	}
	ours.Members.Iterate(func(at fieldpath.PathElement) {
		if _, ok := wanted(at, &fieldpath.Set{}); !ok {
			c.left = append(c.left, append(path, at).Copy())
		}
	})
	for at := range ours.Children.All() {
		inner, _ := ours.Children.Get(at)
		if value, ok := wanted(at, inner); ok {
			c.leftovers(append(path, at), inner, value)
		}
	}
}

// agrees reports whether what is there is what is wanted, but for members that are added. What a Go type has no way to
// leave out, or to say, is taken for zero.
func agrees(want, have any, added func(name string, value any) bool) bool {
	switch want := want.(type) {
	case map[string]any:
		members, ok := have.(map[string]any)
		if !ok {
			break
		}
		for name, value := range want {
			if !agrees(value, members[name], added) {
				return false
			}
		}
		for name, value := range members {
			if _, ok := want[name]; !ok && !isZero(value) && !added(name, value) {
				return false
			}
		}
		return true
	case []any:
		items, ok := have.([]any)
		if !ok || len(want) != len(items) {
			break
		}
		for i, item := range want {
			if !agrees(item, items[i], added) {
				return false
			}
		}
		return true
	case int64:
		if have, ok := have.(float64); ok {
			return float64(want) == have
		}
	case float64:
		if have, ok := have.(int64); ok {
			return want == float64(have)
		}
	}
	if have == nil || !isScalar(want) || !isScalar(have) {
		return isZero(want) && isZero(have)
	}
	return want == have
}

func anything(string, any) bool { return true }

// addedTo returns the function that knows what the API server adds to objects of such a version. It is needed for what
// is owned as a whole. A field that has its default is the same whether it is wanted or not.
func addedTo(apiVersion any) func(name string, value any) bool {
	version, _ := apiVersion.(string)
	if kind := schema.FromAPIVersionAndKind(version, ""); !kinds.IsBuiltIn(kind.Group) {
		return func(string, any) bool { return false }
	}
	return func(name string, value any) bool {
		if members, ok := value.(map[string]any); ok && name == "status" {
			return len(members) == 1 && members["phase"] == "Pending"
		}
		known, ok := defaults[name]
		return ok && isScalar(value) && known == value
	}
}

// defaults are those that API servers set in lists and objects which are owned as a whole: ports, references to fields,
// claims of StatefulSets, conditions of Pods in the policies of Jobs, subjects and roles, rules of webhooks and
// policies, requests for devices, queues.
var defaults = map[string]any{
	"allocationMode": "ExactCount", "apiGroup": "rbac.authorization.k8s.io", "apiVersion": "v1", "count": int64(1),
	"divisor": "0", "expirationSeconds": int64(3600), "handSize": int64(8), "kind": "PersistentVolumeClaim",
	"matchPolicy": "Equivalent", "operator": "Equal", "protocol": "TCP", "queueLengthLimit": int64(50),
	"queues": int64(64), "scope": "*", "status": "True", "volumeMode": "Filesystem",
}

func isScalar(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

// isZero reports whether v is what decoding leaves of a Go field that is zero.
func isZero(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, member := range v {
			if !isZero(member) {
				return false
			}
		}
		return true
	case []any:
		return len(v) == 0
	default:
		return v == nil || v == false || v == "" || v == int64(0) || v == float64(0)
	}
}

// keysOf returns the sorted names of the keys by which the items of a list are owned. There are none for items that are
// owned by their values. It returns false for items that are owned otherwise, or in more than one way.
func keysOf(fields *fieldpath.Set) (keys []string, ok bool) {
	first, ok := true, true
	look := func(at fieldpath.PathElement) {
		var own []string
		if at.Key != nil {
			for _, field := range *at.Key {
				own = append(own, field.Name)
			}
		}
		ok = ok && (at.Key != nil || at.Value != nil) && (first || slices.Equal(keys, own))
		first, keys = false, own
	}
	fields.Members.Iterate(look)
	fields.Children.Iterate(look)
	return keys, ok
}

// itemElement returns the path element of an item of a list with such keys. Of the defaults that a key may have, only
// the protocol of ports is known. An item without one of its keys gets an element that no owned item has.
func itemElement(item any, keys []string) fieldpath.PathElement {
	members, ok := item.(map[string]any)
	if !ok || len(keys) == 0 {
		return fieldpath.ValueElement(value.NewValueInterface(item))
	}
	var fields []value.Field
	for _, key := range keys {
		part, ok := members[key]
		if !ok && key == "protocol" {
			part, ok = "TCP", true
		}
		if ok {
			fields = append(fields, value.Field{Name: key, Value: value.NewValueInterface(part)})
		}
	}
	return fieldpath.KeyElement(fields...)
}

// itemsByElement returns the items of a list by the texts of their path elements. Of two items with one element the
// last counts.
func itemsByElement(list []any, keys []string) map[string]any {
	items := make(map[string]any, len(list))
	for _, item := range list {
		items[itemElement(item, keys).String()] = item
	}
	return items
}
