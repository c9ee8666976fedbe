package registry

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// FromDefinition returns the kind that a definition defines, with those of its versions that are served. The error says
// what is wrong with the definition, as an API server would, with the path of the field.
func FromDefinition(definition *apiextensionsv1.CustomResourceDefinition) (Type, error) {
	spec := &definition.Spec
	defined := Type{
		Kind:     schema.GroupKind{Group: spec.Group, Kind: spec.Names.Kind},
		Resource: spec.Names.Plural,
		Scope:    Cluster,
	}
	if spec.Scope == apiextensionsv1.NamespaceScoped {
		defined.Scope = Namespaced
	}
	for i := range spec.Versions {
		version := &spec.Versions[i]
		if !version.Served {
			continue
		}
		served := Version{Name: version.Name, Strategy: newCustomResource(defined, version)}
		if version.Storage {
			defined.Versions = append([]Version{served}, defined.Versions...)
		} else {
			defined.Versions = append(defined.Versions, served)
		}
	}
	return defined, nil
}

// customResource is the [Strategy] of the custom resources of one version of a definition.
type customResource struct {
	kind      schema.GroupVersionKind
	hasStatus bool
}

func newCustomResource(defined Type, version *apiextensionsv1.CustomResourceDefinitionVersion) *customResource {
	return &customResource{
		kind:      defined.Kind.WithVersion(version.Name),
		hasStatus: version.Subresources != nil && version.Subresources.Status != nil,
	}
}

// New implements [Strategy].
func (c *customResource) New() client.Object {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(c.kind)
	return obj
}

// HasStatus implements [Strategy].
func (c *customResource) HasStatus() bool { return c.hasStatus }

// PrepareForCreate implements [Strategy].
func (c *customResource) PrepareForCreate(obj client.Object) {
	if c.hasStatus {
		delete(content(obj), "status")
	}
	obj.SetGeneration(1)
}

// PrepareForUpdate implements [Strategy].
func (c *customResource) PrepareForUpdate(obj, old client.Object, subresource string) {
	next, previous := content(obj), content(old)
	switch {
	case subresource == "status":
		status, ok := next["status"]
		clear(next)
		for key, value := range previous {
			next[key] = value
		}
		replace(next, "status", status, ok)
	case c.hasStatus:
		status, ok := previous["status"]
		replace(next, "status", status, ok)
	}
	if subresource == "" && !sameOutsideMetadata(next, previous) {
		obj.SetGeneration(old.GetGeneration() + 1)
	} else {
		obj.SetGeneration(old.GetGeneration())
	}
}

// Validate implements [Strategy].
func (c *customResource) Validate(client.Object) field.ErrorList { return nil }

// ValidateUpdate implements [Strategy].
func (c *customResource) ValidateUpdate(_, _ client.Object, _ string) field.ErrorList { return nil }

// Converter implements [Strategy].
func (c *customResource) Converter() managedfields.TypeConverter {
	return managedfields.NewDeducedTypeConverter()
}

func content(obj client.Object) map[string]any {
	return obj.(*unstructured.Unstructured).Object
}

func replace(object map[string]any, key string, value any, ok bool) {
	if ok {
		object[key] = value
	} else {
		delete(object, key)
	}
}

// sameOutsideMetadata reports whether two objects differ in their metadata at most.
func sameOutsideMetadata(a, b map[string]any) bool {
	for key, value := range a {
		if other, ok := b[key]; key != "metadata" && (!ok || !equality.Semantic.DeepEqual(value, other)) {
			return false
		}
	}
	for key := range b {
		if _, ok := a[key]; key != "metadata" && !ok {
			return false
		}
	}
	return true
}
