package reconcilers

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// While runs a node again and again, as long as a condition holds.
//
//   - Runs: the nested node after each time that the condition held. The condition is asked before each iteration.
//   - Stops: when the condition does not hold, at an error, or once the limit is reached and the condition holds still.
//   - On error: returns the error with the aggregated results of all iterations, the last one included. At the limit
//     the error is an [ErrMaxIterations], and when the context of the request has ended, the error of that.
//   - On deletion: the same.
//
// Without an error the results of the iterations are aggregated, see [AggregateResults]. Paths and logs name the
// iteration below the node; [RetrieveIteration] tells it to the condition and to the nodes.
type While[Type client.Object] struct {
	// Name identifies the node in paths and logs. Default: While.
	Name string

	// Setup adds watches and indexes, before those of the nested node. Optional.
	Setup func(ctx context.Context, mgr Manager, bldr *Builder) error

	// Condition says whether the nested node runs once more. It must not change the resource. Required.
	Condition func(ctx context.Context, resource Type) bool

	// Reconciler is the nested node. Required.
	Reconciler SubReconciler[Type]

	// MaxIterations limits how often the nested node runs in one request. Zero is no limit; less is not valid. Default:
	// 100.
	MaxIterations *int

	initOnce sync.Once
}

var _ SubReconciler[client.Object] = (*While[client.Object])(nil)

// ErrMaxIterations is the error, as a pointer, of a [While] whose condition holds still when the limit is reached.
type ErrMaxIterations struct {
	// Iterations is how often the nested node has run, which is the limit.
	Iterations int
}

var _ error = (*ErrMaxIterations)(nil)

func (e *ErrMaxIterations) Error() string {
	return fmt.Sprintf("exceeded max iterations: %d", e.Iterations)
}

// iteration is the context of one iteration: its place in the tree, and its number.
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
		nodePath: nodePath{Context: ctx, name: strconv.Itoa(index), parent: pathOf(ctx)},
		index:    index,
	}
}

// RetrieveIteration returns which iteration of the innermost [While] the code below ctx runs in, counted from zero, or
// -1 outside of any.
func RetrieveIteration(ctx context.Context) int {
	if i, ok := ctx.Value(iterationKey{}).(*iteration); ok {
		return i.index
	}
	return -1
}

func (r *While[Type]) init() {
	r.initOnce.Do(func() {
		if r.Name == "" {
			r.Name = "While"
		}
		if r.MaxIterations == nil {
			r.MaxIterations = new(100)
		}
	})
}

// SetupWithManager validates, then sets up the node itself and the nested node.
func (r *While[Type]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	r.init()
	ctx = Enter(ctx, r.Name)
	if err := r.Validate(ctx); err != nil {
		return err
	}
	if r.Setup != nil {
		if err := r.Setup(ctx, mgr, bldr); err != nil {
			return err
		}
	}
	return r.Reconciler.SetupWithManager(ctx, mgr, bldr)
}

// Validate checks that the fields are set as they must be and, if recursive, the nested node.
func (r *While[Type]) Validate(ctx context.Context) error {
	r.init()
	if err := r.check(); err != nil {
		return err
	}
	if err := validateNested(ctx, r.Reconciler); err != nil {
		return fmt.Errorf("While %q must have a valid Reconciler: %w", r.Name, err)
	}
	return nil
}

func (r *While[Type]) check() error {
	if r.Condition == nil {
		return fmt.Errorf("While %q must implement Condition", r.Name)
	}
	if isNilNode(r.Reconciler) {
		return fmt.Errorf("While %q must implement Reconciler", r.Name)
	}
	// A limit that was computed, and came out wrong, must not become a loop without one.
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
		if err := r.mayRun(ctx, i); err != nil {
			recordFailure(ctx, "", err)
			return aggregate, err
		}
		result, err := r.Reconciler.Reconcile(at, resource)
		aggregate = aggregateResult(aggregate, result)
		if err != nil {
			recordUnlocated(at, err)
			return aggregate, err
		}
	}
}

// mayRun returns why there may not be another iteration, after as many as done.
func (r *While[Type]) mayRun(ctx context.Context, done int) error {
	if limit := *r.MaxIterations; limit > 0 && done >= limit {
		return &ErrMaxIterations{Iterations: done}
	}
	// A loop without a limit, over nodes that do not look at the context, would outlast the program.
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
