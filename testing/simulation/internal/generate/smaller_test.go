package generate_test

import (
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/espalier-dev/espalier/testing/simulation/internal/generate"
)

// shrink returns the smallest resource that fails, as the documentation of Smaller says.
func shrink(
	g *generate.Generator, obj *unstructured.Unstructured, fails func(*unstructured.Unstructured) bool,
) (smallest *unstructured.Unstructured, steps int) {
	for found := true; found; steps++ {
		found = false
		for variant := range g.Smaller(obj) {
			if fails(variant) {
				obj, found = variant, true
				break
			}
		}
	}
	return obj, steps
}

func TestSmallerIsValid(t *testing.T) {
	t.Parallel()
	for kind := range definitions {
		g, c := generator(t, kind), newChecker(t, kind)
		for seed := range uint64(10) {
			obj := draw(t, g, source(seed))
			before := encode(obj)
			var first *unstructured.Unstructured
			for variant := range g.Smaller(obj) {
				c.delete(c.create(variant))
				if cmp.Equal(variant.Object, obj.Object) {
					t.Errorf("%s, seed %d: a variant is the same", kind, seed)
				}
				if first == nil {
					first = variant
				}
			}
			if encode(obj) != before {
				t.Errorf("%s, seed %d: the resource has changed", kind, seed)
			}
			smallest, steps := shrink(g, obj, func(*unstructured.Unstructured) bool { return true })
			for range g.Smaller(smallest) {
				t.Errorf("%s, seed %d: %s is not the smallest", kind, seed, encode(smallest))
			}
			if steps > 30 {
				t.Errorf("%s, seed %d: %d steps to the smallest", kind, seed, steps)
			}
		}
	}
}

// TestShrinks looks for the smallest resource with something wrong.
func TestShrinks(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		fails func(spec map[string]any) bool
		want  string
	}{
		{"number", func(spec map[string]any) bool {
			number, _, _ := unstructured.NestedInt64(spec, "numbers", "any")
			return number > 2
		}, `{"lists":{},"numbers":{"any":3},"texts":{}}`},
		{"text", func(spec map[string]any) bool {
			text, _, _ := unstructured.NestedString(spec, "texts", "length")
			return len(text) > 2
		}, `{"lists":{},"numbers":{},"texts":{"length":"[a-z0-9]{3}"}}`},
		{"enum", func(spec map[string]any) bool {
			text, _, _ := unstructured.NestedString(spec, "texts", "enum")
			return text == "Two" || text == "Three"
		}, `{"lists":{},"numbers":{},"texts":{"enum":"Two"}}`},
		{"item", func(spec map[string]any) bool {
			items, _, _ := unstructured.NestedSlice(spec, "lists", "byName")
			for _, item := range items {
				if item.(map[string]any)["protocol"] == "UDP" {
					return true
				}
			}
			return false
		}, `{"lists":{"byName":\[{"name":"","protocol":"UDP"}\]},"numbers":{},"texts":{}}`},
		{"two", func(spec map[string]any) bool {
			labels, _, _ := unstructured.NestedMap(spec, "lists", "labels")
			_, ok, _ := unstructured.NestedFieldNoCopy(spec, "others", "settings")
			return len(labels) == 1 && ok
		}, `{"lists":{"labels":{"[a-z0-9-]":""}},"numbers":{},"others":{"settings":{}},"texts":{}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := generator(t, "Keyword")
			fails := func(obj *unstructured.Unstructured) bool {
				return test.fails(obj.Object["spec"].(map[string]any))
			}
			for seed, found := uint64(0), 0; found < 3; seed++ {
				obj := draw(t, g, source(seed))
				if !fails(obj) {
					continue
				}
				found++
				smallest, _ := shrink(g, obj, fails)
				if spec := encode(smallest.Object["spec"]); !regexp.MustCompile("^" + test.want + "$").MatchString(spec) {
					t.Errorf("seed %d: the smallest is %s, want %s", seed, spec, test.want)
				}
				if len(smallest.GetLabels())+len(smallest.GetAnnotations()) > 0 {
					t.Errorf("seed %d: the metadata is %v", seed, smallest.Object["metadata"])
				}
			}
		})
	}
}
