package resourcestate

import "context"

type contextKey struct{}

// NewContext returns a context whose nodes keep in state what they know of the resource, where no root brings a state.
func NewContext(ctx context.Context, state *State) context.Context {
	return context.WithValue(ctx, contextKey{}, state)
}

// FromContext returns the state that [NewContext] was called with, or nil.
func FromContext(ctx context.Context) *State {
	state, _ := ctx.Value(contextKey{}).(*State)
	return state
}
