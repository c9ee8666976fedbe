package reconcilers

import (
	"fmt"
	"reflect"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Describer is implemented by a node that can say what it is. All nodes of this package do; a node that does not
// appears in the printed tree by its Go type, and without any access to the API.
type Describer interface {
	Describe() Description
}

// Description is what a node says about itself and about the nodes nested in it. From it come the printed tree, the
// RBAC rules that a controller needs, and the paths that loggers and errors name.
type Description struct {
	// Kind is the sort of node: the name of its Go type without type parameters, such as "ChildReconciler".
	Kind string
	// Name is what the author calls the node. It is its segment of the path; a list of nodes has none.
	Name string
	// Detail tells people what the node deals with, such as the kind of a child. It may be empty.
	Detail string
	// Role is what the enclosing node calls this one where it has several, such as "Else". It may be empty.
	Role string
	// Index is the place in the enclosing list of nodes, as the path has it; empty outside a list.
	Index string
	// Resource is an object of the type that the node fetches and hands to the nodes nested in it, nil if it is no
	// root.
	Resource client.Object
	// Uses is what the node itself, without those nested in it, does with the API.
	Uses []Access
	// Nodes are those nested in this one, in the order in which they run.
	Nodes []Description
}

// Access is a use of one API type.
type Access struct {
	// Object is an object of the type. It is nil for the resource that the root reconciles.
	Object client.Object
	// Subresource is empty for the object itself.
	Subresource string
	// Verbs are those of RBAC: get, list, watch, create, update, patch, delete, deletecollection.
	Verbs []string
}

// Describe returns what node says about itself.
func Describe(node any) Description {
	if isNilNode(node) {
		return Description{Kind: "nothing"}
	}
	if describer, ok := node.(Describer); ok {
		return describer.Describe()
	}
	return Description{Kind: kindOfNode(node)}
}

// describeAs is [Describe] for a nested node, with what the enclosing node calls it.
func describeAs(role string, node any) Description {
	d := Describe(node)
	d.Role = role
	return d
}

// Walk visits d and all descriptions nested in it, each before those nested in it, with its path: what [RetrievePath]
// returns while the node is set up and while it runs. Below a loop ([While], [ForEach]) that has, while the node runs,
// also the number of the iteration.
func (d Description) Walk(visit func(path string, d Description)) {
	d.walk("", visit)
}

func (d Description) walk(parent string, visit func(path string, d Description)) {
	path := parent
	for _, segment := range []string{d.Index, d.Name} {
		switch {
		case segment == "":
		case path == "":
			path = segment
		default:
			path += "/" + segment
		}
	}
	visit(path, d)
	for _, nested := range d.Nodes {
		nested.walk(path, visit)
	}
}

// String prints the tree, a line for each node. Lines are not padded, and the text ends with a newline.
func (d Description) String() string {
	var b strings.Builder
	b.WriteString(d.line() + "\n")
	d.print(&b, "")
	return b.String()
}

func (d Description) print(b *strings.Builder, indent string) {
	for i, nested := range d.Nodes {
		branch, below := "├─ ", "│  "
		if i == len(d.Nodes)-1 {
			branch, below = "└─ ", "   "
		}
		b.WriteString(indent + branch + nested.line() + "\n")
		nested.print(b, indent+below)
	}
}

func (d Description) line() string {
	var words []string
	if d.Role != "" {
		words = append(words, d.Role+":")
	}
	words = append(words, d.Kind)
	if d.Name != "" {
		words = append(words, fmt.Sprintf("%q", d.Name))
	}
	if d.Detail != "" {
		words = append(words, d.Detail)
	}
	return strings.Join(words, " ")
}

// kindOfNode is the name of the Go type of node without its type parameters.
func kindOfNode(node any) string {
	t := reflect.TypeOf(node)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	name, _, _ := strings.Cut(t.Name(), "[")
	if name == "" {
		return t.String()
	}
	return name
}
