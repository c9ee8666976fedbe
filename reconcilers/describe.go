package reconcilers

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/internal/gotype"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Describer is implemented by a node that can describe itself, as all nodes of this package can. Any other node appears
// in the printed tree with its Go type, and without uses of the API.
type Describer interface {
	Describe() Description
}

// Description describes a node and the nodes nested in it. The printed tree, the RBAC rules of a controller, and the
// paths in logs and errors are derived from it.
type Description struct {
	// Kind is the name of the node's Go type without type parameters, such as "ChildReconciler".
	Kind string
	// Name is the name that the author gave to the node. It is the node's segment of the path. It is empty for a list
	// of nodes.
	Name string
	// Detail tells readers more about the node, such as the kind of a child. It may be empty.
	Detail string
	// Role distinguishes this node from others in the enclosing node, such as "Else". It may be empty.
	Role string
	// Index is the index in the enclosing list of nodes. It is a segment of the path. It is empty outside a list.
	Index string
	// Resource is an object of the type that a root reconciles. It is nil for other nodes.
	Resource client.Object
	// Conditions are the types of the conditions that the node itself sets on the resource. The root sums them up, see
	// the field SummaryCondition of [ResourceReconciler].
	Conditions []string
	// Awaits are the types of the conditions of the resource that have to be True before the node and those nested in
	// it run. The set-up of a [ResourceReconciler] refuses one that can never be.
	Awaits []string
	// Uses lists what the node itself does with the API. The nodes nested in it have their own.
	Uses []Access
	// Finalizers are the finalizers that the node itself puts on the resource. The nodes nested in it have their own.
	// See [ReverseOnDeletion].
	Finalizers []string
	// Order says what the node needs of those before it, in a [List]. It is nil for a node that knows nothing of that:
	// an error of the node then stops all that come after it.
	Order *Order
	// Nodes are the nested nodes, in the order in which they run.
	Nodes []Description
	// ReplacesConfig is true if Nodes run with another [Config] than the node, which may be that of another cluster.
	ReplacesConfig bool

	// children says which objects the node counts as its children. It is nil for a node without children.
	children *childSelection
	// list is true for a List, whose Nodes may be called by their names.
	list bool
	// items is true if Nodes run for items with keys, each of which has values of its own.
	items bool
	// alternatives is true if only one of Nodes runs in a request.
	alternatives bool
	// tracks is true for an object manager that has the resource woken by the objects that it writes.
	tracks bool
}

// Access is a use of one API type.
type Access struct {
	// Object is an object of the type. It is nil for the resource that the root reconciles. The group and the kind *
	// stand for all types.
	Object client.Object
	// Subresource is empty for the object itself.
	Subresource string
	// Verbs are verbs of RBAC: get, list, watch, create, update, patch, delete, deletecollection.
	Verbs []string
	// Optional says that the cluster may not serve the type, see [WatchOptional]. Then [Description.PolicyRules] has
	// the rules to watch what defines types, unless the type is one of Kubernetes itself.
	Optional bool
	// Owned says that the resource is the controller of the objects of the type that the node makes. Package sharding
	// has to know it.
	Owned bool
	// IfClusterScoped is an object of a type that the resource of the root cannot own if the type is cluster-scoped and
	// the resource has a namespace. The use counts only then. Nil: it counts.
	IfClusterScoped client.Object
}

// Describe returns the description of node.
func Describe(node any) Description {
	if gotype.IsNil(node) {
		return Description{Kind: "nothing"}
	}
	if describer, ok := node.(Describer); ok {
		return describer.Describe()
	}
	return Description{Kind: kindOfNode(node)}
}

// describeAs returns the description of a nested node with its role in the enclosing node.
func describeAs(role string, node any) Description {
	d := Describe(node)
	d.Role = role
	return d
}

// Walk calls visit for d and for all nested descriptions, parents first. The path is what [RetrievePath] returns while
// the node is set up and while it runs. Below a loop ([While], [ForEach]) the path of a running node also has the
// number of the iteration.
func (d Description) Walk(visit func(path string, d Description)) {
	d.walk("", visit)
}

func (d Description) walk(parent string, visit func(path string, d Description)) {
	path := d.pathBelow(parent)
	visit(path, d)
	for _, nested := range d.Nodes {
		nested.walk(path, visit)
	}
}

// pathBelow returns the path of the node in a node with the path parent.
func (d Description) pathBelow(parent string) string {
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
	return path
}

// String returns the tree with a line for each node. Lines are not padded, and the text ends with a newline.
func (d Description) String() string {
	var b strings.Builder
	d.print(&b, "", "")
	return b.String()
}

// print prints d after branch, and the nested nodes below it after indent.
func (d Description) print(b *strings.Builder, branch, indent string) {
	b.WriteString(branch + d.line() + "\n")
	for i, nested := range d.Nodes {
		if i < len(d.Nodes)-1 {
			nested.print(b, indent+"├─ ", indent+"│  ")
		} else {
			nested.print(b, indent+"└─ ", indent+"   ")
		}
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

// kindOfNode returns the name of the node's Go type without type parameters.
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

// place is a node of a tree.
type place struct {
	path string
	Description
	// config is the path of the innermost node around it that replaces the config. It is empty for the config of the
	// root.
	config string
	// branches are the alternatives that lead to the node, outermost first.
	branches []branch
	// around are the indexes of the nodes around it among the places, outermost first.
	around []int
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
	if d.ReplacesConfig {
		at.config = at.path
	}
	node := len(places) - 1
	at.around = append(slices.Clone(at.around), node)
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

// managerFinalizers returns the finalizers that an object manager puts on the resource, as far as it describes itself.
func managerFinalizers(manager any) []string {
	return slices.Clone(Describe(manager).Finalizers)
}

// nonEmpty returns the names that are not empty.
func nonEmpty(names ...string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}
