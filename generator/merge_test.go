package generator_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-dev/espalier/generator"
)

func mapOf(t testing.TB, text string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMergeMaps(t *testing.T) {
	for name, tc := range map[string]struct{ base, over, want string }{
		"nothing":                        {`null`, `null`, `{}`},
		"only a base":                    {`{"a": {"b": [1, null]}, "c": null}`, `null`, `{"a": {"b": [1, null]}, "c": null}`},
		"only over":                      {`null`, `{"a": {"b": [1, null]}}`, `{"a": {"b": [1, null]}}`},
		"maps are merged at any depth":   {`{"a": {"b": {"c": 1, "d": 2}}}`, `{"a": {"b": {"c": 3, "e": 4}}}`, `{"a": {"b": {"c": 3, "d": 2, "e": 4}}}`},
		"a list replaces a list":         {`{"a": [1, 2]}`, `{"a": [3]}`, `{"a": [3]}`},
		"a text replaces a map":          {`{"a": {"b": 1}}`, `{"a": "c"}`, `{"a": "c"}`},
		"a list replaces a map":          {`{"a": {"b": 1}}`, `{"a": [1]}`, `{"a": [1]}`},
		"false replaces a map":           {`{"a": {"b": 1}}`, `{"a": false}`, `{"a": false}`},
		"a map replaces a text":          {`{"a": "c"}`, `{"a": {"b": 1}}`, `{"a": {"b": 1}}`},
		"a map replaces a list":          {`{"a": [1]}`, `{"a": {"b": {"c": 1}}}`, `{"a": {"b": {"c": 1}}}`},
		"an empty map replaces a text":   {`{"a": "c"}`, `{"a": {}}`, `{"a": {}}`},
		"an empty map deletes nothing":   {`{"a": {"b": 1}}`, `{"a": {}}`, `{"a": {"b": 1}}`},
		"null deletes a text":            {`{"a": 1, "b": 2}`, `{"a": null}`, `{"b": 2}`},
		"null deletes a map":             {`{"a": {"b": 1}}`, `{"a": null}`, `{}`},
		"null deletes inside":            {`{"a": {"b": 1, "c": 2}}`, `{"a": {"b": null}}`, `{"a": {"c": 2}}`},
		"null deletes nothing":           {`{}`, `{"a": null, "b": {"c": null}}`, `{"b": {}}`},
		"nulls of what replaces a text":  {`{"a": 1}`, `{"a": {"b": null, "c": [null]}}`, `{"a": {"c": [null]}}`},
		"null in the base is overridden": {`{"a": null}`, `{"a": {"b": 1}}`, `{"a": {"b": 1}}`},
	} {
		t.Run(name, func(t *testing.T) {
			base, over := mapOf(t, tc.base), mapOf(t, tc.over)
			got := generator.MergeMaps(base, over)
			if diff := cmp.Diff(mapOf(t, tc.want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			scribble(got)
			if diff := cmp.Diff(mapOf(t, tc.base), base) + cmp.Diff(mapOf(t, tc.over), over); diff != "" {
				t.Errorf("the result shares something with what was merged, want nothing (-want +got):\n%s", diff)
			}
		})
	}
}

// scribble changes everything that can be reached from v.
func scribble(v any) {
	switch v := v.(type) {
	case map[string]any:
		for key := range v {
			scribble(v[key])
			v[key] = "scribbled"
		}
		v["scribbled"] = "new"
	case []any:
		for i := range v {
			scribble(v[i])
			v[i] = "scribbled"
		}
	}
}

func FuzzMergeMaps(f *testing.F) {
	f.Add(`{"a": {"b": [1, null]}, "c": null}`, `{"a": {"b": null, "d": {}}, "c": "e"}`)
	f.Fuzz(func(t *testing.T, a, b string) {
		var base, over map[string]any
		if json.Unmarshal([]byte(a), &base) != nil || json.Unmarshal([]byte(b), &over) != nil {
			return
		}
		merged := generator.MergeMaps(base, over)
		if again := generator.MergeMaps(merged, over); !reflect.DeepEqual(again, merged) {
			t.Errorf("merged again, it is %v, want %v", again, merged)
		}
		for key, value := range over {
			_, isMap := value.(map[string]any)
			if got, there := merged[key]; there != (value != nil) || !isMap && there && !reflect.DeepEqual(got, value) {
				t.Errorf("%q is %v, want %v", key, got, value)
			}
		}
		scribble(merged)
		var before map[string]any
		if _ = json.Unmarshal([]byte(a), &before); !reflect.DeepEqual(before, base) {
			t.Errorf("the base was changed to %v, want %v", base, before)
		}
	})
}

func TestDefaultsAndOverrides(t *testing.T) {
	values := `{"size": {"width": 2, "height": 3}, "color": "red", "doors": [1]}`
	for name, tc := range map[string]struct {
		transformer func(map[string]any) generator.ParameterTransformer
		given, want string
	}{
		"defaults, nothing given":            {generator.Defaults, `{}`, values},
		"defaults, some given":               {generator.Defaults, `{"size": {"width": 5}, "doors": {}}`, `{"size": {"width": 5, "height": 3}, "color": "red", "doors": {}}`},
		"defaults, one removed":              {generator.Defaults, `{"size": null, "color": null}`, `{"doors": [1]}`},
		"defaults, a null without a default": {generator.Defaults, `{"roof": null, "size": {"depth": null}}`, `{"size": {"width": 2, "height": 3, "depth": null}, "color": "red", "doors": [1], "roof": null}`},
		"overrides, nothing given":           {generator.Overrides, `{}`, values},
		"overrides, some given":              {generator.Overrides, `{"size": {"width": 5, "depth": 6}, "color": {"a": 1}}`, `{"size": {"width": 2, "height": 3, "depth": 6}, "color": "red", "doors": [1]}`},
		"overrides leave other nulls":        {generator.Overrides, `{"roof": null}`, `{"size": {"width": 2, "height": 3}, "color": "red", "doors": [1], "roof": null}`},
	} {
		t.Run(name, func(t *testing.T) {
			source := mapOf(t, values)
			transformer := tc.transformer(source)
			scribble(source)
			given := generator.UnstructurableMap(mapOf(t, tc.given))
			for range 2 {
				got, err := transformer.TransformParameters("ns", "name", given)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(mapOf(t, tc.want), got.ToUnstructured()); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				scribble(map[string]any(got.(generator.UnstructurableMap)))
			}
			if diff := cmp.Diff(mapOf(t, tc.given), map[string]any(given)); diff != "" {
				t.Errorf("the parameters were changed, want them as they were (-want +got):\n%s", diff)
			}
			if !generator.IsDeterministic(transformer) {
				t.Error("it is not deterministic, want it to be")
			}
		})
	}
	if got, err := generator.Defaults(nil).TransformParameters("", "", nil); err != nil || got == nil {
		t.Errorf("without anything the parameters are %v (%v), want some that are empty", got, err)
	}
}

// The users of a chart see the defaults of the operator, and cannot change what the operator demands.
func ExampleMergeMaps() {
	chart := map[string]any{"image": map[string]any{"tag": "1.0"}, "resources": map[string]any{"limits": "some"}}
	user := map[string]any{"image": map[string]any{"tag": "2.0", "pull": "Always"}, "resources": nil}
	text, _ := json.Marshal(generator.MergeMaps(chart, user))
	fmt.Println(string(text))
	// Output: {"image":{"pull":"Always","tag":"2.0"}}
}

func ExampleDefaults() {
	defaults := generator.Defaults(map[string]any{"replicas": 2, "tls": map[string]any{"enabled": true}})
	parameters, _ := defaults.TransformParameters("plots", "garden", generator.UnstructurableMap{"replicas": 5})
	text, _ := json.Marshal(parameters.ToUnstructured())
	fmt.Println(string(text))
	// Output: {"replicas":5,"tls":{"enabled":true}}
}

func ExampleOverrides() {
	overrides := generator.Overrides(map[string]any{"tls": map[string]any{"enabled": true}, "debug": nil})
	given := generator.UnstructurableMap{"tls": map[string]any{"enabled": false, "issuer": "ours"}, "debug": true}
	parameters, _ := overrides.TransformParameters("plots", "garden", given)
	text, _ := json.Marshal(parameters.ToUnstructured())
	fmt.Println(string(text))
	// Output: {"tls":{"enabled":true,"issuer":"ours"}}
}
