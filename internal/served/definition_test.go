package served_test

import (
	"reflect"
	"testing"

	"github.com/espalier-dev/espalier/internal/served"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gears.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Gear, plural: gears, singular: gear}
  versions: [{name: v1beta1, served: true}, {name: v2, served: false}, {name: v1, served: true}, {name: v1alpha1, served: true}]
status:
  acceptedNames: {kind: Gear, plural: gears}
  conditions: [{type: NamesAccepted, status: "True"}, {type: Established, status: "True"}]
`

func TestDefinitionOf(t *testing.T) {
	for name, test := range map[string]struct {
		change      func(object map[string]any)
		established bool
		unknown     bool
	}{
		"established": {func(map[string]any) {}, true, false},
		"new":         {func(object map[string]any) { delete(object, "status") }, false, false},
		"going": {func(object map[string]any) {
			object["metadata"] = map[string]any{"name": "gears.example.com", "deletionTimestamp": "2026-01-01T00:00:00Z"}
		}, false, false},
		"names of another type": {func(object map[string]any) {
			object["status"].(map[string]any)["acceptedNames"] = map[string]any{"kind": "Gear", "plural": "others"}
		}, false, false},
		"without names":   {func(object map[string]any) { delete(object["spec"].(map[string]any), "names") }, false, true},
		"without a spec":  {func(object map[string]any) { delete(object, "spec") }, false, true},
		"another kind":    {func(object map[string]any) { object["kind"] = "Gear" }, false, true},
		"damaged content": {func(object map[string]any) { object["spec"] = []any{"x"} }, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(definition), &object.Object); err != nil {
				t.Fatal(err)
			}
			test.change(object.Object)
			got, ok := served.DefinitionOf(object)
			if ok == test.unknown {
				t.Fatalf("that the definition is known is %t, want %t", ok, !test.unknown)
			}
			want := &served.Definition{
				GroupKind: schema.GroupKind{Group: "example.com", Kind: "Gear"}, Plural: "gears", Singular: "gear",
				Namespaced: true, Versions: []string{"v1", "v1beta1", "v1alpha1"}, Established: test.established,
			}
			if ok && !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}
