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

// Pace says how branches that run at the same time begin.
type Pace struct {
	// Order returns the order in which the branches of a place in a request begin: the indexes of all count branches.
	Order func(place string, count int) []int
	// Wait is called before the first branches begin, by a goroutine for each, with its place in the order. It returns
	// when that branch is to begin.
	Wait func(place int)
}

type paceKey struct{}

// WithPace returns a context in which branches begin as pace says.
func WithPace(ctx context.Context, pace Pace) context.Context {
	return context.WithValue(ctx, paceKey{}, &pace)
}

// PaceOf returns what was given to [WithPace], or nil.
func PaceOf(ctx context.Context) *Pace {
	pace, _ := ctx.Value(paceKey{}).(*Pace)
	return pace
}
