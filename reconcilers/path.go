package reconcilers

import (
	"context"
	"slices"
	"strings"

	"github.com/go-logr/logr"
)

// nodePath is a context that knows where in the tree the code below it runs. The names are joined only when the path is
// read, because a request that neither logs nor fails does not read it.
type nodePath struct {
	context.Context

	name   string
	parent *nodePath
	place  segmentPlace
}

// segmentPlace says what a segment of a path stands for.
type segmentPlace uint8

const (
	// placeNode is the name of a node.
	placeNode segmentPlace = iota
	// placeIndex is the index of an element in a list of nodes.
	placeIndex
	// placeIteration is the number of an iteration. No description has it.
	placeIteration
	// placeItem is the name of a node followed by the key of an item. A description has the name only.
	placeItem
)

// inTree and inLabel return the name as a part of [Node.Path] and of [Node.Label]. They are false if that has none.
func (p *nodePath) inTree() (string, bool) { return p.described(), p.place != placeIteration }

func (p *nodePath) inLabel() (string, bool) {
	return p.described(), p.place == placeNode || p.place == placeItem
}

// text returns the names of the nodes from the root, joined by slashes, as people read them. It has an index only of a
// node without a name, at its end.
func (p *nodePath) text() string {
	return p.join(func(at *nodePath) (string, bool) {
		return at.name, at == p || at.place == placeNode || at.place == placeItem
	})
}

// described is the name that a description has.
func (p *nodePath) described() string {
	if p.place == placeItem {
		name, _, _ := strings.Cut(p.name, "[")
		return name
	}
	return p.name
}

// join joins the parts that a path has of its segments, from the root to the node.
func (p *nodePath) join(part func(*nodePath) (string, bool)) string {
	var names []string
	for ; p != nil; p = p.parent {
		if name, ok := part(p); ok {
			names = append(names, name)
		}
	}
	slices.Reverse(names)
	return strings.Join(names, "/")
}

type nodePathKey struct{}

// Enter returns the context of a node called name. A node calls it first, in SetupWithManager and in Reconcile, and
// uses the context it returns from there on. The name is the last segment of the path that [RetrievePath] returns, that
// errors of the node carry (see [Failed]), and that loggers taken from the context are named after.
func Enter(ctx context.Context, name string) context.Context {
	return enterPlace(ctx, name, placeNode)
}

// enterPlace is [Enter] for a segment that is no name of a node.
func enterPlace(ctx context.Context, name string, place segmentPlace) context.Context {
	return &nodePath{Context: withState(ctx), name: name, parent: pathOf(ctx), place: place}
}

func pathOf(ctx context.Context) *nodePath {
	p, _ := ctx.Value(nodePathKey{}).(*nodePath)
	return p
}

// Value adds the name to a logger. It does so when the logger is taken from the context, because an idle request takes
// none, and a logger with a name costs allocations.
func (p *nodePath) Value(key any) any {
	if key == (nodePathKey{}) {
		return p
	}
	value := p.Context.Value(key)
	if logger, ok := value.(logr.Logger); ok && logger.GetSink() != nil {
		return logger.WithName(p.name)
	}
	return value
}

// String returns the names from the root to the node, joined by slashes. It is empty for nil.
func (p *nodePath) String() string { return p.join((*nodePath).segment) }

// segment is the name as a part of a path.
func (p *nodePath) segment() (string, bool) { return p.name, true }

// RetrievePath returns where in the tree the code below ctx runs: the names of the nodes from the root, joined by
// slashes, with the index of each element of a sequence. It is empty outside a tree.
func RetrievePath(ctx context.Context) string {
	return pathOf(ctx).String()
}
