package reconcilers

import (
	"github.com/espalier-dev/espalier/stash"
	"github.com/espalier-dev/espalier/validation"

	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// These names of controller-runtime and of other packages of this module are part of signatures of this package. With
// the aliases, a file with reconcilers needs few imports.
type (
	// Builder is controller-runtime's builder of a controller.
	Builder = builder.Builder
	// Manager is controller-runtime's manager.
	Manager = manager.Manager
	// Request names the resource to reconcile.
	Request = reconcile.Request
	// Result tells controller-runtime when to reconcile again. [AggregateResults] combines several of them.
	Result = reconcile.Result
	// Defaulter is implemented by a resource that sets its own defaults.
	Defaulter = validation.Defaulter
	// StashKey names a value in the stash of a request.
	StashKey = stash.Key
)

// Stasher reads and writes one key of the stash as a value of type T.
type Stasher[T any] = stash.Stasher[T]

// The functions and errors of package stash.
var (
	WithStash     = stash.WithContext
	StashValue    = stash.StoreValue
	RetrieveValue = stash.RetrieveValue
	HasValue      = stash.HasValue
	ClearValue    = stash.ClearValue

	ErrStashValueNotFound      = stash.ErrValueNotFound
	ErrStashValueNotAssignable = stash.ErrValueNotAssignable
)

// NewStasher returns a Stasher for key.
func NewStasher[T any](key stash.Key) stash.Stasher[T] {
	return stash.New[T](key)
}
