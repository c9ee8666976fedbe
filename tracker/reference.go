package tracker

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Reference names the objects whose events wake a watcher: one object by its name, or all objects of a kind that a
// selector matches.
type Reference struct {
	// APIGroup is the API group of the objects; empty is the core group.
	APIGroup string
	// Kind is the kind of the objects.
	Kind string
	// Namespace is where the object called Name is, empty for an object that has none. With a Selector, it narrows the
	// selection to one namespace, and empty means objects of all namespaces and of none.
	Namespace string
	// Name is the name of one object. Set it or Selector.
	Name string
	// Selector matches the labels of the objects. Set it or Name; labels.Everything() selects all.
	Selector labels.Selector
}

// validate returns an error with one line for each problem, sorted.
func (r Reference) validate() error {
	var problems []string
	field := func(name string, messages []string) {
		if len(messages) > 0 {
			problems = append(problems, fmt.Sprintf("%s: %s", name, strings.Join(messages, ", ")))
		}
	}

	if r.APIGroup != "" {
		field("APIGroup", validation.IsDNS1123Subdomain(r.APIGroup))
	}
	field("Kind", validation.IsCIdentifier(r.Kind))
	if r.Namespace != "" {
		field("Namespace", validation.IsDNS1123Label(r.Namespace))
	}
	switch {
	case r.Name != "" && r.Selector != nil:
		problems = append(problems, "cannot provide both Name and Selector")
	case r.Name != "":
		// Which names are legal depends on the kind: RBAC allows all that fits into a path, such as "system:node".
		field("Name", content.IsPathSegmentName(r.Name))
	case r.Selector == nil:
		problems = append(problems, "must provide either Name or Selector")
	}

	if len(problems) == 0 {
		return nil
	}
	slices.Sort(problems)
	return errors.New("invalid Reference:\n" + strings.Join(problems, "\n"))
}

// Key identifies an object, without its version.
//
// Deprecated: use Reference.
type Key struct {
	// GroupKind is the group and kind of the object.
	GroupKind schema.GroupKind
	// NamespacedName is the namespace and name of the object.
	NamespacedName types.NamespacedName
}

// NewKey returns the Key of the object with that kind and name. The version is dropped.
//
// Deprecated: use Reference.
func NewKey(gvk schema.GroupVersionKind, namespacedName types.NamespacedName) Key {
	return Key{GroupKind: gvk.GroupKind(), NamespacedName: namespacedName}
}
