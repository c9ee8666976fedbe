package generate

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	servervalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
)

// judge completes and validates the resources of one version of a definition, by the packages of Kubernetes. A request
// to an API server would answer the same, but the drawing makes hundreds of tries. It never changes.
type judge struct {
	strategy interface {
		rest.RESTCreateStrategy
		rest.RESTUpdateStrategy
	}
	structural *structuralschema.Structural
}

// newJudge compiles a served version of a definition. The error says what an API server finds wrong with a definition
// that is created.
func newJudge(definition *apiextensionsv1.CustomResourceDefinition, version string) (*judge, error) {
	internal, err := convert(definition)
	if err != nil {
		return nil, err
	}
	if err := validation.ValidateCustomResourceDefinition(context.Background(), internal).ToAggregate(); err != nil {
		return nil, err
	}
	if !apiextensions.HasServedCRDVersion(internal, version) {
		return nil, fmt.Errorf("version %q is not served", version)
	}
	defined, err := apiextensions.GetSchemaForVersion(internal, version)
	if err != nil {
		return nil, err
	}
	subresources, err := apiextensions.GetSubresourcesForVersion(internal, version)
	if err != nil {
		return nil, err
	}
	if subresources == nil {
		subresources = &apiextensions.CustomResourceSubresources{}
	}
	structural, err := structuralschema.NewStructural(defined.OpenAPIV3Schema)
	if err != nil {
		return nil, err
	}
	if err := defaulting.PruneDefaults(structural); err != nil {
		return nil, err
	}
	validator, _, err := servervalidation.NewSchemaValidator(defined.OpenAPIV3Schema)
	if err != nil {
		return nil, err
	}
	kind := schema.GroupVersionKind{Group: internal.Spec.Group, Version: version, Kind: internal.Spec.Names.Kind}
	namespaced := internal.Spec.Scope == apiextensions.NamespaceScoped
	return &judge{structural: structural, strategy: customresource.NewStrategy(
		nil, namespaced, kind, validator, nil, structural, subresources.Status, subresources.Scale, nil,
	)}, nil
}

// convert returns a definition with defaults, as an API server has it before it is stored.
func convert(definition *apiextensionsv1.CustomResourceDefinition) (*apiextensions.CustomResourceDefinition, error) {
	complete := definition.DeepCopy()
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(complete)
	internal := &apiextensions.CustomResourceDefinition{}
	err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(
		complete, internal, nil)
	if err != nil {
		return nil, err
	}
	internal.Status.StoredVersions = nil
	for _, version := range internal.Spec.Versions {
		if version.Storage {
			internal.Status.StoredVersions = append(internal.Status.StoredVersions, version.Name)
		}
	}
	return internal, nil
}

// complete sets defaults and removes unknown fields, in place and in the order of an API server.
func (j *judge) complete(obj *unstructured.Unstructured) {
	defaulting.Default(obj.Object, j.structural)
	pruning.Prune(obj.Object, j.structural, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(obj.Object, j.structural)
	// Validation finds malformed metadata of an embedded resource, too.
	_ = objectmeta.Coerce(nil, obj.Object, j.structural, false, false)
}

// refusesNew returns what an API server finds wrong with the creation of a resource. A status that it drops has the
// defaults of its fields: it sets them when it reads, too.
func (j *judge) refusesNew(obj *unstructured.Unstructured) field.ErrorList {
	created := obj.DeepCopy()
	j.strategy.PrepareForCreate(context.Background(), created)
	j.complete(created)
	return sorted(j.strategy.Validate(context.Background(), created))
}

// updated returns what an API server stores if it gets obj while it has old.
func (j *judge) updated(obj, old *unstructured.Unstructured) *unstructured.Unstructured {
	updated, completed := obj.DeepCopy(), old.DeepCopy()
	j.complete(updated)
	j.complete(completed)
	updated.SetGeneration(old.GetGeneration())
	j.strategy.PrepareForUpdate(context.Background(), updated, completed)
	return updated
}

// refuses returns what an API server finds wrong with the update of a resource.
func (j *judge) refuses(obj, old *unstructured.Unstructured) field.ErrorList {
	stored := j.updated(old, old)
	sent := obj.DeepCopy()
	keepServerMetadata(sent, stored)
	return sorted(j.strategy.ValidateUpdate(context.Background(), j.updated(sent, stored), stored))
}

// sorted sorts errors, which are found in the order of maps.
func sorted(errs field.ErrorList) field.ErrorList {
	slices.SortFunc(errs, func(a, b *field.Error) int {
		return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Detail, b.Detail))
	})
	return errs
}

// keepServerMetadata gives two states of a resource the metadata that an update does not change.
func keepServerMetadata(obj, old *unstructured.Unstructured) {
	old.SetResourceVersion(cmp.Or(old.GetResourceVersion(), "1"))
	obj.SetResourceVersion(old.GetResourceVersion())
	obj.SetUID(old.GetUID())
	obj.SetCreationTimestamp(old.GetCreationTimestamp())
	obj.SetDeletionTimestamp(old.GetDeletionTimestamp())
	obj.SetDeletionGracePeriodSeconds(old.GetDeletionGracePeriodSeconds())
}
