package reconcilers

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/espalier-dev/espalier/stash"
	"github.com/espalier-dev/espalier/validation"

	"github.com/google/go-cmp/cmp"
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

// IgnoreAllUnexported makes go-cmp skip every struct field whose name does not start with an upper-case letter, at any
// depth.
var IgnoreAllUnexported cmp.Option = cmp.FilterPath(func(path cmp.Path) bool {
	if len(path) == 0 {
		return false
	}
	// The text of a step to a field is a point and the name. To ask for the type of the step, or for Path.Last, would
	// have the linker keep all exported methods of the program: a third of its size.
	name, ok := strings.CutPrefix(path[len(path)-1].String(), ".")
	first, _ := utf8.DecodeRuneInString(name)
	return ok && (first == '_' || unicode.IsLetter(first)) && !unicode.IsUpper(first)
}, cmp.Ignore())
