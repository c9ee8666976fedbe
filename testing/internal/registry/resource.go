package registry

import (
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// FromResource returns a kind of which nothing is known but its discovery. Its objects are unstructured, and neither
// completed nor validated, but for their metadata. The group and version of the resource count before those of the
// list. Its status counts as a subresource: discovery lists subresources as resources of their own.
func FromResource(version schema.GroupVersion, resource metav1.APIResource) Type {
	if resource.Group != "" {
		version.Group = resource.Group
	}
	if resource.Version != "" {
		version.Version = resource.Version
	}
	kind := version.WithKind(resource.Kind)
	scope := Cluster
	if resource.Namespaced {
		scope = Namespaced
	}
	return Type{Kind: kind.GroupKind(), Resource: resource.Name, Scope: scope, Versions: []Version{{
		version.Version, unstructuredStrategy{kind: kind, scope: scope, hasStatus: true},
	}}}
}

// unstructuredStrategy is that of a kind without a schema.
type unstructuredStrategy struct {
	kind      schema.GroupVersionKind
	scope     Scope
	hasStatus bool
}

// New implements [Strategy].
func (s unstructuredStrategy) New() client.Object {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(s.kind)
	return u
}

// HasStatus implements [Strategy].
func (s unstructuredStrategy) HasStatus() bool { return s.hasStatus }

// PrepareForCreate implements [Strategy].
func (s unstructuredStrategy) PrepareForCreate(obj client.Object) {
	if s.hasStatus {
		delete(contents(obj), "status")
	}
	obj.SetGeneration(1)
}

// PrepareForUpdate implements [Strategy].
func (s unstructuredStrategy) PrepareForUpdate(obj, old client.Object, subresource string) {
	to, from := contents(obj), contents(old)
	if subresource != "" {
		status, ok := to["status"]
		maps.DeleteFunc(to, func(key string, _ any) bool { return s.isContent(key) || key == "status" })
		for key, value := range from {
			if s.isContent(key) {
				to[key] = value
			}
		}
		if ok {
			to["status"] = status
		}
		keepMetadata(obj, old)
		return
	}
	if s.hasStatus {
		delete(to, "status")
		if status, ok := from["status"]; ok {
			to["status"] = status
		}
	}
	generation := old.GetGeneration()
	if !s.sameContents(to, from) {
		generation++
	}
	obj.SetGeneration(generation)
}

// isContent reports whether a field is neither of the type nor metadata, nor the status if it is a subresource.
func (s unstructuredStrategy) isContent(key string) bool {
	return key != "apiVersion" && key != "kind" && key != "metadata" && (key != "status" || !s.hasStatus)
}

// sameContents reports whether all contents are the same.
func (s unstructuredStrategy) sameContents(a, b map[string]any) bool {
	for key, value := range a {
		if s.isContent(key) && !equality.Semantic.DeepEqual(value, b[key]) {
			return false
		}
	}
	for key, value := range b {
		if _, ok := a[key]; !ok && value != nil && s.isContent(key) {
			return false
		}
	}
	return true
}

// Validate implements [Strategy].
func (s unstructuredStrategy) Validate(obj client.Object) field.ErrorList {
	return validateMetadata(obj, s.scope, subdomainName)
}

// ValidateUpdate implements [Strategy].
func (s unstructuredStrategy) ValidateUpdate(obj, old client.Object, subresource string) field.ErrorList {
	return validateMetadataUpdate(obj, old, s.scope, subdomainName)
}

// Converter implements [Strategy]. Nothing says how to merge lists, so they are replaced as a whole.
func (s unstructuredStrategy) Converter() managedfields.TypeConverter { return deduced }

// contents are the fields of an unstructured object.
func contents(obj client.Object) map[string]any { return obj.(*unstructured.Unstructured).Object }
