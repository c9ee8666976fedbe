package registry

import (
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// customResource is the [Strategy] of the custom resources of one version of a definition.
type customResource struct {
	unstructuredStrategy
	schema *objectSchema
	// merge returns the merge schema of all served versions.
	merge func() managedfields.TypeConverter
}

// newCustomResource compiles a version. The path is that of its schema.
func newCustomResource(
	defined Type, version *apiextensionsv1.CustomResourceDefinitionVersion, path *field.Path,
) (*customResource, field.ErrorList) {
	c := &customResource{unstructuredStrategy: unstructuredStrategy{
		kind:      defined.Kind.WithVersion(version.Name),
		scope:     defined.Scope,
		hasStatus: version.Subresources != nil && version.Subresources.Status != nil,
	}}
	if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
		return nil, field.ErrorList{field.Required(path, "")}
	}
	var internal apiextensions.JSONSchemaProps
	err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
		version.Schema.OpenAPIV3Schema, &internal, nil)
	if err != nil {
		return nil, field.ErrorList{field.Invalid(path, "", err.Error())}
	}
	var errs field.ErrorList
	if c.schema, errs = newObjectSchema(&internal, path); len(errs) > 0 {
		return nil, errs
	}
	return c, nil
}

// PrepareForCreate implements [Strategy]. An API server applies defaults when it reads, too: so a status that was
// dropped has those of its fields.
func (c *customResource) PrepareForCreate(obj client.Object) {
	c.unstructuredStrategy.PrepareForCreate(obj)
	c.schema.complete(contents(obj))
}

// PrepareForUpdate implements [Strategy]. The old object is completed, too, as an API server does when it reads: what
// lacks a default that was added to the definition later is not a change.
func (c *customResource) PrepareForUpdate(obj, old client.Object, subresource string) {
	c.schema.complete(contents(obj))
	completed := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(contents(old))}
	c.schema.complete(completed.Object)
	c.unstructuredStrategy.PrepareForUpdate(obj, completed, subresource)
}

// Validate implements [Strategy].
func (c *customResource) Validate(obj client.Object) field.ErrorList {
	if errs := c.validateType(obj); len(errs) > 0 {
		return errs
	}
	errs := validateMetadata(obj, c.scope, subdomainName)
	return append(errs, c.schema.validate(contents(obj))...)
}

// ValidateUpdate implements [Strategy].
func (c *customResource) ValidateUpdate(obj, old client.Object, subresource string) field.ErrorList {
	if errs := c.validateType(obj); len(errs) > 0 {
		return errs
	}
	errs := validateMetadataUpdate(obj, old, c.scope, subdomainName)
	return append(errs, c.schema.validateUpdate(contents(obj), contents(old), subresource)...)
}

func (c *customResource) validateType(obj client.Object) field.ErrorList {
	var errs field.ErrorList
	kind, version := contents(obj)["kind"], contents(obj)["apiVersion"]
	if kind != c.kind.Kind {
		errs = append(errs, field.Invalid(field.NewPath("kind"), kind, "must be "+c.kind.Kind))
	}
	if want := c.kind.GroupVersion().String(); version != want {
		errs = append(errs, field.Invalid(field.NewPath("apiVersion"), version, "must be "+want))
	}
	return errs
}

// Converter implements [Strategy].
func (c *customResource) Converter() managedfields.TypeConverter { return c.merge() }
