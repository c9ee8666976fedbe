// Package time (imported as rtime) gives each reconcile request a single "now".
//
// A root reconciler pins the time once, when a request starts. All code in the request that needs the time (condition
// transitions, grace periods, purges) reads the pinned time. A test can pin any time.
package time

import (
	"context"
	"time"
)

type contextKey struct{}

// StashNow pins now as the time of the request. A time that is already pinned stays: the outermost pin, usually a
// test's, wins.
func StashNow(ctx context.Context, now time.Time) context.Context {
	if _, ok := ctx.Value(contextKey{}).(time.Time); ok {
		return ctx
	}
	return context.WithValue(ctx, contextKey{}, now)
}

// RetrieveNow returns the pinned time, or the current time if none is pinned.
func RetrieveNow(ctx context.Context) time.Time {
	if now, ok := ctx.Value(contextKey{}).(time.Time); ok {
		return now
	}
	return time.Now()
}
