package registry

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The rules of this file are from the Kubernetes API reference, JSONSchemaProps v1 apiextensions.k8s.io, and from
// "Specifying a structural schema" in the documentation of custom resources.

// rootFields are what the schema of an object with a status subresource may have: the schema of the status is that of
// the property alone.
var rootFields = []string{
	"Description", "Type", "Format", "Title", "Maximum", "ExclusiveMaximum", "Minimum", "ExclusiveMinimum", "MaxLength",
	"MinLength", "Pattern", "MaxItems", "MinItems", "UniqueItems", "MultipleOf", "Required", "Items", "Properties",
	"ExternalDocs", "Example", "XPreserveUnknownFields", "XValidations",
}

// validateSchema returns what is wrong with a schema, apart from its structure.
func validateSchema(s *apiextensions.JSONSchemaProps, hasStatus bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if hasStatus {
		if s.Type != "object" {
			errs = append(errs, field.Invalid(path.Child("type"), s.Type,
				`only "object" is allowed as the type at the root of the schema if the status subresource is enabled`))
		}
		set := reflect.ValueOf(*s)
		for i := range set.NumField() {
			if !set.Field(i).IsZero() && !slices.Contains(rootFields, set.Type().Field(i).Name) {
				errs = append(errs, field.Invalid(path, "", fmt.Sprintf("only %v fields are allowed at the root of "+
					"the schema if the status subresource is enabled", rootFields)))
				break
			}
		}
	}
	if s.Nullable {
		errs = append(errs, field.Forbidden(path.Child("nullable"), "nullable cannot be true at the root"))
	}
	for _, name := range []string{"apiVersion", "kind", "metadata"} {
		property := s.Properties[name]
		errs = append(errs, forbidDefaults(&property, path.Child("properties").Key(name), name)...)
	}
	return append(errs, validateSchemaNode(s, path)...)
}

// forbidDefaults refuses defaults of a field of the root and of the fields in it.
func forbidDefaults(s *apiextensions.JSONSchemaProps, path *field.Path, root string) field.ErrorList {
	var errs field.ErrorList
	if s.Default != nil {
		errs = append(errs, field.Forbidden(path.Child("default"), "must not be set in top-level "+root))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		property := s.Properties[name]
		errs = append(errs, forbidDefaults(&property, path.Child("properties").Key(name), root)...)
	}
	return errs
}

// validateSchemaNode returns what is wrong with a schema and those inside it.
func validateSchemaNode(s *apiextensions.JSONSchemaProps, path *field.Path) field.ErrorList {
	if s == nil {
		return nil
	}
	errs := validateKeywords(s, path)
	errs = append(errs, validateMapsAndLists(s, path)...)
	errs = append(errs, validateRuleFields(s.XValidations, path.Child("x-kubernetes-validations"))...)
	if s.AdditionalProperties != nil {
		errs = append(errs, validateSchemaNode(s.AdditionalProperties.Schema, path.Child("additionalProperties"))...)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		property := s.Properties[name]
		errs = append(errs, validateSchemaNode(&property, path.Child("properties").Key(name))...)
	}
	if s.Items != nil {
		errs = append(errs, validateSchemaNode(s.Items.Schema, path.Child("items"))...)
	}
	errs = append(errs, validateSchemaNode(s.Not, path.Child("not"))...)
	for _, junctor := range []struct {
		name    string
		schemas []apiextensions.JSONSchemaProps
	}{{"allOf", s.AllOf}, {"oneOf", s.OneOf}, {"anyOf", s.AnyOf}} {
		for i := range junctor.schemas {
			errs = append(errs, validateSchemaNode(&junctor.schemas[i], path.Child(junctor.name).Index(i))...)
		}
	}
	return errs
}

var schemaTypes = []string{"array", "boolean", "integer", "number", "object", "string"}

// validateKeywords refuses the keywords of JSON schema that definitions do not support.
func validateKeywords(s *apiextensions.JSONSchemaProps, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s.Type != "" && !slices.Contains(schemaTypes, s.Type) {
		errs = append(errs, field.NotSupported(path.Child("type"), s.Type, schemaTypes))
	}
	for _, keyword := range []struct {
		name string
		used bool
	}{
		{"id", s.ID != ""},
		{"additionalItems", s.AdditionalItems != nil},
		{"patternProperties", len(s.PatternProperties) > 0},
		{"definitions", len(s.Definitions) > 0},
		{"dependencies", s.Dependencies != nil},
		{"$ref", s.Ref != nil},
	} {
		if keyword.used {
			errs = append(errs, field.Forbidden(path.Child(keyword.name), keyword.name+" is not supported"))
		}
	}
	if s.Items != nil && len(s.Items.JSONSchemas) > 0 {
		errs = append(errs, field.Forbidden(path.Child("items"), "items must be a schema object and not an array"))
	}
	if s.UniqueItems {
		errs = append(errs, field.Forbidden(path.Child("uniqueItems"),
			"uniqueItems cannot be set to true since the runtime complexity becomes quadratic"))
	}
	additional := s.AdditionalProperties
	if additional != nil && len(s.Properties) > 0 && (!additional.Allows || additional.Schema != nil) {
		errs = append(errs, field.Forbidden(
			path.Child("additionalProperties"), "additionalProperties and properties are mutual exclusive"))
	}
	if s.XPreserveUnknownFields != nil && !*s.XPreserveUnknownFields {
		errs = append(errs, field.Invalid(
			path.Child("x-kubernetes-preserve-unknown-fields"), false, "must be true or undefined"))
	}
	return errs
}

