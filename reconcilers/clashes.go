package reconcilers

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NodeLabel is the key of the label that says which node an object is the child of. Its value is the name of the node.
// Only nodes with LabelChildren set it.
const NodeLabel = "espalier.dev/node"

// childSelection says which objects a node counts as its children.
type childSelection struct {
	// node identifies the node. One node may be in several places of a tree.
	node any
	// childType is an object of their type.
	childType client.Object
	// chosen is true if the author said which ones, by OurChild or by ListOptions.
	chosen bool
	// label is the value of [NodeLabel] that they have. It is empty for all values.
	label string
}

func (k *children[T, CT, CLT]) selection() *childSelection {
	return &childSelection{
		node:      k.node,
		childType: k.childType,
		chosen:    k.ourChild != nil || k.listOptions != nil,
		label:     k.label,
	}
}

// managerFinalizers returns the finalizers that an object manager puts on the resource, as far as it describes itself.
func managerFinalizers(manager any) []string {
	return slices.Clone(Describe(manager).Finalizers)
}

// nonEmpty returns the names that are not empty.
func nonEmpty(names ...string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// place is a node of a tree.
type place struct {
	path string
	Description
	// config is the path of the innermost node around it that replaces the config. It is empty for the config of the
	// root.
	config string
	// branches are the alternatives that lead to the node, outermost first.
	branches []branch
}

// branch is one of the alternatives of a node.
type branch struct {
	// node is the index of that node among the places.
	node, alternative int
}

// placesOf returns the nodes of a tree, parents first.
func placesOf(d Description) []place {
	return appendPlaces(nil, d, place{})
}

func appendPlaces(places []place, d Description, at place) []place {
	at.path, at.Description = d.pathBelow(at.path), d
	places = append(places, at)
	if d.replacesConfig {
		at.config = at.path
	}
	node := len(places) - 1
	for i, nested := range d.Nodes {
		below := at
		if d.alternatives {
			below.branches = append(slices.Clone(at.branches), branch{node: node, alternative: i})
		}
		places = appendPlaces(places, nested, below)
	}
	return places
}

// excludes reports whether only one of two nodes runs in a request, since they are in different branches of one node.
func (p place) excludes(other place) bool {
	for i := range min(len(p.branches), len(other.branches)) {
		if p.branches[i] != other.branches[i] {
			return p.branches[i].node == other.branches[i].node
		}
	}
	return false
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
