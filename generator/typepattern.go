package generator

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// TypePattern matches types, in any version.
//
// +kubebuilder:object:generate=true
type TypePattern struct {
	// Group of the types. "*" matches all groups, and "*.example.com" all groups below example.com, but not example.com
	// itself. Empty is the core group.
	Group string `json:"group"`
	// Kind of the types. "*" matches all kinds.
	// +kubebuilder:validation:MinLength=1
	Kind string `json:"kind"`
}

// Matches reports whether p matches kind. A pattern that is not valid matches nothing.
func (p TypePattern) Matches(kind schema.GroupKind) bool {
	named := p.Kind != "" && p.Kind == kind.Kind && !strings.Contains(p.Kind, "*")
	return p.matchesGroup(kind.Group) && (named || p.Kind == "*")
}

func (p TypePattern) matchesGroup(group string) bool {
	if p.Group == "*" {
		return true
	}
	if parent, ok := strings.CutPrefix(p.Group, "*."); ok {
		below, ok := strings.CutSuffix(group, "."+parent)
		return ok && below != "" && parent != "" && !strings.Contains(parent, "*")
	}
	return p.Group == group && !strings.Contains(p.Group, "*")
}

// Validate returns an error if p cannot match any type.
func (p TypePattern) Validate() error {
	var errs []error
	group, _ := strings.CutPrefix(p.Group, "*.")
	if p.Group != "" && p.Group != "*" && len(validation.IsDNS1123Subdomain(group)) > 0 {
		errs = append(errs, fmt.Errorf(`group: must be a group, "*", or "*." and a group: %s`, quote(p.Group)))
	}
	// This is what the API server requires of the kind in a CustomResourceDefinition.
	if p.Kind != "*" && len(validation.IsDNS1035Label(strings.ToLower(p.Kind))) > 0 {
		errs = append(errs, fmt.Errorf(`kind: must be a kind, or "*": %s`, quote(p.Kind)))
	}
	return errors.Join(errs...)
}
