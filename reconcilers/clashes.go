package reconcilers

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// checkTree returns an error if a tree cannot work: if two nodes clash, or if a node can never have what it needs.
func checkTree(tree Description, kindOf func(client.Object) schema.GroupVersionKind) error {
	if err := checkClashes(tree, kindOf); err != nil {
		return err
	}
	return checkOrder(tree)
}

// checkClashes returns an error if two nodes of a tree would work against each other: if both take the same objects for
// their children, or have a finalizer of one name. It also returns an error for a finalizer that Kubernetes does not
// accept.
func checkClashes(tree Description, kindOf func(client.Object) schema.GroupVersionKind) error {
	places := placesOf(tree)
	for i, p := range places {
		for j, finalizer := range p.Finalizers {
			if len(content.IsPrefixedLabelKey(finalizer)) > 0 {
				return fmt.Errorf("must have a finalizer with a domain at %s, such as %q, not %q",
					p.path, "example.com/cleanup", finalizer)
			}
			if slices.Contains(p.Finalizers[:j], finalizer) {
				return fmt.Errorf("must not have the finalizer %q twice at %s", finalizer, p.path)
			}
		}
		for _, earlier := range places[:i] {
			if earlier.excludes(p) {
				continue
			}
			if err := checkFinalizers(earlier, p); err != nil {
				return err
			}
			if err := checkChildren(earlier, p, kindOf); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkFinalizers(a, b place) error {
	for _, finalizer := range b.Finalizers {
		if slices.Contains(a.Finalizers, finalizer) {
			return fmt.Errorf("must have different finalizers at %s and %s, not %q for both: "+
				"each would remove that of the other", a.path, b.path, finalizer)
		}
	}
	return nil
}

func checkChildren(a, b place, kindOf func(client.Object) schema.GroupVersionKind) error {
	one, other := a.children, b.children
	if one == nil || other == nil || one.node == other.node || one.chosen || other.chosen || a.config != b.config {
		return nil
	}
	kind := kindOf(one.childType).GroupKind()
	switch {
	case kind.Empty() || kind != kindOf(other.childType).GroupKind():
		// The set-up of the node refuses a type whose kind is not known.
		return nil
	case one.label == "" || other.label == "":
		return fmt.Errorf("must tell the children of %s and %s apart, which are both of kind %s: "+
			"set LabelChildren or OurChild on both", a.path, b.path, kind.Kind)
	case one.label == other.label:
		return fmt.Errorf("must have different names for %s and %s, which both label children of kind %s with %q",
			a.path, b.path, kind.Kind, one.label)
	}
	return nil
}
