// Package validation lets the nodes of a tree check their own configuration, and the whole tree with them.
package validation

import "context"

// Validator is implemented by values that can check their own configuration.
type Validator interface {
	// Validate returns an error that names the value and the wrong field. It changes nothing. If [IsRecursive] is true
	// for ctx, it also validates nested values that are Validators.
	Validate(ctx context.Context) error
}

// Defaulter is implemented by a resource that can fill in its own defaults.
type Defaulter interface {
	// Default sets the fields of the receiver that the author left out.
	Default(ctx context.Context) error
}

type recursive struct{}

// WithRecursive returns a context under which [Validator]s validate the values nested in them as well.
func WithRecursive(ctx context.Context) context.Context {
	return context.WithValue(ctx, recursive{}, true)
}

// IsRecursive reports whether ctx asks Validators to validate nested values too.
func IsRecursive(ctx context.Context) bool {
	on, _ := ctx.Value(recursive{}).(bool)
	return on
}
