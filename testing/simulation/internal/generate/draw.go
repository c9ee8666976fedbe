package generate

import (
	"math/rand/v2"
	"slices"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
)

// drawer draws values.
type drawer struct {
	r *rand.Rand
	// left is the number of values that may be added to those that have to be there.
	left int
	// tries is how often a value may still be refused.
	tries int
}

// maxValues limits the size of a resource, and maxRefused the time that it takes.
const (
	maxValues  = 120
	maxRefused = 1000
)

func newDrawer(r *rand.Rand) *drawer { return &drawer{r, maxValues, maxRefused} }

// content draws a resource without its type and metadata.
func (d *drawer) content(n *node) map[string]any {
	content, _ := d.value(n).(map[string]any)
	if content == nil {
		return map[string]any{}
	}
	return content
}

// value draws a value that is valid. It is so apart from rules if these are hardly ever met.
func (d *drawer) value(n *node) any {
	valid, draws := n.sample, 0
	for left := d.left; ; d.left = left {
		value := d.attempt(n)
		if n.allows(value) {
			mended, ok := d.mend(n, value)
			if draws++; ok || draws == ruleDraws {
				return mended
			}
			valid = mended
		}
		if d.tries--; d.tries < 0 {
			return runtime.DeepCopyJSONValue(valid)
		}
	}
}

// attempt draws a value which its validator may refuse.
func (d *drawer) attempt(n *node) any {
	d.left--
	fallback := n.schema.Default.Object
	switch {
	case len(n.choices) > 0:
		return runtime.DeepCopyJSONValue(pick(d.r, n.choices))
	case n.schema.Nullable && d.r.IntN(8) == 0:
		return nil
	case fallback != nil && d.r.IntN(8) == 0:
		return normalize(runtime.DeepCopyJSONValue(fallback))
	case n.schema.XIntOrString && d.r.IntN(2) == 0:
		return d.integer(n)
	case n.schema.XIntOrString:
		return d.text(n)
	}
	switch n.schema.Type {
	case "object":
		return d.object(n)
	case "array":
		return d.list(n)
	case "string":
		return d.text(n)
	case "integer":
		return d.integer(n)
	case "number":
		return d.decimal(n)
	case "boolean":
		return d.r.IntN(2) == 0
	default:
		return d.unknown()
	}
}

// object draws an object with fields, or a map.
func (d *drawer) object(n *node) map[string]any {
	object := map[string]any{}
	wanted, unwanted := d.branch(&n.values)
	chance := d.chance(len(n.fields))
	for _, field := range n.fields {
		switch {
		case field.never():
		case field.required || field.fixed || slices.Contains(wanted, field.name):
			object[field.name] = d.value(field.node)
		case d.left > 0 && !slices.Contains(unwanted, field.name) && d.r.IntN(100) < chance:
			object[field.name] = d.value(field.node)
		}
	}
	if n.entries != nil {
		for range d.size(n.values.MinProperties, n.values.MaxProperties) {
			d.addEntry(n, object)
		}
	}
	if n.schema.XEmbeddedResource {
		object["apiVersion"], object["kind"] = "v1", "ConfigMap"
		object["metadata"] = map[string]any{"name": word(d.r, 1+few(d.r, 4))}
	} else if n.schema.XPreserveUnknownFields && d.r.IntN(2) == 0 {
		object[word(d.r, 1+few(d.r, 3))] = d.unknown()
	}
	return object
}

// chance draws the percentage of optional fields to be there. Objects with many fields have few of them.
func (d *drawer) chance(fields int) int {
	switch d.r.IntN(8) {
	case 0:
		return 0
	case 1:
		if fields < d.left {
			return 100
		}
	}
	return min(50, 400/max(fields, 1))
}

