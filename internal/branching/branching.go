// Package branching says how the branches of a tree run in tests.
package branching

import "context"

type inOrderKey struct{}

// InOrder returns a context in which branches that would run at the same time run one after the other, so that what
// they do is the same in each run.
func InOrder(ctx context.Context) context.Context {
	return context.WithValue(ctx, inOrderKey{}, true)
}

// IsInOrder reports whether branches run one after the other.
func IsInOrder(ctx context.Context) bool {
	inOrder, _ := ctx.Value(inOrderKey{}).(bool)
	return inOrder
}
