package registry

import (
	"slices"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	applyconfiguration "k8s.io/apiextensions-apiserver/pkg/client/applyconfiguration"
	"k8s.io/apimachinery/pkg/api/equality"
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

// Validate implements [Strategy].
func (definitionStrategy) Validate(obj client.Object) field.ErrorList {
	definition := obj.(*apiextensionsv1.CustomResourceDefinition)
	errs := validateDefinitionMetadata(definition)
	errs = append(errs, compiledDefinitions.get(&definition.Spec).errs...)
	return append(errs, validateStoredVersions(definition)...)
}

// ValidateUpdate implements [Strategy].
func (definitionStrategy) ValidateUpdate(obj, old client.Object, subresource string) field.ErrorList {
	definition := obj.(*apiextensionsv1.CustomResourceDefinition)
	previous := old.(*apiextensionsv1.CustomResourceDefinition)
	errs := validateMetadataUpdate(obj, old, Cluster, subdomainName)
	if subresource != "" {
		return errs
	}
	errs = append(errs, compiledDefinitions.get(&definition.Spec).errs...)
	errs = append(errs, validateDefinitionUpdate(&definition.Spec, &previous.Spec)...)
	return append(errs, validateStoredVersions(definition)...)
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