// branch draws one of the alternatives of a schema, and returns the fields that it requires, and some that it does not
// allow.
func (d *drawer) branch(v *structuralschema.ValueValidation) (wanted, unwanted []string) {
	for i := range v.AllOf {
		more, less := d.branch(&v.AllOf[i].ValueValidation)
		wanted, unwanted = append(append(wanted, v.AllOf[i].Required...), more...), append(unwanted, less...)
	}
	if len(v.AnyOf) > 0 {
		wanted = append(wanted, pick(d.r, v.AnyOf).Required...)
	}
	if len(v.OneOf) > 0 {
		chosen := d.r.IntN(len(v.OneOf))
		for i := range v.OneOf {
			if i == chosen {
				wanted = append(wanted, v.OneOf[i].Required...)
			} else {
				unwanted = append(unwanted, v.OneOf[i].Required...)
			}
		}
	}
	if v.Not != nil && len(v.Not.Required) > 0 {
		unwanted = append(unwanted, pick(d.r, v.Not.Required))
	}
	return wanted, slices.DeleteFunc(unwanted, func(name string) bool { return slices.Contains(wanted, name) })
}

// addEntry adds an entry to a map, or replaces one.
func (d *drawer) addEntry(n *node, to map[string]any) {
	if n.keys == nil {
		to[d.key(n)] = d.value(n.entries)
	} else if len(n.keys) > 0 {
		to[pick(d.r, n.keys)] = d.value(n.entries)
	}
}

// key draws the key of a map. The texts of rules may be about keys.
func (d *drawer) key(n *node) string {
	if len(n.texts) > 0 && d.r.IntN(3) == 0 {
		return pick(d.r, n.texts)
	}
	if len(n.patterns) > 0 && d.r.IntN(3) == 0 {
		return pick(d.r, n.patterns).draw(d.r)
	}
	return word(d.r, 1+few(d.r, 3))
}

// list draws a list. The items of sets differ, and so do the keys of items.
func (d *drawer) list(n *node) []any {
	list := []any{}
	if n.items == nil {
		return list
	}
	for range d.size(n.values.MinItems, n.values.MaxItems) {
		list = d.appendItem(n, list)
	}
	return list
}

// appendItem adds an item, unless no other than those that are there is found.
func (d *drawer) appendItem(n *node, list []any) []any {
	for range 20 {
		item := d.value(n.items)
		if !slices.ContainsFunc(list, func(other any) bool { return n.conflict(item, other) }) {
			return append(list, item)
		}
	}
	return list
}

// conflict reports whether two items may not be in one list.
func (n *node) conflict(a, b any) bool {
	switch {
	case n.schema.XListType == nil:
		return false
	case *n.schema.XListType == "set":
		return equality.Semantic.DeepEqual(a, b)
	case *n.schema.XListType == "map":
		return !slices.ContainsFunc(n.schema.XListMapKeys, func(key string) bool {
			return !equality.Semantic.DeepEqual(n.itemKey(a, key), n.itemKey(b, key))
		})
	default:
		return false
	}
}

// itemKey returns a key of an item, its default if it has none.
func (n *node) itemKey(item any, key string) any {
	fields, _ := item.(map[string]any)
	if value, ok := fields[key]; ok {
		return value
	}
	return n.items.schema.Properties[key].Default.Object
}

// size draws the number of items.
func (d *drawer) size(least, most *int64) int {
	from := 0
	if least != nil {
		from = int(*least)
	}
	size := from + few(d.r, 2)
	if most != nil {
		// Longer lists than a few items take time and show nothing else.
		if limit := int(min(*most, int64(from+16))); size > limit || d.r.IntN(16) == 0 {
			size = limit
		}
	}
	if d.left <= 0 {
		return from
	}
	return size
}

// unknown draws a value of which nothing is known.
func (d *drawer) unknown() any {
	switch d.r.IntN(6) {
	case 0:
		return word(d.r, few(d.r, 3))
	case 1:
		return int64(few(d.r, 3))
	case 2:
		return d.r.IntN(2) == 0
	case 3:
		return []any{word(d.r, 1)}
	default:
		return map[string]any{word(d.r, 1): word(d.r, few(d.r, 3))}
	}
}

// few draws a number from 0, mostly below the given one, and seldom one that is much larger.
func few(r *rand.Rand, usual int) int {
	if r.IntN(16) == 0 {
		return r.IntN(8*usual + 1)
	}
	return r.IntN(usual + 1)
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }
