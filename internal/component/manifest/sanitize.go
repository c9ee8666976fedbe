package manifest

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/kinds"
	"github.com/espalier-dev/espalier/internal/managedfields"

	validate "k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// identity is what an object says it is.
type identity struct {
	kind            schema.GroupVersionKind
	namespace, name string
	annotations     map[string]string
}

// sanitize checks what all objects have, and removes what is not to be written.
func sanitize(content map[string]any, prefix string) (identity, []error) {
	var is identity
	kind, err := readKind(content)
	is.kind = kind
	dropMaintained(content, kind.GroupKind())
	errs := []error{err, is.readMetadata(content, prefix)}
	if kinds.IsCreateOnly(kind.GroupKind()) {
		errs = append(errs, errors.New("the API server keeps no objects of its kind, "+
			"so it cannot be part of a component"))
	}
	delete(content, "status")
	if kind.GroupKind() == kinds.Secret {
		errs = append(errs, mergeSecret(content))
	}
	return is, errs
}

func readKind(content map[string]any) (schema.GroupVersionKind, error) {
	kind, kindOK := content["kind"].(string)
	apiVersion, versionOK := content["apiVersion"].(string)
	var errs []error
	if kind == "" {
		errs = append(errs, lacking("kind", content["kind"], kindOK))
	}
	version, err := schema.ParseGroupVersion(apiVersion)
	switch {
	case apiVersion == "":
		errs = append(errs, lacking("apiVersion", content["apiVersion"], versionOK))
	case err != nil || version.Version == "":
		errs = append(errs, fmt.Errorf("its apiVersion %q is not of the form group/version", apiVersion))
	}
	return version.WithKind(kind), errors.Join(errs...)
}

func lacking(field string, value any, isText bool) error {
	if value != nil && !isText {
		return fmt.Errorf("its %s is not a string", field)
	}
	return fmt.Errorf("it has no %s", field)
}

// readMetadata checks the metadata of content, and removes what only the API server and the component set.
func (is *identity) readMetadata(content map[string]any, prefix string) error {
	raw, ok := content["metadata"].(map[string]any)
	if !ok {
		if content["metadata"] == nil {
			return errors.New("it has no name")
		}
		return errors.New("its metadata is not an object")
	}
	for _, field := range managedfields.ServerMetadata {
		delete(raw, field)
	}
	var errs []error
	text := func(field string) string {
		value, ok := raw[field].(string)
		if !ok && raw[field] != nil {
			errs = append(errs, fmt.Errorf("its %s is not a string", field))
		}
		if value == "" {
			delete(raw, field)
		}
		return value
	}
	is.namespace, is.name = text("namespace"), text("name")
	if generate := text("generateName"); generate != "" {
		errs = append(errs, errors.New("it has a generateName; names have to be known"))
	} else if is.name == "" {
		errs = append(errs, errors.New("it has no name"))
	}
	for _, segment := range []string{is.namespace, is.name} {
		if reasons := validate.IsPathSegmentName(segment); len(reasons) > 0 {
			errs = append(errs, fmt.Errorf("its name or namespace %q %s", segment, strings.Join(reasons, ", ")))
		}
	}
	errs = append(errs, distinct(raw, "finalizers", ""), distinct(raw, "ownerReferences", "uid"))
	prefix += "/"
	_, labelsErr := texts(raw, "labels", prefix+generator.LabelOwnerID)
	annotations, err := texts(raw, "annotations", prefix+generator.AnnotationOwnerID,
		prefix+generator.AnnotationDigest, prefix+generator.AnnotationFence)
	is.annotations = annotations
	return errors.Join(append(errs, labelsErr, err)...)
}

// distinct refuses a list of the metadata with two elements that are the same, or have the same key. They could be
// created, and not applied.
func distinct(raw map[string]any, field, key string) error {
	elements, _ := raw[field].([]any)
	seen := make(map[string]bool, len(elements))
	for _, element := range elements {
		if fields, ok := element.(map[string]any); ok {
			element = fields[key]
		}
		text, ok := element.(string)
		if ok && seen[text] {
			return fmt.Errorf("its %s have %q twice", field, text)
		}
		seen[text] = true
	}
	return nil
}

// texts returns the labels or annotations, and deletes the unwanted ones.
func texts(raw map[string]any, field string, unwanted ...string) (map[string]string, error) {
	values, ok := raw[field].(map[string]any)
	if !ok && raw[field] != nil {
		return nil, fmt.Errorf("its %s are not an object", field)
	}
	for _, key := range unwanted {
		delete(values, key)
	}
	if len(values) == 0 {
		delete(raw, field)
		return nil, nil
	}
	result := make(map[string]string, len(values))
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(values)) {
		value, ok := values[key].(string)
		if !ok {
			errs = append(errs, fmt.Errorf("the value of %q in its %s is not a string", key, field))
			continue
		}
		result[key] = value
	}
	return result, errors.Join(errs...)
}

// inNamespace returns content in a namespace. It does not change content, but shares values with it.
func inNamespace(content map[string]any, namespace string) map[string]any {
	raw, _ := content["metadata"].(map[string]any)
	if was, _ := raw["namespace"].(string); was == namespace {
		return content
	}
	raw = maps.Clone(raw)
	if namespace == "" {
		delete(raw, "namespace")
	} else {
		raw["namespace"] = namespace
	}
	content = maps.Clone(content)
	content["metadata"] = raw
	return content
}

// mergeSecret merges stringData into data, as the API server does; null is the empty value. Its errors have no values.
func mergeSecret(content map[string]any) error {
	data, dataErrs := secretValues(content, "data")
	plain, plainErrs := secretValues(content, "stringData")
	errs := append(dataErrs, plainErrs...)
	for _, key := range slices.Sorted(maps.Keys(data)) {
		if _, err := base64.StdEncoding.DecodeString(data[key]); err != nil {
			errs = append(errs, fmt.Errorf("the value of %q in its data is not base64", key))
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	delete(content, "stringData")
	merged := make(map[string]any, len(data)+len(plain))
	for key, value := range data {
		merged[key] = value
	}
	for key, value := range plain {
		merged[key] = base64.StdEncoding.EncodeToString([]byte(value))
	}
	if len(merged) > 0 {
		content["data"] = merged
	} else {
		delete(content, "data")
	}
	return nil
}

func secretValues(content map[string]any, field string) (map[string]string, []error) {
	values, ok := content[field].(map[string]any)
	if !ok && content[field] != nil {
		return nil, []error{fmt.Errorf("its %s is not an object", field)}
	}
	result := make(map[string]string, len(values))
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(values)) {
		value, ok := values[key].(string)
		if !ok && values[key] != nil {
			errs = append(errs, fmt.Errorf("the value of %q in its %s is not a string", key, field))
		}
		result[key] = value
	}
	return result, errs
}
