package reconcilers

import (
	"context"
	"slices"
	"strings"

	"github.com/go-logr/logr"
)

// nodePath is a context that knows where in the tree the code below it runs. The names are joined only when the path is asked
// for: a request that neither logs nor fails never does.
type nodePath struct {
	context.Context

	name   string
	parent *nodePath
}

type nodePathKey struct{}

// Enter returns the context of a node called name. A node calls it first, in SetupWithManager and in Reconcile, and uses the
// context it returns from there on. The name is the last segment of the path that [RetrievePath] returns, that errors of the
// node carry (see [Failed]), and that loggers taken from the context are named after.
func Enter(ctx context.Context, name string) context.Context {
	return &nodePath{Context: ctx, name: name, parent: pathOf(ctx)}
}

func pathOf(ctx context.Context) *nodePath {
	p, _ := ctx.Value(nodePathKey{}).(*nodePath)
	return p
}

// Value adds the name to a logger. It does so when the logger is taken from the context, because an idle request takes none, and a
// logger with a name costs allocations.
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
func (p *nodePath) String() string {
	var names []string
	for ; p != nil; p = p.parent {
		names = append(names, p.name)
	}
	slices.Reverse(names)
	return strings.Join(names, "/")
}

// RetrievePath returns where in the tree the code below ctx runs: the names of the nodes from the root, joined by slashes,
// with the index of each element of a sequence. It is empty outside a tree.
func RetrievePath(ctx context.Context) string {
	return pathOf(ctx).String()
}
