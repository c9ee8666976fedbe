package reconcilers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/espalier-dev/espalier/internal/gotype"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// SuppressTransientErrors hides the first errors in a row of a node, because many errors disappear after a retry.
//
//   - Runs: the nested node.
//   - Stops: never on its own.
//   - On error: until the nested node has failed Threshold times in a row, returns its result, and its error joined
//     with [ErrQuiet] and [ErrSkipStatusUpdate]. The root then retries, does not write the status, and logs and records
//     nothing. From then on the error is returned unchanged. An [ErrDurable] and a panic are always returned
//     unchanged.
//   - On deletion: the same.
//
// Errors are counted per resource. A request without an error, an ErrDurable, and a new generation of the resource
// reset the count to zero. An [ErrHaltSubReconcilers] counts as an error.
//
// The count is dropped when the resource is gone. A hand-written reconciler has to run the node by [Embed]: else
// nothing is counted, and each error is returned unchanged.
type SuppressTransientErrors[Type client.Object, ListType client.ObjectList] struct {
	// Name identifies the node in paths and logs. Default: SuppressTransientErrors.
	Name string

	// ListType is not used. It is there for code that was written for reconciler.io.
	ListType ListType

	// Setup adds watches and indexes, after those of the nested node. Optional.
	Setup func(ctx context.Context, mgr Manager, bldr *Builder) error

	// Threshold is the number of the first error in a row that is returned unchanged. Default: 3, so two are
	// suppressed.
	Threshold uint8

	// Reconciler is the nested node. Required.
	Reconciler SubReconciler[Type]

	initOnce sync.Once
	counts   ResourceState[*errorCount]
}

var _ SubReconciler[client.Object] = (*SuppressTransientErrors[client.Object, client.ObjectList])(nil)

func (r *SuppressTransientErrors[T, LT]) init() {
	r.initOnce.Do(func() {
		r.Name = cmp.Or(r.Name, "SuppressTransientErrors")
		r.Threshold = cmp.Or(r.Threshold, 3)
	})
}

// SetupWithManager validates, then sets up the nested node and the node itself.
func (r *SuppressTransientErrors[T, LT]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	r.init()
	return setUpNode(ctx, mgr, bldr, r, r.Name, setUpOf(r.Reconciler), r.Setup)
}

// Validate checks that the required fields are set and, if recursive, the nested node.
func (r *SuppressTransientErrors[T, LT]) Validate(ctx context.Context) error {
	r.init()
	if err := r.check(); err != nil {
		return err
	}
	return validateField(ctx, "SuppressTransientErrors", r.Name, "Reconciler", r.Reconciler)
}

func (r *SuppressTransientErrors[T, LT]) check() error {
	if gotype.IsNil(r.Reconciler) {
		return fmt.Errorf("SuppressTransientErrors %q must implement Reconciler", r.Name)
	}
	return nil
}

// Reconcile runs the nested node, see [SuppressTransientErrors].
func (r *SuppressTransientErrors[T, LT]) Reconcile(ctx context.Context, resource T) (Result, error) {
	r.init()
	if err := r.check(); err != nil {
		return Result{}, err
	}
	ctx = Enter(ctx, r.Name)
	count := r.counts.Of(ctx, func() *errorCount { return &errorCount{} })

	result, err := ReconcileNested(ctx, r.Reconciler, resource)
	if err == nil || errors.Is(err, ErrDurable) || isPanic(err) {
		count.reset()
		return result, err
	}
	if count.add(resource.GetGeneration()) < r.Threshold && !isForgetful(ctx) {
		return result, errors.Join(err, ErrSkipStatusUpdate, ErrQuiet)
	}
	return result, err
}

// errorCount counts the errors in a row of one resource at one generation. The zero value is ready for use, also
// concurrently.
type errorCount struct {
	mu         sync.Mutex
	generation int64
	errors     uint8
}

// add counts an error and returns the number of errors in a row at the generation, 255 at most.
func (c *errorCount) add(generation int64) uint8 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.generation != generation {
		c.generation, c.errors = generation, 0
	}
	if c.errors < math.MaxUint8 {
		c.errors++
	}
	return c.errors
}

func (c *errorCount) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.errors = 0
}

// Describe shows the nested node.
func (r *SuppressTransientErrors[T, LT]) Describe() Description {
	r.init()
	return Description{
		Kind:   "SuppressTransientErrors",
		Name:   r.Name,
		Detail: fmt.Sprintf("up to %d", r.Threshold-1),
		Nodes:  []Description{Describe(r.Reconciler)},
	}
}
