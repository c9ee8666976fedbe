package manifest_test

import (
	"testing"

	"github.com/espalier-dev/espalier/internal/component/manifest"
	"github.com/espalier-dev/espalier/internal/component/plan"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What has changed from one request to the next is named by object and field, and no value is.
func TestFirstDifference(t *testing.T) {
	part := func(name string, fields m) client.Object { return object("v1 ConfigMap", name, fields) }
	spec := func(value any) client.Object { return part("a", m{"spec": value}) }
	secret := func(value string) client.Object {
		return object("v1 Secret", "s", m{"stringData": m{"key": value}})
	}
	once := func(value string) client.Object {
		return annotated(object("v1 Secret", "s", m{"stringData": m{"key": value}}), "reconcile-policy", "once")
	}
	for name, test := range map[string]struct {
		before, after []client.Object
		changed       []string
		key, path     string
	}{
		"nothing":                      {before: []client.Object{spec("x")}, after: []client.Object{spec("x")}},
		"a value":                      {[]client.Object{spec(m{"a": 1, "b": 1})}, []client.Object{spec(m{"a": 1, "b": 2})}, []string{"ConfigMap home/a"}, "ConfigMap home/a", ".spec.b"},
		"a field more":                 {[]client.Object{spec(m{"b": 1})}, []client.Object{spec(m{"a": 1, "b": 1})}, []string{"ConfigMap home/a"}, "ConfigMap home/a", ".spec.a"},
		"a field less":                 {[]client.Object{spec(m{"a": 1})}, []client.Object{spec(m{})}, []string{"ConfigMap home/a"}, "ConfigMap home/a", ".spec.a"},
		"the order of a list":          {[]client.Object{spec([]any{"a", "b"})}, []client.Object{spec([]any{"b", "a"})}, []string{"ConfigMap home/a"}, "ConfigMap home/a", ".spec[0]"},
		"the length of a list":         {[]client.Object{spec([]any{"a", "b"})}, []client.Object{spec([]any{"a"})}, []string{"ConfigMap home/a"}, "ConfigMap home/a", ".spec"},
		"another type":                 {[]client.Object{spec([]any{"a"})}, []client.Object{spec("a")}, []string{"ConfigMap home/a"}, "ConfigMap home/a", ".spec"},
		"an object where a text was":   {[]client.Object{spec("a")}, []client.Object{spec(m{})}, []string{"ConfigMap home/a"}, "ConfigMap home/a", ".spec"},
		"the order of objects":         {before: []client.Object{part("a", nil), part("b", nil)}, after: []client.Object{part("b", nil), part("a", nil)}},
		"an object more":               {[]client.Object{part("a", nil)}, []client.Object{part("0", nil), part("a", nil)}, []string{"ConfigMap home/0"}, "ConfigMap home/0", ""},
		"an object more and a value":   {[]client.Object{spec("x")}, []client.Object{part("0", nil), spec("y")}, []string{"ConfigMap home/0", "ConfigMap home/a"}, "ConfigMap home/a", ".spec"},
		"a value of a Secret":          {[]client.Object{secret("x")}, []client.Object{secret("y")}, []string{"Secret home/s"}, "Secret home/s", ".data.key"},
		"a value that is written once": {before: []client.Object{once("x")}, after: []client.Object{once("y")}},
	} {
		t.Run(name, func(t *testing.T) {
			var cache manifest.Cache
			before := prepareWith(t, options(), &cache, test.before...)
			snapshot := cache.Snapshot()
			after := prepareWith(t, options(), &cache, test.after...)
			changed := cache.ChangedSince(snapshot)
			var names []string
			for _, key := range changed {
				names = append(names, key.String())
			}
			if len(names) != len(test.changed) {
				t.Fatalf("the changed objects are %q, want %q", names, test.changed)
			}
			for i := range names {
				if names[i] != test.changed[i] {
					t.Errorf("the changed objects are %q, want %q", names, test.changed)
				}
			}
			key, path := manifest.FirstDifference(before, after, changed)
			if key != (plan.Key{}) && key.String() != test.key || path != test.path {
				t.Errorf("%s differs in %s, want %s in %s", key, path, test.key, test.path)
			}
		})
	}
}
