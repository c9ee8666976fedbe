// Package definitions reads how resources are called from CustomResourceDefinitions.
package definitions

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Mapper returns a mapper that knows the types which objects define. Objects that are no CustomResourceDefinition, or
// one without names, define nothing. A nil interface is not allowed.
func Mapper(objects ...runtime.Object) meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, obj := range objects {
		add(mapper, obj)
	}
	return mapper
}

// is reports whether obj is a CustomResourceDefinition; content is what it has.
func is(obj runtime.Object, content map[string]any) bool {
	if kind := obj.GetObjectKind().GroupVersionKind(); kind.Kind != "" {
		return kind.Group == "apiextensions.k8s.io" && kind.Kind == "CustomResourceDefinition"
	}
	// A Go object may lack its kind. Nothing else has a plural where a definition has it.
	_, found, _ := unstructured.NestedString(content, "spec", "names", "plural")
	return found
}

// Defines returns the kind that an object defines, in one of its versions, and whether it defines any.
func Defines(obj runtime.Object) (schema.GroupVersionKind, bool) {
	kinds := add(meta.NewDefaultRESTMapper(nil), obj)
	if len(kinds) == 0 {
		return schema.GroupVersionKind{}, false
	}
	return kinds[0], true
}

// add returns the kind that obj defines, in each version.
func add(mapper *meta.DefaultRESTMapper, obj runtime.Object) (kinds []schema.GroupVersionKind) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil || !is(obj, content) {
		return nil
	}
	text := func(path ...string) string {
		found, _, _ := unstructured.NestedString(content, append([]string{"spec"}, path...)...)
		return found
	}
	group, kind, plural := text("group"), text("names", "kind"), text("names", "plural")
	if kind == "" || plural == "" {
		return nil
	}
	scope := meta.RESTScopeNamespace
	if text("scope") == "Cluster" {
		scope = meta.RESTScopeRoot
	}
	versions, _, _ := unstructured.NestedSlice(content, "spec", "versions")
	for _, version := range slices.Concat(versions, []any{map[string]any{"name": text("version")}}) {
		fields, _ := version.(map[string]any)
		name, _, _ := unstructured.NestedString(fields, "name")
		if name == "" {
			continue
		}
		gv := schema.GroupVersion{Group: group, Version: name}
		singular := gv.WithResource(text("names", "singular"))
		mapper.AddSpecific(gv.WithKind(kind), gv.WithResource(plural), singular, scope)
		kinds = append(kinds, gv.WithKind(kind))
	}
	return kinds
}
