package edit

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// EnsureData makes a ConfigMap have values. A key that it has already gets the value, also if that was binary.
func EnsureData(config *corev1.ConfigMap, values map[string]string) error {
	switch _, empty := values[""]; {
	case config == nil:
		return missing("ConfigMap")
	case empty:
		return errNoKey
	}
	config.Data = merge(config.Data, values)
	config.BinaryData = without(config.BinaryData, slices.Collect(maps.Keys(values)))
	return nil
}

// RemoveData makes a ConfigMap have no values for some keys.
func RemoveData(config *corev1.ConfigMap, keys ...string) error {
	if config == nil {
		return missing("ConfigMap")
	}
	config.Data, config.BinaryData = without(config.Data, keys), without(config.BinaryData, keys)
	return nil
}

// MergeYAML merges a document into the one that is the value of a key of a ConfigMap. Maps are merged at any depth; a
// null removes what it is the value of; anything else takes the place of what is there. A key without a value is an
// empty document. Both documents must be maps in YAML or JSON. If the merge changes something, the document is written
// anew: without comments, and with sorted keys.
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
	return EnsureData(config, map[string]string{key: string(text)})
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

// EnsureSecretData makes a Secret have values. A key that it has already gets the value.
func EnsureSecretData(secret *corev1.Secret, values map[string][]byte) error {
	switch _, empty := values[""]; {
	case secret == nil:
		return missing("Secret")
	case empty:
		return errNoKey
	}
	copies := make(map[string][]byte, len(values))
	for key, value := range values {
		copies[key] = slices.Clone(value)
	}
	secret.Data = merge(secret.Data, copies)
	// The API server would prefer the value there.
	secret.StringData = without(secret.StringData, slices.Collect(maps.Keys(values)))
	return nil
}

// RemoveSecretData makes a Secret have no values for some keys.
func RemoveSecretData(secret *corev1.Secret, keys ...string) error {
	if secret == nil {
		return missing("Secret")
	}
	secret.Data, secret.StringData = without(secret.Data, keys), without(secret.StringData, keys)
	return nil
}
