package generate

import (
	"math/rand/v2"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Edit draws a change of a valid resource, and returns the changed resource. Mostly one field is changed, added or
// removed, also a label or an annotation, and never the status. The same source gives the same change.
//
// An API server accepts the change as an update, also by rules that compare with the old resource. If rules refuse all
// changes that are tried, a label or an annotation is changed.
func (g *Generator) Edit(r *rand.Rand, old *unstructured.Unstructured) *unstructured.Unstructured {
	tries := maxEdits
	if r.IntN(8) == 0 {
		tries = 0
	}
	for range tries {
		obj := old.DeepCopy()
		for range 1 + r.IntN(5)/4 {
			newDrawer(r).edit(g.root, obj.Object, "")
		}
		if len(g.mend(r, obj, old, maxEditMends)) == 0 && !g.same(obj, old) {
			return obj
		}
	}
	obj := old.DeepCopy()
	editMetadata(r, obj)
	return obj
}

// edit changes something in a value at or below a path, in place. It reports whether it has done so.
func (d *drawer) edit(n *node, value any, path string) bool {
	candidates := below(sites(n, "", value), path)
	if len(candidates) == 0 {
		return false
	}
	s := pick(d.r, candidates)
	switch {
	case !s.present:
		s.set(d.value(s.node))
	case s.remove != nil && d.r.IntN(3) == 0:
		s.remove()
	default:
		s.set(d.vary(s.node, s.value))
	}
	return true
}

// vary draws another value: a list or map with one item more or less, or a new one.
func (d *drawer) vary(n *node, value any) any {
	if varied, ok := d.varyItems(n, value); ok && n.allows(varied) {
		return varied
	}
	for range 20 {
		if varied := d.value(n); !equality.Semantic.DeepEqual(varied, value) {
			return varied
		}
	}
	return value
}

func (d *drawer) varyItems(n *node, value any) (any, bool) {
	if d.r.IntN(4) == 0 {
		return nil, false
	}
	switch value := value.(type) {
	case []any:
		return d.varyList(n, runtime.DeepCopyJSONValue(value).([]any))
	case map[string]any:
		if n.entries == nil {
			return nil, false
		}
		varied, keys := runtime.DeepCopyJSON(value), n.entryKeys(value)
		if len(keys) > 0 && d.r.IntN(2) == 0 {
			delete(varied, pick(d.r, keys))
		} else {
			d.addEntry(n, varied)
		}
		return varied, within(len(varied), n.values.MinProperties, n.values.MaxProperties)
	default:
		return nil, false
	}
}

func (d *drawer) varyList(n *node, list []any) (any, bool) {
	if n.items == nil {
		return nil, false
	}
	switch kind := d.r.IntN(3); {
	case kind == 0 && len(list) > 0:
		at := d.r.IntN(len(list))
		list = slices.Delete(list, at, at+1)
	case kind == 1 && len(list) > 1:
		d.r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	default:
		list = d.appendItem(n, list)
	}
	return list, within(len(list), n.values.MinItems, n.values.MaxItems)
}

func within(size int, least, most *int64) bool {
	return (least == nil || int64(size) >= *least) && (most == nil || int64(size) <= *most)
}

// metadataKeys are those of the labels and annotations that are edited. Others stay.
var metadataKeys = []string{"a", "b", "example.com/c"}

// editMetadata changes a label or an annotation.
func editMetadata(r *rand.Rand, obj *unstructured.Unstructured) {
	values, set := obj.GetLabels(), obj.SetLabels
	if r.IntN(2) == 0 {
		values, set = obj.GetAnnotations(), obj.SetAnnotations
	}
	if values == nil {
		values = map[string]string{}
	}
	key := pick(r, metadataKeys)
	was, ok := values[key]
	if ok && r.IntN(2) == 0 {
		delete(values, key)
	} else {
		for values[key] = word(r, few(r, 3)); ok && values[key] == was; {
			values[key] = word(r, 1+few(r, 3))
		}
	}
	if len(values) == 0 {
		values = nil
	}
	set(values)
}
