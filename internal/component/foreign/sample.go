package foreign

import (
	"encoding/json"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// probeName is that of the instances that are created for trial only.
	probeName = "espalier-fence-probe"
	// maxDepth is how deep samples are nested. A schema that wants more has no sample.
	maxDepth = 64
)

// empty is an instance with nothing but a name.
func (p *proof) empty() *unstructured.Unstructured {
	probe := &unstructured.Unstructured{Object: map[string]any{}}
	version := p.d.version()
	probe.SetGroupVersionKind(schema.GroupVersionKind{Group: p.d.Spec.Group, Version: version.Name, Kind: p.d.kind()})
	probe.SetName(nameFor(version))
	if p.d.Spec.Scope == apiextensionsv1.NamespaceScoped {
		probe.SetNamespace(p.probeNamespace())
	}
	return probe
}

// nameFor shortens the name to what the schema allows: too long a one would keep the rules from being evaluated.
func nameFor(version *apiextensionsv1.CustomResourceDefinitionVersion) string {
	if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
		return probeName
	}
	name := version.Schema.OpenAPIV3Schema.Properties["metadata"].Properties["name"]
	if name.MaxLength != nil && *name.MaxLength > 0 && *name.MaxLength < int64(len(probeName)) {
		return strings.TrimRight(probeName[:*name.MaxLength], "-")
	}
	return probeName
}

// sample is an instance made from the schema. It need not be valid: the rules are evaluated if all that is required is there,
// of the right type, one of the values enumerated, and not too long. Bounds and patterns do not matter.
func (p *proof) sample() *unstructured.Unstructured {
	probe := p.empty()
	version := p.d.version()
	if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
		return probe
	}
	value, _ := sampleObject(version.Schema.OpenAPIV3Schema, 0).(map[string]any)
	for field, value := range value {
		if _, taken := probe.Object[field]; !taken {
			probe.Object[field] = value
		}
	}
	return probe
}

// sampleOf makes a value for a schema, as small as possible.
func sampleOf(s *apiextensionsv1.JSONSchemaProps, depth int) any {
	if s.Default != nil {
		if value, ok := decode(*s.Default); ok {
			return value
		}
	}
	for _, allowed := range s.Enum {
		if value, ok := decode(allowed); ok && value != nil {
			return value
		}
	}
	if depth > maxDepth {
		return nil
	}
	switch s.Type {
	case "string":
		return formats[s.Format]
	case "integer", "number":
		return int64(0)
	case "boolean":
		return false
	case "array":
		return []any{}
	}
	if s.XIntOrString {
		return int64(0)
	}
	return sampleObject(s, depth)
}

func decode(raw apiextensionsv1.JSON) (value any, ok bool) {
	err := json.Unmarshal(raw.Raw, &value)
	return value, err == nil
}

func sampleObject(s *apiextensionsv1.JSONSchemaProps, depth int) any {
	object := map[string]any{}
	if s.XEmbeddedResource {
		object["apiVersion"], object["kind"] = "v1", "ConfigMap"
		object["metadata"] = map[string]any{"name": probeName}
	}
	for _, field := range required(s, depth) {
		if _, done := object[field]; done || depth == 0 && isTypeOrMeta(field) {
			continue
		}
		if property, known := s.Properties[field]; known {
			object[field] = sampleOf(&property, depth+1)
		} else if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
			object[field] = sampleOf(s.AdditionalProperties.Schema, depth+1)
		} else {
			object[field] = map[string]any{}
		}
	}
	return object
}

func isTypeOrMeta(field string) bool {
	return field == "apiVersion" || field == "kind" || field == "metadata"
}

// required are the fields that a schema wants, those of the first of several alternatives among them.
func required(s *apiextensionsv1.JSONSchemaProps, depth int) []string {
	fields := append([]string(nil), s.Required...)
	if depth > maxDepth {
		return fields
	}
	for i := range s.AllOf {
		fields = append(fields, required(&s.AllOf[i], depth+1)...)
	}
	if len(s.AnyOf) > 0 {
		fields = append(fields, required(&s.AnyOf[0], depth+1)...)
	}
	if len(s.OneOf) > 0 {
		fields = append(fields, required(&s.OneOf[0], depth+1)...)
	}
	return fields
}

// formats are values for the formats that the API server checks: a value of another format counts as one of the wrong type.
var formats = map[string]string{
	"bsonobjectid": "507f1f77bcf86cd799439011",
	"byte":         "YQ==",
	"cidr":         "192.0.2.0/24",
	"creditcard":   "4111111111111111",
	"date":         "2000-01-01",
	"date-time":    "2000-01-01T00:00:00Z",
	"datetime":     "2000-01-01T00:00:00Z",
	"duration":     "1s",
	"email":        "probe@example.com",
	"hexcolor":     "#000000",
	"hostname":     "example.com",
	"ipv4":         "192.0.2.1",
	"ipv6":         "2001:db8::1",
	"isbn":         "0306406152",
	"isbn10":       "0306406152",
	"isbn13":       "9780306406157",
	"mac":          "00:00:5e:00:53:01",
	"rgbcolor":     "rgb(0,0,0)",
	"ssn":          "111-22-3333",
	"uri":          "https://example.com",
	"uuid":         "00000000-0000-4000-8000-000000000000",
	"uuid3":        "00000000-0000-3000-8000-000000000000",
	"uuid4":        "00000000-0000-4000-8000-000000000000",
	"uuid5":        "00000000-0000-5000-8000-000000000000",
}
