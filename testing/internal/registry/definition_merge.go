package registry

import (
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// newConverter returns the merge schema of the versions of a kind. An API server makes it of the OpenAPI document that
// it publishes for the definition. Only the part that says how to merge is made here: the package that builds the whole
// document would make each test binary twice as large.
func newConverter(versions []*customResource) managedfields.TypeConverter {
	models := map[string]*spec.Schema{objectMetaModel: objectMetaSchema()}
	for _, version := range versions {
		root, kind := version.schema.structural.ToKubeOpenAPI(), version.kind
		addTypeAndMetadata(root)
		root.AddExtension("x-kubernetes-group-version-kind", []any{
			map[string]any{"group": kind.Group, "version": kind.Version, "kind": kind.Kind},
		})
		addEmbedded(root)
		models[kind.String()] = root
	}
	converter, err := managedfields.NewTypeConverter(models, false)
	if err != nil {
		return deduced
	}
	return converter
}

// addEmbedded gives each embedded resource in a schema its type and metadata.
func addEmbedded(s *spec.Schema) {
	if s == nil {
		return
	}
	for name, property := range s.Properties {
		addEmbedded(&property)
		s.Properties[name] = property
	}
	if s.Items != nil {
		addEmbedded(s.Items.Schema)
	}
	if s.AdditionalProperties != nil {
		addEmbedded(s.AdditionalProperties.Schema)
	}
	if embedded, _ := s.Extensions.GetBool("x-kubernetes-embedded-resource"); embedded {
		addTypeAndMetadata(s)
	}
}

func addTypeAndMetadata(s *spec.Schema) {
	s.SetProperty("apiVersion", *spec.StringProperty())
	s.SetProperty("kind", *spec.StringProperty())
	s.SetProperty("metadata", *spec.RefSchema("#/components/schemas/" + objectMetaModel))
}

const objectMetaModel = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

// objectMetaSchema is how ObjectMeta is merged, see the Kubernetes API reference, ObjectMeta v1 meta.
func objectMetaSchema() *spec.Schema {
	object := func() *spec.Schema { return new(spec.Schema).Typed("object", "") }
	text := *spec.StringProperty()
	owner := object().
		SetProperty("apiVersion", text).SetProperty("kind", text).SetProperty("name", text).SetProperty("uid", text).
		SetProperty("controller", *spec.BooleanProperty()).
		SetProperty("blockOwnerDeletion", *spec.BooleanProperty())
	owner.AddExtension("x-kubernetes-map-type", "atomic")
	owners := spec.ArrayProperty(owner)
	owners.AddExtension("x-kubernetes-list-type", "map")
	owners.AddExtension("x-kubernetes-list-map-keys", []any{"uid"})
	finalizers := spec.ArrayProperty(spec.StringProperty())
	finalizers.AddExtension("x-kubernetes-list-type", "set")
	meta := object().
		SetProperty("annotations", *spec.MapProperty(spec.StringProperty())).
		SetProperty("labels", *spec.MapProperty(spec.StringProperty())).
		SetProperty("finalizers", *finalizers).
		SetProperty("ownerReferences", *owners).
		SetProperty("managedFields", *spec.ArrayProperty(object())).
		SetProperty("deletionGracePeriodSeconds", *spec.Int64Property()).
		SetProperty("generation", *spec.Int64Property())
	for _, name := range []string{
		"creationTimestamp", "deletionTimestamp", "generateName", "name", "namespace", "resourceVersion", "selfLink",
		"uid",
	} {
		meta.SetProperty(name, text)
	}
	return meta
}
