package reconcilers

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/gotype"
)

// While runs a node again and again, as long as a condition is true.
//
//   - Runs: the nested node, in one iteration after the other. The condition is evaluated before each iteration.
//   - Stops: when the condition is false, at an error, or when the condition is still true after the last allowed
//     iteration.
//   - On error: returns the error with the aggregated results of all iterations, the last one included. At the limit
//     the error is an [ErrMaxIterations]. If the context of the request has ended, the error wraps the error of the
//     context.
//   - On deletion: the same.
//
// Without an error the results of the iterations are aggregated, see [AggregateResults]. In paths and logs the number
// of the iteration follows the name of the node. The condition and the nodes get it from [RetrieveIteration].
type While[Type client.Object] struct {
	// Name identifies the node in paths and logs. Default: While.
	Name string

	// Setup adds watches and indexes, before those of the nested node. Optional.
	Setup func(ctx context.Context, mgr Manager, bldr *Builder) error

	// Condition reports whether the nested node runs once more. It must not change the resource. Required.
	Condition func(ctx context.Context, resource Type) bool

	// Reconciler is the nested node. Required.
	Reconciler SubReconciler[Type]

	// MaxIterations limits how often the nested node runs in one request. Zero means no limit. A negative number is not
	// valid. Default: 100.
	MaxIterations *int

	initOnce sync.Once
}

var _ SubReconciler[client.Object] = (*While[client.Object])(nil)

// ErrMaxIterations is the error of a [While] whose condition is still true when the limit is reached. It is returned as
// a pointer.
type ErrMaxIterations struct {
	// Iterations is how often the nested node has run, which is the limit.
	Iterations int
}

var _ error = (*ErrMaxIterations)(nil)

func (e *ErrMaxIterations) Error() string {
	return fmt.Sprintf("exceeded max iterations: %d", e.Iterations)
}

// iteration is the context of one iteration. It has the path and the number of the iteration.
type iteration struct {
	nodePath
	index int
}

type iterationKey struct{}

func (i *iteration) Value(key any) any {
	if key == (iterationKey{}) {
		return i
	}
	return i.nodePath.Value(key)
}

func enterIteration(ctx context.Context, index int) context.Context {
	return &iteration{
		nodePath: nodePath{Context: ctx, name: strconv.Itoa(index), parent: pathOf(ctx), place: placeIteration},
		index:    index,
	}
}

// RetrieveIteration returns the number of the current iteration of the innermost [While], counted from zero. Outside of
// a While it returns -1.
func RetrieveIteration(ctx context.Context) int {
	if i, ok := ctx.Value(iterationKey{}).(*iteration); ok {
		return i.index
	}
	return -1
}

func (r *While[Type]) init() {
	r.initOnce.Do(func() {
		r.Name = cmp.Or(r.Name, "While")
		if r.MaxIterations == nil {
			r.MaxIterations = new(100)
		}
	})
}

// SetupWithManager validates, then sets up the node itself and the nested node.
func (r *While[Type]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	r.init()
	return setUpNode(ctx, mgr, bldr, r, r.Name, r.Setup, setUpOf(r.Reconciler))
}

// Validate checks that the fields are set as they must be and, if recursive, the nested node.
func (r *While[Type]) Validate(ctx context.Context) error {
	r.init()
	if err := r.check(); err != nil {
		return err
	}
	return validateField(ctx, "While", r.Name, "Reconciler", r.Reconciler)
}

func (r *While[Type]) check() error {
	if r.Condition == nil {
		return fmt.Errorf("While %q must implement Condition", r.Name)
	}
	if gotype.IsNil(r.Reconciler) {
		return fmt.Errorf("While %q must implement Reconciler", r.Name)
	}
	// A limit that was computed wrongly must not mean a loop without a limit.
	if *r.MaxIterations < 0 {
		return fmt.Errorf("While %q may not have a negative MaxIterations", r.Name)
	}
	return nil
}

// Reconcile runs the nested node, see [While].
func (r *While[Type]) Reconcile(ctx context.Context, resource Type) (Result, error) {
	r.init()
	if err := r.check(); err != nil {
		return Result{}, err
	}
	ctx = Enter(ctx, r.Name)

	aggregate := Result{}
	for i := 0; ; i++ {
		at := enterIteration(ctx, i)
		if !r.Condition(at, resource) {
			return aggregate, nil
		}
		if err := r.checkLimit(ctx, i); err != nil {
			recordFailure(ctx, "", err)
			return aggregate, err
		}
		result, err := ReconcileNested(at, r.Reconciler, resource)
		aggregate = aggregateResult(aggregate, result)
		if err != nil {
			return aggregate, err
		}
	}
}

// checkLimit returns an error if no other iteration may follow the first done ones.
func (r *While[Type]) checkLimit(ctx context.Context, done int) error {
	if limit := *r.MaxIterations; limit > 0 && done >= limit {
		return &ErrMaxIterations{Iterations: done}
	}
	// If the nodes ignore the context, a loop without a limit would not end when the program stops.
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("While %q was interrupted: %w", r.Name, err)
	}
	return nil
}

// Describe shows the nested node.
func (r *While[Type]) Describe() Description {
	r.init()
	return Description{Kind: "While", Name: r.Name, Nodes: []Description{Describe(r.Reconciler)}}
}
