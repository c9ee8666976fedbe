package write

import "testing"

func TestFieldAt(t *testing.T) {
	content := map[string]any{
		"spec":     map[string]any{"containers": []any{map[string]any{"image": "a"}}},
		"metadata": map[string]any{"labels": map[string]any{"a.b/c": "d"}},
	}
	for path, want := range map[string]any{
		"spec.containers[0].image": "a", "metadata.labels[a.b/c]": "d", "spec.containers[1].image": nil, "spec.containers[x]": nil,
		"spec.containers[-1]": nil, "": nil, "spec.none": nil, "spec.containers[0].image.more": nil, "[": nil, "spec..containers": nil,
	} {
		if got, ok := fieldAt(content, path); got != want || ok != (want != nil) {
			t.Errorf("%q: got %v, %t, want %v", path, got, ok, want)
		}
	}
}

func TestWhatIsDesiredOtherwise(t *testing.T) {
	type content = map[string]any
	for name, test := range map[string]struct {
		desired, current any
		want             bool
	}{
		"the same":              {content{"a": "1"}, content{"a": "1"}, false},
		"a default":             {content{"a": "1"}, content{"a": "1", "b": "2"}, false},
		"an empty field":        {content{"a": content{}, "b": nil}, content{}, false},
		"another value":         {content{"a": "1"}, content{"a": "2"}, true},
		"one that is not there": {content{"a": "1"}, nil, true},
		"a longer list":         {[]any{"1", "2"}, []any{"1"}, true},
		"a shorter list":        {[]any{"1"}, []any{"1", "2"}, true},
		"a default in a list":   {[]any{content{"a": "1"}}, []any{content{"a": "1", "b": "2"}}, false},
		"an item differs":       {[]any{content{"a": "1"}}, []any{content{"a": "2"}}, true},
	} {
		if got := setsAnother(test.desired, test.current); got != test.want {
			t.Errorf("%s: sets another is %t, want %t", name, got, test.want)
		}
	}
}
