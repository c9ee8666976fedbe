package kustomize

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/espalier-dev/espalier/internal/document"
)

// maxNested is how deep documents in texts of documents are looked at, such as patches in configurations.
const maxNested = 3

// checkDocuments looks at the configurations of plugins among documents, and at the size of documents. A text that is
// no YAML is no error, because it may be any file.
func checkDocuments(content []byte) error { return checkNested(content, 0) }

func checkNested(content []byte, depth int) error {
	if err := document.Check(content); errors.Is(err, document.ErrTooLarge) {
		return err
	}
	if depth > maxNested || !isSuspicious(content) {
		return nil
	}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	for {
		var node yaml.Node
		if err := decoder.Decode(&node); err != nil {
			return nil
		}
		if err := checkNode(&node, isPlugin(&node), depth); err != nil {
			return err
		}
	}
}

// isSuspicious is false for nearly all files, which need not be parsed therefore. A backslash may stand for any letter,
// and a text in UTF-16 contains zeros.
func isSuspicious(content []byte) bool {
	return bytes.ContainsAny(content, "&") && bytes.ContainsAny(content, "*") ||
		bytes.Contains(content, []byte("builtin")) || bytes.ContainsAny(content, "\\\x00")
}

// isPlugin reports whether a document, or a part of it, can configure a builtin plugin.
func isPlugin(node *yaml.Node) bool {
	if node.Kind == yaml.ScalarNode {
		return strings.Contains(node.Value, "builtin")
	}
	return slices.ContainsFunc(node.Content, isPlugin)
}

// checkNode looks for references in a configuration of a plugin, and for documents in texts. It needs not follow
// aliases, because what they stand for is in the document too.
func checkNode(node *yaml.Node, plugin bool, depth int) error {
	if node.Kind == yaml.ScalarNode {
		return checkNested([]byte(node.Value), depth+1)
	}
	for i, child := range node.Content {
		if plugin && node.Kind == yaml.MappingNode && i%2 == 1 {
			if err := checkField(target(node.Content[i-1]).Value, target(child)); err != nil {
				return err
			}
		}
		if err := checkNode(child, plugin, depth); err != nil {
			return err
		}
	}
	return nil
}

func target(node *yaml.Node) *yaml.Node {
	if node.Alias != nil {
		return node.Alias
	}
	return node
}

// pathFields are what the builtin plugins read. Their fields are found whatever their case.
var pathFields = []string{"path", "paths", "files", "envs", "env", "targetFilePath"}

func checkField(key string, value *yaml.Node) error {
	if key == "kind" && value.Value == "HelmChartInflationGenerator" {
		return errHelm
	}
	if !slices.ContainsFunc(pathFields, func(field string) bool { return strings.EqualFold(field, key) }) {
		return nil
	}
	for _, item := range append([]*yaml.Node{value}, value.Content...) {
		text := target(item).Value
		if isRemote(text) || isRemote(fileOf(text)) {
			return fmt.Errorf("%s: %q: %w", key, text, errRemote)
		}
	}
	return nil
}
