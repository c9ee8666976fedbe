package registry

import (
	"fmt"
	"slices"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// FromDefinition returns the kind that a definition defines, with those of its versions that are served. The error says
// what is wrong with the definition, as an API server would, with the path of the field. A kind of which no version is
// served has none.
//
// To compile a schema takes milliseconds. It is done once for all definitions with the same spec.
func FromDefinition(definition *apiextensionsv1.CustomResourceDefinition) (Type, error) {
	errs := validateDefinitionMetadata(definition)
	compiled := compiledDefinitions.get(&definition.Spec)
	errs = append(errs, compiled.errs...)
	if len(errs) > 0 {
		return Type{}, fmt.Errorf("CustomResourceDefinition %s: %w", definition.Name, errs.ToAggregate())
	}
	return compiled.defined, nil
}

// completeSpec returns a copy with defaults.
func completeSpec(spec *apiextensionsv1.CustomResourceDefinitionSpec) *apiextensionsv1.CustomResourceDefinitionSpec {
	definition := apiextensionsv1.CustomResourceDefinition{Spec: *spec.DeepCopy()}
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(&definition)
	return &definition.Spec
}

// compileDefinition compiles a spec with defaults.
func compileDefinition(spec *apiextensionsv1.CustomResourceDefinitionSpec) compiledDefinition {
	defined := Type{
		Kind:     schema.GroupKind{Group: spec.Group, Kind: spec.Names.Kind},
		Resource: spec.Names.Plural,
		Scope:    Cluster,
	}
	if spec.Scope == apiextensionsv1.NamespaceScoped {
		defined.Scope = Namespaced
	}
	path := field.NewPath("spec")
	errs := validateDefinitionSpec(spec, path)
	var served []*customResource
	for i := range spec.Versions {
		version := &spec.Versions[i]
		schemaPath := path.Child("versions").Index(i).Child("schema", "openAPIV3Schema")
		if sameSchemas(spec.Versions) {
			// An API server names the field of an internal version, in which the schema is there once.
			schemaPath = path.Child("validation", "openAPIV3Schema")
		}
		resource, schemaErrs := newCustomResource(defined, version, schemaPath)
		if i == 0 || !sameSchemas(spec.Versions) {
			errs = append(errs, schemaErrs...)
		}
		if version.Served {
			at := len(defined.Versions)
			if version.Storage {
				at = 0
			}
			defined.Versions = slices.Insert(defined.Versions, at, Version{version.Name, resource})
			served = append(served, resource)
		}
	}
	if len(errs) > 0 {
		return compiledDefinition{defined, errs}
	}
	// To make the merge schema takes a while, and most stores see no server-side apply.
	merge := sync.OnceValue(func() managedfields.TypeConverter { return newConverter(served) })
	for _, resource := range served {
		resource.merge = merge
	}
	return compiledDefinition{defined, errs}
}

// sameSchemas reports whether all versions have the same schema.
func sameSchemas(versions []apiextensionsv1.CustomResourceDefinitionVersion) bool {
	for _, version := range versions {
		if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil ||
			!equality.Semantic.DeepEqual(version.Schema, versions[0].Schema) {
			return false
		}
	}
	return true
}
