package registry

import (
	"fmt"
	"slices"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// FromDefinition returns the kind that a definition defines, with those of its versions that are served. The error
// names the path of a schema that is missing or not structural: no object can be completed with it. Nothing else of a
// definition is validated: the published package that does it makes each test binary 22 MB larger, since it imports the
// client of webhooks. A rule that does not compile refuses the objects that it is for. A kind of which no version is
// served has none.
//
// To compile a schema takes milliseconds. It is done once for all definitions with the same spec.
func FromDefinition(definition *apiextensionsv1.CustomResourceDefinition) (Type, error) {
	compiled := compiledDefinitions.get(&definition.Spec)
	if len(compiled.errs) > 0 {
		return Type{}, fmt.Errorf("CustomResourceDefinition %s: %w", definition.Name, compiled.errs.ToAggregate())
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
	var errs field.ErrorList
	var served []*customResource
	for i := range spec.Versions {
		version := &spec.Versions[i]
		path := field.NewPath("spec", "versions").Index(i).Child("schema", "openAPIV3Schema")
		resource, schemaErrs := newCustomResource(defined, version, path)
		errs = append(errs, schemaErrs...)
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
