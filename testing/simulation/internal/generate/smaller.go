package generate

import (
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Smaller returns simpler variants of a resource, the simplest first: without optional fields, with fewer items and
// entries, with shorter texts, smaller numbers and earlier values of enums. To find the smallest resource that fails a
// test, go on with the first variant that fails it until none does: that ends, since each variant is simpler.
//
// An API server accepts all of them for creation. Use [Generator.Check] for those that replace an edit.
func (g *Generator) Smaller(obj *unstructured.Unstructured) iter.Seq[*unstructured.Unstructured] {
	return func(yield func(*unstructured.Unstructured) bool) {
		limit := g.sizeOf(obj)
		var variants []variant
		for v := range g.variants(obj) {
			if size := g.sizeOf(v); size.compare(limit) < 0 {
				variants = append(variants, variant{v, size})
			}
		}
		slices.SortStableFunc(variants, func(a, b variant) int { return a.size.compare(b.size) })
		for _, v := range variants {
			if g.Check(v.obj, nil) == nil && !yield(v.obj) {
				return
			}
		}
	}
}

type variant struct {
	obj  *unstructured.Unstructured
	size size
}

// variants returns copies with one change each. Some of them are not simpler, or not valid.
func (g *Generator) variants(from *unstructured.Unstructured) iter.Seq[*unstructured.Unstructured] {
	obj := from.DeepCopy()
	return func(yield func(*unstructured.Unstructured) bool) {
		if !yield(g.bare(obj)) || !metadataVariants(obj, yield) {
			return
		}
		for _, s := range sites(g.root, "", obj.Object) {
			if !s.present {
				continue
			}
			if s.remove != nil {
				s.remove()
				if !yield(obj.DeepCopy()) {
					return
				}
			}
			for _, simpler := range s.simpler(s.value) {
				s.set(simpler)
				if !yield(obj.DeepCopy()) {
					return
				}
			}
			s.set(s.value)
		}
	}
}

// bare returns a copy without what is optional.
func (g *Generator) bare(obj *unstructured.Unstructured) *unstructured.Unstructured {
	bare, content := obj.DeepCopy(), g.content(obj)
	for key := range content {
		delete(bare.Object, key)
	}
	maps.Copy(bare.Object, strip(g.root, content).(map[string]any))
	bare.SetLabels(nil)
	bare.SetAnnotations(nil)
	return bare
}

func metadataVariants(obj *unstructured.Unstructured, yield func(*unstructured.Unstructured) bool) bool {
	for _, what := range []string{"labels", "annotations"} {
		values, _, _ := unstructured.NestedMap(obj.Object, "metadata", what)
		for _, key := range slices.Sorted(maps.Keys(values)) {
			variant := obj.DeepCopy()
			unstructured.RemoveNestedField(variant.Object, "metadata", what, key)
			if len(values) == 1 {
				unstructured.RemoveNestedField(variant.Object, "metadata", what)
			}
			if !yield(variant) {
				return false
			}
		}
	}
	return true
}

// content returns what the schema describes: not the type, the metadata and the status.
func (g *Generator) content(obj *unstructured.Unstructured) map[string]any {
	content := map[string]any{}
	for _, field := range g.root.fields {
		if value, ok := obj.Object[field.name]; ok {
			content[field.name] = value
		}
	}
	return content
}

// strip returns a copy without what is optional.
func strip(n *node, value any) any {
	switch value := value.(type) {
	case map[string]any:
		bare := map[string]any{}
		for _, field := range n.fields {
			if was, ok := value[field.name]; ok && (field.required || field.fixed) {
				bare[field.name] = strip(field.node, was)
			}
		}
		for i, key := range n.entryKeys(value) {
			if n.values.MinProperties != nil && int64(i) < *n.values.MinProperties {
				bare[key] = strip(n.entries, value[key])
			}
		}
		if n.schema.XEmbeddedResource {
			for _, key := range []string{"apiVersion", "kind", "metadata"} {
				bare[key] = runtime.DeepCopyJSONValue(value[key])
			}
		}
		return bare
	case []any:
		bare := []any{}
		for i, item := range value {
			if n.items != nil && n.values.MinItems != nil && int64(i) < *n.values.MinItems {
				bare = append(bare, strip(n.items, item))
			}
		}
		return bare
	default:
		return value
	}
}

// simpler returns values that may be simpler. The validator allows all of them.
func (n *node) simpler(value any) []any {
	var found []any
	switch value := value.(type) {
	case map[string]any:
		found = append(found, strip(n, value))
		found = append(found, n.simplerKeys(value)...)
	case []any:
		found = append(found, strip(n, value), slices.Clone(value[:len(value)/2]), slices.Clone(value[len(value)/2:]))
		for i := range value {
			found = append(found, slices.Delete(slices.Clone(value), i, i+1))
		}
	case string:
		found = n.simplerTexts(value)
	case int64:
		found = n.simplerNumbers(float64(value))
	case float64:
		found = n.simplerNumbers(value)
	case bool:
		found = append(found, false)
	}
	if n.choices != nil {
		found = n.choices
	}
	return slices.DeleteFunc(slices.Clone(found), func(v any) bool { return !n.allows(v) })
}

// simplerKeys returns maps with a key less, or a shorter one. Fields of the schema are not keys.
func (n *node) simplerKeys(value map[string]any) []any {
	var found []any
	for _, key := range slices.Sorted(maps.Keys(value)) {
		if slices.ContainsFunc(n.fields, func(f fieldNode) bool { return f.name == key }) {
			continue
		}
		fewer := maps.Clone(value)
		delete(fewer, key)
		found = append(found, fewer)
		for _, shorter := range []string{"a", "b", key[:len(key)/2]} {
			if _, ok := value[shorter]; !ok && shorter != "" && n.keys == nil {
				renamed := maps.Clone(fewer)
				renamed[shorter] = value[key]
				found = append(found, renamed)
			}
		}
	}
	return found
}

func (n *node) simplerTexts(text string) []any {
	runes := []rune(text)
	found := []any{"", string(runes[:len(runes)/2])}
	if len(runes) > 0 {
		found = append(found, string(runes[1:]), string(runes[:len(runes)-1]))
	}
	if n.schema.XIntOrString {
		found = append(found, int64(0), int64(1))
	}
	r := rand.New(rand.NewPCG(0, 0))
	if n.words != nil {
		for _, length := range n.words.lengths[:min(len(n.words.lengths), len(runes)+1)] {
			found = append(found, n.words.ofLength(r, length))
		}
		return found
	}
	for range 4 {
		found = append(found, newDrawer(r).text(n))
	}
	return found
}

func (n *node) simplerNumbers(number float64) []any {
	step := 1.0
	if n.values.MultipleOf != nil {
		step = *n.values.MultipleOf
	}
	low, high := n.bounds(step)
	nearest := max(low, min(0, high))
	steps := math.Trunc(number / step)
	var found []any
	for _, steps := range []float64{0, nearest, nearest + math.Trunc((steps-nearest)/2), steps, steps - 1, steps + 1} {
		found = append(found, decoded(steps*step))
	}
	return found
}
