package stash_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/espalier-dev/espalier/stash"
)

const key stash.Key = "example.com/key"

func TestStoredValues(t *testing.T) {
	tests := map[string]struct {
		do   func(context.Context)
		has  bool
		want any
	}{
		"nothing":            {do: func(context.Context) {}},
		"a value":            {do: func(ctx context.Context) { stash.StoreValue(ctx, key, 1) }, has: true, want: 1},
		"nil":                {do: func(ctx context.Context) { stash.StoreValue(ctx, key, nil) }, has: true},
		"under another key":  {do: func(ctx context.Context) { stash.StoreValue(ctx, "other", 1) }},
		"the last write":     {do: func(ctx context.Context) { stash.StoreValue(ctx, key, 1); stash.StoreValue(ctx, key, "2") }, has: true, want: "2"},
		"a value cleared":    {do: func(ctx context.Context) { stash.StoreValue(ctx, key, 1); stash.ClearValue(ctx, key) }},
		"in a nested stash":  {do: func(ctx context.Context) { stash.StoreValue(stash.WithContext(ctx), key, 1) }},
		"in a child context": {do: func(ctx context.Context) { stash.StoreValue(context.WithoutCancel(ctx), key, 1) }, has: true, want: 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ctx := stash.WithContext(t.Context())
			tc.do(ctx)
			if got := stash.HasValue(ctx, key); got != tc.has {
				t.Errorf("HasValue: want %t, got %t", tc.has, got)
			}
			if got := stash.RetrieveValue(ctx, key); got != tc.want {
				t.Errorf("RetrieveValue: want %v, got %v", tc.want, got)
			}
			if got := stash.ClearValue(ctx, key); got != tc.want {
				t.Errorf("ClearValue: want %v, got %v", tc.want, got)
			}
			if stash.HasValue(ctx, key) {
				t.Error("the value is still there after it was cleared")
			}
		})
	}
}

func TestANestedStashShadowsTheOuter(t *testing.T) {
	outer := stash.WithContext(t.Context())
	stash.StoreValue(outer, key, "outer")
	inner := stash.WithContext(outer)
	if stash.HasValue(inner, key) {
		t.Error("a fresh stash is not empty")
	}
	stash.StoreValue(inner, key, "inner")
	if got := stash.RetrieveValue(outer, key); got != "outer" {
		t.Errorf("the outer stash holds %v", got)
	}
}

func TestACopyIsOnItsOwn(t *testing.T) {
	outer := stash.WithContext(t.Context())
	stash.StoreValue(outer, key, "before")
	inner := stash.WithCopy(outer)
	if got := stash.RetrieveValue(inner, key); got != "before" {
		t.Errorf("the copy holds %v, want what the stash held", got)
	}
	stash.StoreValue(outer, key, "outer")
	stash.StoreValue(inner, "example.com/other", "inner")
	if got := stash.RetrieveValue(inner, key); got != "before" {
		t.Errorf("the copy holds %v after the stash has changed, want what it held before", got)
	}
	if stash.HasValue(outer, "example.com/other") {
		t.Error("the stash holds a value that was stored in its copy, want none")
	}
}

func TestAContextWithoutStashPanics(t *testing.T) {
	stasher := stash.New[int](key)
	for name, use := range map[string]func(context.Context){
		"StoreValue":      func(ctx context.Context) { stash.StoreValue(ctx, key, 1) },
		"HasValue":        func(ctx context.Context) { stash.HasValue(ctx, key) },
		"RetrieveValue":   func(ctx context.Context) { stash.RetrieveValue(ctx, key) },
		"ClearValue":      func(ctx context.Context) { stash.ClearValue(ctx, key) },
		"Store":           func(ctx context.Context) { stasher.Store(ctx, 1) },
		"Has":             func(ctx context.Context) { stasher.Has(ctx) },
		"Clear":           func(ctx context.Context) { stasher.Clear(ctx) },
		"RetrieveOrDie":   func(ctx context.Context) { stasher.RetrieveOrDie(ctx) },
		"RetrieveOrError": func(ctx context.Context) { _, _ = stasher.RetrieveOrError(ctx) },
		"RetrieveOrEmpty": func(ctx context.Context) { stasher.RetrieveOrEmpty(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				err, _ := recover().(error)
				want := "context not configured for stashing, call `ctx = WithContext(ctx)` before use"
				if err == nil || err.Error() != want {
					t.Errorf("want a panic with the error %q, got %v", want, err)
				}
			}()
			use(t.Context())
		})
	}
}

