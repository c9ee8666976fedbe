// Package stash holds values that the nodes of one reconcile request share.
//
// A root reconciler puts a new, empty store on the context of each request. A value that one node stores can be read by
// the nodes that run after it. The store is safe for concurrent use. It lives as long as the request. The next request
// starts with an empty store.
//
// Use a typed [Stasher] rather than the untyped functions where you can:
//
//	var quotaStasher = stash.New[*corev1.ResourceQuota]("example.com/quota")
//
//	quotaStasher.Store(ctx, quota)            // in one node
//	quota := quotaStasher.RetrieveOrDie(ctx)  // in a later one
package stash

import (
	"context"
	"errors"
	"maps"
	"sync"
)

// Key names a value in the store. Prefix keys with your own domain. The keys of this toolkit start with
// "reconciler.io/runtime:", because programs written for reconciler.io/runtime may use these keys.
type Key string

// ErrValueNotFound says that the store holds no value under the key.
var ErrValueNotFound = errors.New("value not found in stash")

// ErrValueNotAssignable says that the store holds a value under the key whose type is not the one asked for.
var ErrValueNotAssignable = errors.New("value found in stash is not of an assignable type")

// errNoStash is the value of the panic of all functions but [Check] if the context has no store. No object or event can
// cause this. The cause is a caller that runs a node without a root and without WithContext.
var errNoStash = errors.New("context not configured for stashing, call `ctx = WithContext(ctx)` before use")

type contextKey struct{}

// store is the synchronised map behind a context. The map is made by the first write, because most requests store
// nothing.
type store struct {
	mu     sync.RWMutex
	values map[Key]any
}

// WithContext returns a context with a fresh, empty store. A store that ctx already had is shadowed, not copied.
func WithContext(ctx context.Context) context.Context {
	return context.WithValue(ctx, contextKey{}, &store{})
}

// WithCopy returns a context with a store of its own, which holds what that of ctx holds now. What is stored or removed
// later in one of them does not concern the other.
//
// It panics if ctx has no store.
func WithCopy(ctx context.Context) context.Context {
	s := from(ctx)
	s.mu.RLock()
	defer s.mu.RUnlock()
	return context.WithValue(ctx, contextKey{}, &store{values: maps.Clone(s.values)})
}

// Check returns an error if ctx has no store. A node that may be called without a root asks it first.
func Check(ctx context.Context) error {
	if _, ok := ctx.Value(contextKey{}).(*store); !ok {
		return errNoStash
	}
	return nil
}

func from(ctx context.Context) *store {
	s, ok := ctx.Value(contextKey{}).(*store)
	if !ok {
		panic(errNoStash)
	}
	return s
}

// StoreValue puts value under key, replacing what was there. A nil value may be stored; it counts as present.
//
// It panics if ctx has no store.
func StoreValue(ctx context.Context, key Key, value any) {
	s := from(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.values == nil {
		s.values = map[Key]any{}
	}
	s.values[key] = value
}

// HasValue reports whether a value, nil included, is stored under key.
//
// It panics if ctx has no store.
func HasValue(ctx context.Context, key Key) bool {
	_, ok := lookup(ctx, key)
	return ok
}

// RetrieveValue returns what is stored under key, or nil if there is nothing.
//
// It panics if ctx has no store.
func RetrieveValue(ctx context.Context, key Key) any {
	value, _ := lookup(ctx, key)
	return value
}

// ClearValue removes what is stored under key and returns it, or nil if there was nothing.
//
// It panics if ctx has no store.
func ClearValue(ctx context.Context, key Key) any {
	s := from(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	value := s.values[key]
	delete(s.values, key)
	return value
}

func lookup(ctx context.Context, key Key) (any, bool) {
	s := from(ctx)
	s.mu.RLock()
	defer s.mu.RUnlock()
	value, ok := s.values[key]
	return value, ok
}
