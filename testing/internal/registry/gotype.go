package registry

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// FromGoType returns a kind of the scheme that is neither built in nor defined, with all versions of it that the scheme
// has. It has a status subresource if the Go type has a field Status.
func FromGoType(kind schema.GroupVersionKind, scheme *runtime.Scheme) (Type, bool) {
	t := Type{Kind: kind.GroupKind(), Resource: plural(kind)}
	for _, version := range scheme.PrioritizedVersionsForGroup(kind.Group) {
		obj, err := scheme.New(version.WithKind(kind.Kind))
		if err != nil {
			continue
		}
		switch obj := obj.(type) {
		case runtime.Unstructured:
			t.Versions = append(t.Versions, unstructuredVersion(version.WithKind(kind.Kind)))
		case client.Object:
			if l, ok := layoutOf(obj, true); ok {
				t.Versions = append(t.Versions, Version{Name: version.Version, New: l.empty, HasStatus: l.hasStatus})
			}
		}
	}
	return t, len(t.Versions) > 0
}

// plural is the usual name of the resource of a kind.
func plural(kind schema.GroupVersionKind) string {
	resource, _ := meta.UnsafeGuessKindToResource(kind)
	return resource.Resource
}

// FromResource returns a kind of which nothing is known but its discovery. Its objects are unstructured. The group and
// version of the resource count before those of the list. Its status counts as a subresource: discovery lists
// subresources as resources of their own.
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
	return Type{
		Kind: kind.GroupKind(), Resource: resource.Name, Scope: scope, Versions: []Version{unstructuredVersion(kind)},
	}
}

// unstructuredVersion returns a version of which nothing is known but that its objects may have a status.
func unstructuredVersion(kind schema.GroupVersionKind) Version {
	return Version{Name: kind.Version, HasStatus: true, New: func() client.Object {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(kind)
		return u
	}}
}
