// Package answer decides what of an answer of a plugin may be done. It reads and writes nothing.
package answer

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/espalier-dev/espalier/internal/document"
	"github.com/espalier-dev/espalier/plugins/internal/protocol"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

const (
	// maxNames is how many types, and versions of a type, a plugin may have.
	maxNames = 100
	// maxName is how long a name may be, in bytes.
	maxName = 63
	// maxDefinitions is how many definitions of kinds a plugin may bring.
	maxDefinitions = 20
)

// Provided is what a plugin provides.
type Provided struct {
	Category string
	Types    []Type
	// Definitions are those of kinds.
	Definitions []*apiextensionsv1.CustomResourceDefinition
}

// Type is one capability of the category.
type Type struct {
	Name     string
	Versions []string
}

// ProvidedIn returns what a plugin says that it provides.
func ProvidedIn(response *protocol.DescribeResponse) (Provided, error) {
	provided := Provided{Category: response.GetCategory()}
	for _, t := range response.GetTypes() {
		provided.Types = append(provided.Types, Type{Name: t.GetName(), Versions: t.GetVersions()})
	}
	for i, text := range response.GetDefinitions() {
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := document.CheckJSON(text); err != nil {
			return Provided{}, fmt.Errorf("the definition %d %w", i, err)
		}
		if err := json.Unmarshal(text, definition); err != nil {
			return Provided{}, fmt.Errorf("the definition %d is no CustomResourceDefinition: %w", i, err)
		}
		provided.Definitions = append(provided.Definitions, definition)
	}
	return provided, provided.Check()
}

// Check returns an error if a plugin must not provide that.
func (p Provided) Check() error {
	if !isWord(p.Category) {
		return fmt.Errorf("the category %s must have letters, digits, hyphens and dots", quote(p.Category))
	}
	if len(p.Types) == 0 || len(p.Types) > maxNames {
		return fmt.Errorf("there are %d types of the category %q: give 1 to %d", len(p.Types), p.Category, maxNames)
	}
	known := map[string]bool{}
	for _, t := range p.Types {
		if !isWord(t.Name) {
			return fmt.Errorf("the type %s must have letters, digits, hyphens and dots", quote(t.Name))
		}
		if known[strings.ToLower(t.Name)] {
			return fmt.Errorf("the type %q is given twice", t.Name)
		}
		known[strings.ToLower(t.Name)] = true
		if len(t.Versions) > maxNames {
			return fmt.Errorf("the type %q has %d versions: give up to %d", t.Name, len(t.Versions), maxNames)
		}
		for _, version := range t.Versions {
			if !isPrintable(version) {
				return fmt.Errorf("the type %q has the version %s: give a text of up to %d characters",
					t.Name, quote(version), maxName)
			}
		}
	}
	return p.checkDefinitions()
}

// checkDefinitions returns an error if a plugin must not bring a definition, whatever the operator allows.
func (p Provided) checkDefinitions() error {
	if len(p.Definitions) > maxDefinitions {
		return fmt.Errorf("there are %d definitions of kinds: give up to %d", len(p.Definitions), maxDefinitions)
	}
	for _, definition := range p.Definitions {
		name, spec := definition.Name, definition.Spec
		switch {
		case name == "" || name != spec.Names.Plural+"."+spec.Group:
			return fmt.Errorf("the definition %s must have the name of its plural and its group", quote(name))
		case spec.Scope != apiextensionsv1.NamespaceScoped:
			return fmt.Errorf("the definition %s must be for objects with a namespace", quote(name))
		case spec.Conversion != nil && spec.Conversion.Strategy != apiextensionsv1.NoneConverter:
			return fmt.Errorf("the definition %s must have no conversion", quote(name))
		}
	}
	return nil
}

// isWord reports whether text may be a category or a type.
func isWord(text string) bool {
	return text != "" && len(text) <= maxName && !strings.ContainsFunc(text, func(r rune) bool {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		return !letter && r != '-' && r != '.'
	})
}

// isPrintable reports whether text may be a version.
func isPrintable(text string) bool {
	return text != "" && len(text) <= maxName && !strings.ContainsFunc(text, func(r rune) bool {
		return r <= ' ' || r > '~'
	})
}

// isName reports whether text may name a dependent or a value.
func isName(text string) bool {
	return text != "" && len(text) <= maxName && !strings.ContainsFunc(text, func(r rune) bool {
		return ('a' > r || r > 'z') && ('0' > r || r > '9') && r != '-'
	})
}
