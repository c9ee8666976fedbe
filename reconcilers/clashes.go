package reconcilers

import (
	"context"
	"fmt"
	"slices"

	"github.com/espalier-dev/espalier/internal/kinds"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// checkTree returns an error if a tree of a resource cannot work: if two nodes clash, if a node can never have what it
// needs, or if the API server refuses a finalizer. It logs finalizers that it should not have.
func checkTree(
	ctx context.Context, tree Description, resource client.Object,
	kindOf func(client.Object) schema.GroupVersionKind,
) error {
	kind := kindOf(resource)
	for _, p := range placesOf(tree) {
		for _, finalizer := range p.Finalizers {
			if err := checkFinalizer(ctx, finalizer, p.path, kind); err != nil {
				return err
			}
		}
	}
	if err := checkClashes(tree, kindOf); err != nil {
		return err
	}
	return checkOrder(tree)
}

// checkFinalizer returns an error if the API server refuses the finalizer of the node at path on resources of a kind. A
// custom resource may have one without a domain. It is accepted because there are objects that have it.
func checkFinalizer(ctx context.Context, finalizer, path string, kind schema.GroupVersionKind) error {
	switch {
	case len(content.IsPrefixedLabelKey(finalizer)) == 0:
		return nil
	case len(content.IsLabelKey(finalizer)) == 0 && !kinds.IsBuiltIn(kind.Group):
		logr.FromContextOrDiscard(ctx).Info("a finalizer has no domain, so that of another program may have its name; "+
			"use another one for new resources", "finalizer", finalizer, "node", path)
		return nil
	}
	return fmt.Errorf("must have a finalizer with a domain at %s, such as %q, not %q",
		path, "example.com/cleanup", finalizer)
}

// checkClashes returns an error if two nodes of a tree would work against each other: if both take the same objects for
// their children, or have a finalizer of one name.
func checkClashes(tree Description, kindOf func(client.Object) schema.GroupVersionKind) error {
	places := placesOf(tree)
	for i, p := range places {
		for j, finalizer := range p.Finalizers {
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
			"set LabelChildren (Labeled in the short form) or OurChild on both", a.path, b.path, kind.Kind)
	case one.label == other.label:
		return fmt.Errorf("must have different names for %s and %s, which both label children of kind %s with %q",
			a.path, b.path, kind.Kind, one.label)
	}
	return nil
}
