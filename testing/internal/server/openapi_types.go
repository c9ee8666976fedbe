package server

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	generatedopenapi "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/util"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// typeDefinitions returns the OpenAPI schemas of the published types and of all that they consist of. Those of the
// built-in kinds are not published as Go code. They are derived from the types: names, types, descriptions, and how
// lists are patched. Which fields are required, defaults and formats of texts are not in the types.
func typeDefinitions(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	d := definer{ref, generatedopenapi.GetOpenAPIDefinitions(ref)}
	for _, t := range published().AllKnownTypes() {
		d.define(t)
	}
	return d.all
}

// definer derives schemas from Go types.
type definer struct {
	ref common.ReferenceCallback
	all map[string]common.OpenAPIDefinition
}

// define takes in a struct with all that it consists of, and returns its name.
func (d definer) define(t reflect.Type) string {
	value := reflect.New(t).Interface()
	name := util.GetCanonicalTypeName(value)
	if _, ok := d.all[name]; ok {
		return name
	}
	schema := spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}}}
	if odd, ok := value.(interface {
		OpenAPISchemaType() []string
		OpenAPISchemaFormat() string
	}); ok {
		schema.Type, schema.Format = odd.OpenAPISchemaType(), odd.OpenAPISchemaFormat()
		d.all[name] = common.OpenAPIDefinition{Schema: schema}
		return name
	}
	d.all[name] = common.OpenAPIDefinition{} // A type may have itself in it.
	schema.Properties = map[string]spec.Schema{}
	needed := map[string]bool{}
	d.fields(t, schema.Properties, needed)
	schema.Description = documentation(value)[""]
	d.all[name] = common.OpenAPIDefinition{Schema: schema, Dependencies: slices.Sorted(maps.Keys(needed))}
	return name
}

// fields adds those of a struct, and the names of the types that they need.
func (d definer) fields(t reflect.Type, into map[string]spec.Schema, needed map[string]bool) {
	docs := documentation(reflect.New(t).Interface())
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" || !field.IsExported() {
			continue
		}
		if name == "" && (field.Anonymous || strings.Contains(options, "inline")) {
			d.fields(indirect(field.Type), into, needed)
			continue
		}
		schema := d.schema(field.Type, needed)
		schema.Description = docs[name]
		for tag, extension := range map[string]string{
			"patchStrategy": "x-kubernetes-patch-strategy", "patchMergeKey": "x-kubernetes-patch-merge-key",
		} {
			if value := field.Tag.Get(tag); value != "" {
				schema.AddExtension(extension, value)
			}
		}
		into[name] = schema
	}
}

// schema returns that of the values of a type.
func (d definer) schema(t reflect.Type, needed map[string]bool) spec.Schema {
	t = indirect(t)
	switch t.Kind() {
	case reflect.Struct:
		name := d.define(t)
		needed[name] = true
		return spec.Schema{SchemaProps: spec.SchemaProps{Ref: d.ref(name)}}
	case reflect.Map:
		return *spec.MapProperty(new(d.schema(t.Elem(), needed)))
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return simple("string", "byte")
		}
		return *spec.ArrayProperty(new(d.schema(t.Elem(), needed)))
	case reflect.Bool:
		return simple("boolean", "")
	case reflect.Float32, reflect.Float64:
		return simple("number", "double")
	case reflect.Int, reflect.Int64, reflect.Uint, reflect.Uint64:
		return simple("integer", "int64")
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return simple("integer", "int32")
	case reflect.String:
		return simple("string", "")
	}
	return simple("object", "")
}

func simple(kind, format string) spec.Schema {
	return spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{kind}, Format: format}}
}

func indirect(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// documentation returns what the published types say about themselves, and about their fields by names.
func documentation(value any) map[string]string {
	if documented, ok := value.(interface{ SwaggerDoc() map[string]string }); ok {
		return documented.SwaggerDoc()
	}
	return nil
}
