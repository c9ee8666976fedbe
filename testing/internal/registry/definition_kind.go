package registry

import (
	"slices"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	applyconfiguration "k8s.io/apiextensions-apiserver/pkg/client/applyconfiguration"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// customResourceDefinitions returns the kind of definitions.
func customResourceDefinitions() Type {
	version := apiextensionsv1.SchemeGroupVersion
	return Type{
		Kind:     version.WithKind("CustomResourceDefinition").GroupKind(),
		Resource: "customresourcedefinitions",
		Scope:    Cluster,
		Versions: []Version{{version.Version, definitionStrategy{}}},
	}
}

// definitionStrategy is the [Strategy] of CustomResourceDefinition.
type definitionStrategy struct{}

// New implements [Strategy].
func (definitionStrategy) New() client.Object { return &apiextensionsv1.CustomResourceDefinition{} }

// HasStatus implements [Strategy].
func (definitionStrategy) HasStatus() bool { return true }

// PrepareForCreate implements [Strategy]. The names are accepted later, by [AcceptNames].
func (definitionStrategy) PrepareForCreate(obj client.Object) {
	definition := obj.(*apiextensionsv1.CustomResourceDefinition)
	definition.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(definition)
	definition.Generation = 1
	addStoredVersion(definition)
}

// PrepareForUpdate implements [Strategy].
func (definitionStrategy) PrepareForUpdate(obj, old client.Object, subresource string) {
	definition := obj.(*apiextensionsv1.CustomResourceDefinition)
	previous := old.(*apiextensionsv1.CustomResourceDefinition)
	if subresource != "" {
		definition.Spec = *previous.Spec.DeepCopy()
		keepMetadata(obj, old)
		return
	}
	definition.Status = *previous.Status.DeepCopy()
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(definition)
	definition.Generation = previous.Generation
	if !equality.Semantic.DeepEqual(&definition.Spec, completeSpec(&previous.Spec)) {
		definition.Generation++
	}
	addStoredVersion(definition)
}

// addStoredVersion notes that objects may be stored in the storage version.
func addStoredVersion(definition *apiextensionsv1.CustomResourceDefinition) {
	status := &definition.Status
	for _, version := range definition.Spec.Versions {
		if version.Storage && !slices.Contains(status.StoredVersions, version.Name) {
			status.StoredVersions = append(status.StoredVersions, version.Name)
		}
	}
}

// Validate implements [Strategy]. Of the contents only the schemas are validated, see [FromDefinition].
func (definitionStrategy) Validate(obj client.Object) field.ErrorList {
	errs := validateMetadata(obj, Cluster, subdomainName)
	return append(errs, compiledDefinitions.get(&obj.(*apiextensionsv1.CustomResourceDefinition).Spec).errs...)
}

// ValidateUpdate implements [Strategy]. What says which objects a definition has does not change: those that are stored
// would belong to no definition.
func (definitionStrategy) ValidateUpdate(obj, old client.Object, subresource string) field.ErrorList {
	errs := validateMetadataUpdate(obj, old, Cluster, subdomainName)
	if subresource != "" {
		return errs
	}
	spec := &obj.(*apiextensionsv1.CustomResourceDefinition).Spec
	previous := &old.(*apiextensionsv1.CustomResourceDefinition).Spec
	errs = append(errs, compiledDefinitions.get(spec).errs...)
	path := field.NewPath("spec")
	for _, immutable := range []struct {
		path     *field.Path
		now, was any
	}{
		{path.Child("scope"), spec.Scope, previous.Scope},
		{path.Child("names", "kind"), spec.Names.Kind, previous.Names.Kind},
		{path.Child("group"), spec.Group, previous.Group},
		{path.Child("names", "plural"), spec.Names.Plural, previous.Names.Plural},
	} {
		errs = append(errs, validation.ValidateImmutableField(immutable.now, immutable.was, immutable.path)...)
	}
	return errs
}

// Converter implements [Strategy].
func (definitionStrategy) Converter() managedfields.TypeConverter { return publishedDefinition() }

var publishedDefinition = sync.OnceValue(func() managedfields.TypeConverter {
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return deduced
	}
	return applyconfiguration.NewTypeConverter(scheme)
})
