package kustomize

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/internal/document"
)

const (
	configFile = ".component-config.yaml"
	ignoreFile = ".component-ignore"
)

// config is what the file [configFile] contains. It wins over the options of the generator.
type config struct {
	TemplateSuffix         *string         `json:"templateSuffix"`
	LeftTemplateDelimiter  string          `json:"leftTemplateDelimiter"`
	RightTemplateDelimiter string          `json:"rightTemplateDelimiter"`
	IncludedFiles          []string        `json:"includedFiles"`
	IncludedKustomizations []string        `json:"includedKustomizations"`
	Values                 json.RawMessage `json:"values"`

	values map[string]any
}

func parseConfig(content []byte) (config, error) {
	var parsed config
	if err := document.Check(content); err != nil {
		return config{}, err
	}
	if err := yaml.UnmarshalStrict(content, &parsed); err != nil {
		return config{}, err
	}
	if len(parsed.Values) > 0 {
		// This keeps integers, which would become floating point numbers otherwise, and be written as 1e+06.
		if err := utiljson.Unmarshal(parsed.Values, &parsed.values); err != nil {
			return config{}, fmt.Errorf("values: %w", err)
		}
	}
	return parsed, nil
}

// apply returns the options with what the file says.
func (c config) apply(options Options) Options {
	if c.TemplateSuffix != nil {
		options.TemplateSuffix = *c.TemplateSuffix
	}
	if c.LeftTemplateDelimiter != "" {
		options.LeftDelimiter = c.LeftTemplateDelimiter
	}
	if c.RightTemplateDelimiter != "" {
		options.RightDelimiter = c.RightTemplateDelimiter
	}
	return options
}

// resolve returns the path of what a field of the file refers to, which must be outside of dir.
func resolve(field string, index int, reference, dir string) (string, error) {
	if path.IsAbs(reference) || reference == "" {
		return "", fmt.Errorf("%s[%d]: %q is no relative path", field, index, reference)
	}
	target, ok := join(dir, reference)
	if !ok {
		return "", fmt.Errorf("%s[%d]: %q leaves the file system", field, index, reference)
	}
	if isWithin(target, dir) {
		return "", fmt.Errorf("%s[%d]: %q is inside the folder of the kustomization", field, index, reference)
	}
	return target, nil
}

// join returns the path of a relative reference, and false if it is above the root.
func join(dir, reference string) (string, bool) {
	joined := path.Join(dir, reference)
	if joined == ".." || strings.HasPrefix(joined, "../") {
		return "", false
	}
	return strings.TrimPrefix(joined, "."+"/"), true
}

// merge returns base with the values of over. Maps are merged; null deletes; anything else replaces.
func merge(base, over map[string]any) map[string]any {
	merged := make(map[string]any, len(base)+len(over))
	for key, value := range base {
		merged[key] = value
	}
	for key, value := range over {
		below, isMap := value.(map[string]any)
		switch {
		case value == nil:
			delete(merged, key)
		case isMap:
			inner, _ := merged[key].(map[string]any)
			merged[key] = merge(inner, below)
		default:
			merged[key] = value
		}
	}
	return merged
}
