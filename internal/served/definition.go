package served

import (
	"slices"

	"github.com/espalier-dev/espalier/internal/kinds"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// Definition is what a CustomResourceDefinition says about its type.
type Definition struct {
	schema.GroupKind
	Plural, Singular string
	Namespaced       bool
	// Versions are the served ones. The one that the API server prefers comes first.
	Versions []string
	// Established reports whether the API server serves the type.
	Established bool
}

// Resource returns where the type is served in the version that the API server prefers.
func (d *Definition) Resource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: d.Group, Version: d.Versions[0], Resource: d.Plural}
}

// DefinitionOf reads a CustomResourceDefinition. ok is false for other objects, and for one that does not say enough.
func DefinitionOf(object *unstructured.Unstructured) (d *Definition, ok bool) {
	if object.GroupVersionKind().GroupKind() != kinds.CustomResourceDefinition {
		return nil, false
	}
	text := func(path ...string) string {
		found, _, _ := unstructured.NestedString(object.Object, path...)
		return found
	}
	d = &Definition{
		GroupKind:  schema.GroupKind{Group: text("spec", "group"), Kind: text("spec", "names", "kind")},
		Plural:     text("spec", "names", "plural"),
		Singular:   text("spec", "names", "singular"),
		Namespaced: text("spec", "scope") == "Namespaced",
	}
	spec, _ := object.Object["spec"].(map[string]any)
	versions, _ := spec["versions"].([]any)
	for _, v := range versions {
		if v, ok := v.(map[string]any); ok && v["served"] == true {
			name, _ := v["name"].(string)
			d.Versions = append(d.Versions, name)
		}
	}
	slices.SortFunc(d.Versions, func(a, b string) int { return version.CompareKubeAwareVersionStrings(b, a) })
	// The API server serves what it accepted, which are not the new names if they conflict with those of another type.
	accepted := text("status", "acceptedNames", "kind") == d.Kind &&
		text("status", "acceptedNames", "plural") == d.Plural
	d.Established = accepted && object.GetDeletionTimestamp() == nil && isTrue(object, "Established")
	return d, d.Group != "" && d.Kind != "" && d.Plural != "" && len(d.Versions) > 0
}

// isTrue reports whether an object has a condition that is true.
func isTrue(object *unstructured.Unstructured, condition string) bool {
	status, _ := object.Object["status"].(map[string]any)
	conditions, _ := status["conditions"].([]any)
	return slices.ContainsFunc(conditions, func(c any) bool {
		found, _ := c.(map[string]any)
		return found["type"] == condition && found["status"] == "True"
	})
}
