package kubernetes_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// smaller returns the object of a class of differences with as few fields as the class needs; of an update, as few
// changes.
func smaller(t testing.TB, key string, c *class) any {
	t.Helper()
	j, _ := newJudge(c.obj.GetObjectKind().GroupVersionKind())
	stays := func(content map[string]any) bool {
		data, err := json.Marshal(content)
		if err != nil {
			return false
		}
		got, err := runtime.Decode(clientgoscheme.Codecs.UniversalDeserializer(), data)
		if err != nil {
			return false
		}
		obj := got.(client.Object)
		if c.old != nil {
			d := j.update(obj, c.old)
			return d != nil && d.key() == key
		}
		_, d := j.create(obj)
		return d != nil && d.key() == key
	}
	content := contentOf(t, c.obj)
	same := func() bool { return stays(content) }
	if c.old != nil {
		old := contentOf(t, c.old)
		revert(content, old, same)
		return changes(old, content)
	}
	for shrink(content, same) {
	}
	return content
}

func contentOf(t testing.TB, obj client.Object) map[string]any {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// shrink removes what can be removed from a map or a list. It reports whether it removed something.
func shrink(v any, stays func() bool) bool {
	removed := false
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			value := v[key]
			if key == "apiVersion" || key == "kind" {
				continue
			}
			if delete(v, key); stays() {
				removed = true
				continue
			}
			v[key] = value
			if list, ok := value.([]any); ok {
				for i := 0; i < len(list); i++ {
					v[key] = slices.Delete(slices.Clone(list), i, i+1)
					if stays() {
						list, removed = v[key].([]any), true
						i--
						continue
					}
					v[key] = list
				}
				value = list
			}
			removed = shrink(value, stays) || removed
		}
	case []any:
		for _, value := range v {
			removed = shrink(value, stays) || removed
		}
	}
	return removed
}

// revert takes back what changed in a map, where the class of differences does not need it.
func revert(v, old map[string]any, stays func() bool) {
	for _, key := range slices.Sorted(maps.Keys(v)) {
		value, before := v[key], old[key]
		if equality.Semantic.DeepEqual(value, before) {
			continue
		}
		if _, ok := old[key]; ok {
			v[key] = before
		} else {
			delete(v, key)
		}
		if stays() {
			continue
		}
		v[key] = value
		revertValue(value, before, stays)
	}
	for _, key := range slices.Sorted(maps.Keys(old)) {
		if _, ok := v[key]; ok {
			continue
		}
		if v[key] = old[key]; !stays() {
			delete(v, key)
		}
	}
}

func revertValue(v, old any, stays func() bool) {
	switch v := v.(type) {
	case map[string]any:
		if old, ok := old.(map[string]any); ok {
			revert(v, old, stays)
		}
	case []any:
		old, ok := old.([]any)
		for i := range v {
			if ok && len(old) == len(v) {
				revertValue(v[i], old[i], stays)
			}
		}
	}
}

// changes returns what an update changes, as lines.
func changes(from, to map[string]any) []string {
	var lines []string
	was, is := map[string]string{}, map[string]string{}
	flatten("", from, was)
	flatten("", to, is)
	for _, path := range slices.Sorted(maps.Keys(was)) {
		if is[path] != was[path] {
			lines = append(lines, strings.TrimPrefix(path, ".")+": "+was[path]+" => "+is[path])
		}
	}
	for _, path := range slices.Sorted(maps.Keys(is)) {
		if _, ok := was[path]; !ok {
			lines = append(lines, strings.TrimPrefix(path, ".")+": => "+is[path])
		}
	}
	return lines
}

func flatten(path string, v any, to map[string]string) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			flatten(path+"."+key, value, to)
		}
	case []any:
		for i, value := range v {
			flatten(path+"["+strconv.Itoa(i)+"]", value, to)
		}
	default:
		data, _ := json.Marshal(v)
		to[path] = string(data)
	}
}