// validateMapsAndLists returns what is wrong with how a map or a list is to be merged.
func validateMapsAndLists(s *apiextensions.JSONSchemaProps, path *field.Path) field.ErrorList {
	mapType := path.Child("x-kubernetes-map-type")
	errs := validateMergeType(s.Type, "object", s.XMapType, []string{"atomic", "granular"}, path, mapType)
	listType := path.Child("x-kubernetes-list-type")
	errs = append(errs, validateMergeType(
		s.Type, "array", s.XListType, []string{"atomic", "set", "map"}, path, listType)...)
	kind := ""
	if s.XListType != nil {
		kind = *s.XListType
	}
	if kind != "map" && len(s.XListMapKeys) > 0 {
		const detail = "must be map if x-kubernetes-list-map-keys is non-empty"
		if kind == "" {
			errs = append(errs, field.Required(listType, detail))
		} else {
			errs = append(errs, field.Invalid(listType, kind, detail))
		}
	}
	if kind == "map" && s.Items == nil {
		errs = append(errs, field.Required(
			path.Child("items"), "must have a schema if x-kubernetes-list-type is map"))
	}
	if kind == "map" && len(s.XListMapKeys) == 0 {
		errs = append(errs, field.Required(
			path.Child("x-kubernetes-list-map-keys"), "must not be empty if x-kubernetes-list-type is map"))
	}
	if kind != "map" && kind != "set" || s.Items == nil || s.Items.Schema == nil {
		return errs
	}
	items := path.Child("items")
	if s.Items.Schema.Nullable {
		errs = append(errs, field.Forbidden(
			items.Child("nullable"), "cannot be nullable when x-kubernetes-list-type is "+kind))
	}
	if kind == "set" {
		return append(errs, validateSetItems(s.Items.Schema, items)...)
	}
	return append(errs, validateMapItems(s, path)...)
}

// validateMergeType requires a known value, and the type that it is about.
func validateMergeType(
	got, want string, value *string, known []string, schema, path *field.Path,
) field.ErrorList {
	if value == nil {
		return nil
	}
	var errs field.ErrorList
	if got != want {
		_, keyword, _ := strings.Cut(path.String(), "x-kubernetes-")
		detail := "must be " + want + " if x-kubernetes-" + keyword + " is specified"
		if got == "" {
			errs = append(errs, field.Required(schema.Child("type"), detail))
		} else {
			errs = append(errs, field.Invalid(schema.Child("type"), got, detail))
		}
	}
	if !slices.Contains(known, *value) {
		errs = append(errs, field.NotSupported(path, *value, known))
	}
	return errs
}

// validateSetItems requires items that are replaced as a whole.
func validateSetItems(items *apiextensions.JSONSchemaProps, path *field.Path) field.ErrorList {
	const detail = "must be atomic as item of a list with x-kubernetes-list-type=set"
	switch {
	case items.Type == "array" && items.XListType != nil && *items.XListType != "atomic":
		return field.ErrorList{field.Invalid(path.Child("x-kubernetes-list-type"), items.XListType, detail)}
	case items.Type == "object" && (items.XMapType == nil || *items.XMapType != "atomic"):
		return field.ErrorList{field.Invalid(path.Child("x-kubernetes-map-type"), items.XMapType, detail)}
	}
	return nil
}

// validateMapItems requires that each item of a list has its keys.
func validateMapItems(s *apiextensions.JSONSchemaProps, path *field.Path) field.ErrorList {
	items := s.Items.Schema
	if items.Type != "object" {
		return field.ErrorList{field.Invalid(path.Child("items", "type"), items.Type,
			"must be object if parent array's x-kubernetes-list-type is map")}
	}
	var errs field.ErrorList
	for i, key := range s.XListMapKeys {
		keys := path.Child("x-kubernetes-list-map-keys")
		if slices.Contains(s.XListMapKeys[:i], key) {
			errs = append(errs, field.Invalid(keys, s.XListMapKeys, "must not contain duplicate entries"))
		}
		property, ok := items.Properties[key]
		if !ok {
			errs = append(errs, field.Invalid(keys, s.XListMapKeys, "entries must all be names of item properties"))
			continue
		}
		path := path.Child("items", "properties").Key(key)
		if property.Type == "array" || property.Type == "object" {
			errs = append(errs, field.Invalid(path.Child("type"), items.Type,
				"must be a scalar type if parent array's x-kubernetes-list-type is map"))
		}
		if property.Default == nil && !slices.Contains(items.Required, key) {
			errs = append(errs, field.Required(path.Child("default"), "this property is in "+
				"x-kubernetes-list-map-keys, so it must have a default or be a required property"))
		}
		if property.Nullable {
			errs = append(errs, field.Forbidden(path.Child("nullable"),
				"this property is in x-kubernetes-list-map-keys, so it cannot be nullable"))
		}
	}
	return errs
}

// validateStructural returns what is wrong with the structure and the defaults.
func validateStructural(s *structuralschema.Structural, path *field.Path) field.ErrorList {
	if errs := structuralschema.ValidateStructural(path, s); len(errs) > 0 {
		return errs
	}
	errs, err := defaulting.ValidateDefaults(context.Background(), path, s, true, true)
	if err != nil {
		errs = append(errs, field.Invalid(path, "", err.Error()))
	}
	return errs
}
