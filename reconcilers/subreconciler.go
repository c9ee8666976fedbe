package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/validation"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// SubReconciler is a node of a reconciler tree: it does one part of the work for a resource of type Type. Leaves
// ([SyncReconciler], [ChildReconciler]) act on the cluster or on the outside world; combinators ([Sequence], [IfThen],
// [WithFinalizer]) run other nodes.
//
// An implementation has these duties:
//
//   - Reconcile converges: it may run at any time, any number of times, after a crash at any point, and works towards
//     the same end state each time.
//   - It changes resource in memory only. The root writes the status, once, after the whole tree has run. All other
//     changes of the resource are dropped.
//   - It reads and writes through [RetrieveConfigOrDie], so that [Config] can be replaced around it, and takes the time
//     from package time, so that it can be tested.
//   - When the resource is terminating (its deletion timestamp is set), it deletes what it created, and creates
//     nothing.
//   - It returns an error if its work could not be done. [ErrQuiet], [ErrHaltSubReconcilers] and [ErrSkipStatusUpdate]
//     have special meanings.
//
// A node may also be a [Describer], to appear in the printed tree and in the RBAC rules derived from it, and a
// [github.com/espalier-dev/espalier/validation.Validator], to have its configuration checked.
type SubReconciler[Type client.Object] interface {
	// SetupWithManager is called once, before the manager starts, parents before children. It adds watches and indexes.
	// The context is the one of the root's set-up: it has the config and the type of the resource.
	SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error

	// Reconcile does the work for one resource. A result without an error is aggregated with those of the other nodes.
	Reconcile(ctx context.Context, resource Type) (Result, error)
}

var errNilNode = errors.New("must not be nil")

// validateNested validates a node nested in another, if the validation is recursive. A node without Validate is valid.
//
// Before the set-up of the tree, a node of another package is not validated, because its Validate may need what its
// SetupWithManager prepares. It is validated after the set-up.
func validateNested(ctx context.Context, node any) error {
	if !validation.IsRecursive(ctx) {
		return nil
	}
	if gotype.IsNil(node) {
		return errNilNode
	}
	validator, ok := node.(validation.Validator)
	if !ok || contextOf(ctx).beforeSetup && !isOfThisPackage(node) {
		return nil
	}
	return validator.Validate(ctx)
}

func isOfThisPackage(node any) bool {
	t := reflect.TypeOf(node)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.PkgPath() == reflect.TypeFor[treeContext]().PkgPath()
}

// AggregateResults makes one result of several:
//
//   - no result, or only empty results, gives the empty result;
//   - the delay is the shortest of the positive delays;
//   - a requeue is kept, also beside a delay;
//   - the priority is the highest of the priorities that are set.
func AggregateResults(results ...Result) Result {
	var aggregate Result
	for _, result := range results {
		aggregate = aggregateResult(aggregate, result)
	}
	return aggregate
}

func aggregateResult(a, b Result) Result {
	// The queue ignores a negative delay, so it must not replace a positive one.
	if b.RequeueAfter > 0 && (a.RequeueAfter <= 0 || b.RequeueAfter < a.RequeueAfter) {
		a.RequeueAfter = b.RequeueAfter
	}
	if b.Priority != nil && (a.Priority == nil || *b.Priority > *a.Priority) {
		a.Priority = b.Priority
	}
	//lint:ignore SA1019 users still set it, and it must not be lost
	return withRequeue(a, a.Requeue || b.Requeue)
}

// withRequeue returns result with Requeue set to requeue. Controller-runtime has deprecated the field in favour of
// delays, but there is no other way to ask for the back-off of the queue without an error.
func withRequeue(result Result, requeue bool) Result {
	//lint:ignore SA1019 see above
	result.Requeue = requeue
	return result
}

// setUpStep is the Setup of a node, or the set-up of a node nested in it.
type setUpStep = func(ctx context.Context, mgr Manager, bldr *Builder) error

// setUpNode validates a node and then runs the steps of its set-up in order, up to the first error. A nil step is
// skipped.
func setUpNode(
	ctx context.Context, mgr Manager, bldr *Builder, node validation.Validator, name string, steps ...setUpStep,
) error {
	ctx = Enter(ctx, name)
	if err := node.Validate(ctx); err != nil {
		return err
	}
	for _, step := range steps {
		if step == nil {
			continue
		}
		if err := step(ctx, mgr, bldr); err != nil {
			return err
		}
	}
	return nil
}

// setUpOf returns the set-up of a nested node, or nil if the node is nil.
func setUpOf[Type client.Object](node SubReconciler[Type]) setUpStep {
	if gotype.IsNil(node) {
		return nil
	}
	return node.SetupWithManager
}

// validateField validates the node in a field of another node, if the validation is recursive.
func validateField(ctx context.Context, kind, name, field string, node any) error {
	if err := validateNested(ctx, node); err != nil {
		return fmt.Errorf("%s %q must have a valid %s: %w", kind, name, field, err)
	}
	return nil
}
