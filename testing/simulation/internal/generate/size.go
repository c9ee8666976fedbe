package generate

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// size is how simple a resource is: the number of its values counts before what they are.
type size struct {
	values int
	detail float64
}

func (s size) compare(other size) int {
	return cmp.Or(cmp.Compare(s.values, other.values), cmp.Compare(s.detail, other.detail))
}

func (g *Generator) sizeOf(obj *unstructured.Unstructured) size {
	var s size
	s.add(g.root, g.content(obj))
	for _, values := range []map[string]string{obj.GetLabels(), obj.GetAnnotations()} {
		for _, key := range slices.Sorted(maps.Keys(values)) {
			s.add(nil, values[key])
		}
	}
	return s
}

// add adds a value. The node is nil if nothing is known about it.
func (s *size) add(n *node, value any) {
	s.values++
	if n != nil && n.choices != nil {
		s.detail += float64(slices.IndexFunc(n.choices, func(c any) bool {
			return equality.Semantic.DeepEqual(c, value)
		}))
		return
	}
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			child, isField := n.child(key)
			if !isField {
				s.text(key)
			}
			s.add(child, value[key])
		}
	case []any:
		for _, item := range value {
			if n == nil {
				s.add(nil, item)
			} else {
				s.add(n.items, item)
			}
		}
	case string:
		s.text(value)
	case int64:
		s.number(float64(value))
	case float64:
		s.number(value)
	case bool:
		if value {
			s.detail++
		}
	}
}

// text adds a text. One with unusual characters is less simple.
func (s *size) text(text string) {
	for _, c := range text {
		s.detail += 2
		if !strings.ContainsRune(letters, c) {
			s.detail++
		}
	}
}

// number adds a number. One that is negative, or has a fraction, is less simple.
func (s *size) number(number float64) {
	s.detail += math.Log1p(math.Abs(number))
	if number < 0 || number != math.Trunc(number) {
		s.detail++
	}
}

// child returns the node of a field or an entry, nil if there is none.
func (n *node) child(key string) (child *node, isField bool) {
	if n == nil {
		return nil, false
	}
	for _, field := range n.fields {
		if field.name == key {
			return field.node, true
		}
	}
	return n.entries, false
}
