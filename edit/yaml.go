package edit

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// MergeYAML merges a document into the one that is the value of a key of a ConfigMap. Maps are merged at any depth; a
// null removes what it is the value of; anything else takes the place of what is there. A key without a value is an
// empty document. Both documents must be maps in YAML or JSON. If the merge changes something, the document is written
// anew: without comments, and with sorted keys. A binary value of the key goes then.
func MergeYAML(config *corev1.ConfigMap, key, document string) error {
	switch {
	case config == nil:
		return missing("ConfigMap")
	case key == "":
		return errNoKey
	}
	old, err := decode(config.Data[key])
	if err != nil {
		return fmt.Errorf("the value of the key %q: %w", key, err)
	}
	patch, err := decode(document)
	if err != nil {
		return fmt.Errorf("the document to merge into the key %q: %w", key, err)
	}
	merged := mergeDocuments(old, patch)
	if reflect.DeepEqual(old, merged) && config.Data[key] != "" {
		return nil
	}
	text, err := yaml.Marshal(merged)
	if err != nil {
		return fmt.Errorf("write the key %q: %w", key, err)
	}
	data, binary := map[string]string{}, maps.Clone(config.BinaryData)
	maps.Copy(data, config.Data)
	data[key] = string(text)
	delete(binary, key) // A key is in one of the two maps only.
	config.Data, config.BinaryData = data, binary
	return nil
}

func decode(text string) (map[string]any, error) {
	document := map[string]any{}
	// A number is kept as it is written.
	useNumber := func(d *json.Decoder) *json.Decoder {
		d.UseNumber()
		return d
	}
	if err := yaml.UnmarshalStrict([]byte(text), &document, useNumber); err != nil {
		return nil, fmt.Errorf("it is no map in YAML: %w", err)
	}
	if document == nil {
		document = map[string]any{}
	}
	return document, nil
}

func mergeDocuments(old, patch map[string]any) map[string]any {
	merged := maps.Clone(old)
	if merged == nil {
		merged = map[string]any{}
	}
	for key, value := range patch {
		switch nested, isMap := value.(map[string]any); {
		case value == nil:
			delete(merged, key)
		case isMap:
			below, _ := merged[key].(map[string]any)
			merged[key] = mergeDocuments(below, nested)
		default:
			merged[key] = value
		}
	}
	return merged
}
