package foreign

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	probeName = "espalier-fence-probe"
	// probeNamespace exists in every cluster.
	probeNamespace = metav1.NamespaceDefault
	// maxDepth is how deep samples are nested. There is no sample for a deeper schema.
	maxDepth = 64
)

// probeWith is an instance with content, and with metadata of its own.
func (p *proof) probeWith(content map[string]any) *unstructured.Unstructured {
	probe := &unstructured.Unstructured{Object: maps.Clone(content)}
	delete(probe.Object, "metadata")
	version := p.d.version()
	probe.SetGroupVersionKind(schema.GroupVersionKind{Group: p.d.Spec.Group, Version: version.Name, Kind: p.d.kind()})
	name := probeName
	// A name that is too long would prevent that the rules are evaluated.
	limit := rootSchema(version).Properties["metadata"].Properties["name"].MaxLength
	if limit != nil && *limit > 0 && *limit < int64(len(name)) {
		name = strings.TrimRight(name[:*limit], "-")
	}
	probe.SetName(name)
	if p.d.Spec.Scope == apiextensionsv1.NamespaceScoped {
		probe.SetNamespace(probeNamespace)
	}
	return probe
}

// sampleOf makes a value for a schema, as small as possible. It need not be valid: the API server evaluates the rules
// if all required fields exist, and if each value has the right type, is one of the enumerated values, and is not too
// long. Bounds and patterns do not matter.
func sampleOf(s *apiextensionsv1.JSONSchemaProps, depth int) any {
	var value any
	if s.Default != nil && json.Unmarshal(s.Default.Raw, &value) == nil {
		return value
	}
	for _, allowed := range s.Enum {
		if json.Unmarshal(allowed.Raw, &value) == nil && value != nil {
			return value
		}
	}
	if depth > maxDepth {
		return nil
	}
	switch {
	case s.Type == "string":
		return formats[s.Format]
	case s.Type == "integer", s.Type == "number", s.XIntOrString:
		return int64(0)
	case s.Type == "boolean":
		return false
	case s.Type == "array":
		return []any{}
	}
	return sampleObject(s, depth)
}

func sampleObject(s *apiextensionsv1.JSONSchemaProps, depth int) map[string]any {
	object := map[string]any{}
	if s.XEmbeddedResource {
		object["apiVersion"], object["kind"] = "v1", "ConfigMap"
		object["metadata"] = map[string]any{"name": probeName}
	}
	for _, field := range required(s, depth) {
		if _, done := object[field]; done {
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

// required are the fields that a schema requires. Of several alternatives the first one counts.
func required(s *apiextensionsv1.JSONSchemaProps, depth int) []string {
	fields := slices.Clone(s.Required)
	if depth > maxDepth {
		return fields
	}
	parts := slices.Concat(s.AllOf, s.AnyOf[:min(1, len(s.AnyOf))], s.OneOf[:min(1, len(s.OneOf))])
	for i := range parts {
		fields = append(fields, required(&parts[i], depth+1)...)
	}
	return fields
}

// formats are values for the formats that the API server checks. For it, a value of another format has the wrong type.
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
