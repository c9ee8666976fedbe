package reconcilers

import (
	"context"
	"slices"
	"strings"

	"github.com/go-logr/logr"
)

// position is a context that knows where in the tree the code below it runs. Names are joined only when somebody asks: a
// request that neither logs nor fails never does.
type position struct {
	context.Context

	name   string
	parent *position
}

type positionKey struct{}

// loggerKey is the key under which package logr keeps the logger of a context.
var loggerKey = func() any {
	var probe keyProbe
	_, _ = logr.FromContext(&probe)
	return probe.key
}()

// keyProbe is a context that remembers the key it was asked for.
type keyProbe struct {
	context.Context
	key any
}

func (p *keyProbe) Value(key any) any {
	p.key = key
	return nil
}

// enter returns the context of a node called name below ctx. Loggers taken from it carry the name.
func enter(ctx context.Context, name string) context.Context {
	return &position{Context: ctx, name: name, parent: positionOf(ctx)}
}

func positionOf(ctx context.Context) *position {
	p, _ := ctx.Value(positionKey{}).(*position)
	return p
}

func (p *position) Value(key any) any {
	if key == (positionKey{}) {
		return p
	}
	value := p.Context.Value(key)
	if key == loggerKey {
		if logger, ok := value.(logr.Logger); ok && logger.GetSink() != nil {
			return logger.WithName(p.name)
		}
	}
	return value
}

// String returns the names from the root to the node, joined by slashes; empty for nil.
func (p *position) String() string {
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
	return positionOf(ctx).String()
}