func TestStasher(t *testing.T) {
	ctx := stash.WithContext(t.Context())
	stasher := stash.New[string](key)
	if stasher.Key() != key {
		t.Errorf("want key %s, got %s", key, stasher.Key())
	}

	stasher.Store(ctx, "value")
	if !stasher.Has(ctx) {
		t.Error("want the value to be there")
	}
	if got := stash.New[string](key).RetrieveOrDie(ctx); got != "value" {
		t.Errorf("RetrieveOrDie through another stasher: want the value, got %q", got)
	}
	if got := stasher.RetrieveOrEmpty(ctx); got != "value" {
		t.Errorf("RetrieveOrEmpty: want the value, got %q", got)
	}
	if got := stasher.Clear(ctx); got != "value" {
		t.Errorf("Clear: want the value, got %q", got)
	}
	if stasher.Has(ctx) {
		t.Error("want nothing to be there")
	}
}

func TestStasherMeetsWhatItDoesNotExpect(t *testing.T) {
	tests := map[string]struct {
		given func(context.Context)
		want  error
		text  string
	}{
		"nothing": {func(context.Context) {}, stash.ErrValueNotFound, "value not found in stash: example.com/key"},
		"another type": {
			func(ctx context.Context) { stash.StoreValue(ctx, key, 1) }, stash.ErrValueNotAssignable,
			"value found in stash is not of an assignable type: example.com/key has type int, not string",
		},
		"nil": {func(ctx context.Context) { stash.StoreValue(ctx, key, nil) }, nil, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ctx := stash.WithContext(t.Context())
			tc.given(ctx)
			stasher := stash.New[string](key)

			if got, err := stasher.RetrieveOrError(ctx); got != "" || !errors.Is(err, tc.want) {
				t.Errorf("RetrieveOrError: want an empty value and %v, got %q, %v", tc.want, got, err)
			}
			if got := stasher.RetrieveOrEmpty(ctx); got != "" {
				t.Errorf("RetrieveOrEmpty: want an empty value, got %q", got)
			}
			died := recovered(func() { stasher.RetrieveOrDie(ctx) })
			if !errors.Is(died, tc.want) || died != nil && died.Error() != tc.text {
				t.Errorf("RetrieveOrDie: want panic %q, got %v", tc.text, died)
			}
			if got := stasher.Clear(ctx); got != "" {
				t.Errorf("Clear: want an empty value, got %q", got)
			}
			if stash.HasValue(ctx, key) {
				t.Error("the value is still there after it was cleared")
			}
		})
	}
}

func TestStasherOfAnInterface(t *testing.T) {
	ctx := stash.WithContext(t.Context())
	stasher := stash.New[fmt.Stringer](key)
	stasher.Store(ctx, nil)
	if got, err := stasher.RetrieveOrError(ctx); got != nil || err != nil {
		t.Errorf("want nil without error, got %v, %v", got, err)
	}
	stash.StoreValue(ctx, key, stringer("value"))
	if got := stasher.RetrieveOrDie(ctx); got != stringer("value") {
		t.Errorf("want the value that implements it, got %v", got)
	}
}

type stringer string

func (s stringer) String() string { return string(s) }

// recovered returns the error that do panics with, or nil.
func recovered(do func()) (err error) {
	defer func() { err, _ = recover().(error) }()
	do()
	return nil
}

// Run with -race.
func TestConcurrentUse(t *testing.T) {
	ctx := stash.WithContext(t.Context())
	shared := stash.New[int]("example.com/shared")
	var group sync.WaitGroup
	for g := range 8 {
		group.Go(func() {
			own := stash.New[int](stash.Key(fmt.Sprint("example.com/own-", g)))
			for i := range 200 {
				own.Store(ctx, i)
				shared.Store(ctx, i)
				if got := own.RetrieveOrDie(ctx); got != i {
					t.Errorf("want %d, got %d", i, got)
				}
				shared.RetrieveOrEmpty(ctx)
				shared.Has(ctx)
				shared.Clear(ctx)
			}
		})
	}
	group.Wait()
	for g := range 8 {
		if got := stash.RetrieveValue(ctx, stash.Key(fmt.Sprint("example.com/own-", g))); got != 199 {
			t.Errorf("want the last value of %d, got %v", g, got)
		}
	}
}
