package stash

import (
	"context"
	"fmt"
	"reflect"
)

// Stasher reads and writes one key of the store as a value of type T. It is stateless, so one Stasher, usually a
// package variable, serves all requests.
//
// Every method that takes a context panics if that context has no store.
type Stasher[T any] interface {
	// Key is the key that this Stasher reads and writes.
	Key() Key
	// Store puts value under the key.
	Store(ctx context.Context, value T)
	// Clear removes the value and returns it: the zero value if there was none or if it was not a T.
	Clear(ctx context.Context) T
	// Has reports whether a value of any type is stored under the key.
	Has(ctx context.Context) bool
	// RetrieveOrDie returns the value and panics with the error that RetrieveOrError would return. Use it only for a
	// value that an earlier node of the same sequence always stores.
	RetrieveOrDie(ctx context.Context) T
	// RetrieveOrError returns the value, or the zero value with an error that names the key: errors.Is finds
	// ErrValueNotFound in it if there is none, or ErrValueNotAssignable if it is not a T. A stored nil is returned as
	// the zero value without an error.
	RetrieveOrError(ctx context.Context) (T, error)
	// RetrieveOrEmpty returns the value, or the zero value if there is none or if it is not a T.
	RetrieveOrEmpty(ctx context.Context) T
}

// New returns a Stasher for key. Two Stashers of one key share the value.
func New[T any](key Key) Stasher[T] {
	return stasher[T]{key: key}
}

type stasher[T any] struct {
	key Key
}

func (s stasher[T]) Key() Key {
	return s.key
}

func (s stasher[T]) Store(ctx context.Context, value T) {
	StoreValue(ctx, s.key, value)
}

func (s stasher[T]) Clear(ctx context.Context) T {
	value, _ := ClearValue(ctx, s.key).(T)
	return value
}

func (s stasher[T]) Has(ctx context.Context) bool {
	return HasValue(ctx, s.key)
}

func (s stasher[T]) RetrieveOrDie(ctx context.Context) T {
	value, err := s.RetrieveOrError(ctx)
	if err != nil {
		panic(err)
	}
	return value
}

func (s stasher[T]) RetrieveOrError(ctx context.Context) (T, error) {
	var empty T
	value, ok := lookup(ctx, s.key)
	if !ok {
		return empty, fmt.Errorf("%w: %s", ErrValueNotFound, s.key)
	}
	if value == nil {
		return empty, nil
	}
	typed, ok := value.(T)
	if !ok {
		return empty, fmt.Errorf("%w: %s has type %T, not %s",
			ErrValueNotAssignable, s.key, value, reflect.TypeFor[T]())
	}
	return typed, nil
}

func (s stasher[T]) RetrieveOrEmpty(ctx context.Context) T {
	value, _ := lookup(ctx, s.key)
	typed, _ := value.(T)
	return typed
}
