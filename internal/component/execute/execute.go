// Package execute carries out the operations of a plan. It decides nothing, but what becomes of a conflict.
//
// What each operation costs, in requests, where nothing comes between:
//
//	create                1
//	apply                 1; 2 if it has ignored fields, overrides, or nothing is known of its managed fields; 1 more if fields
//	                      have to be merged first, which is also what makes it read the object
//	adopt                 2; 1 more if fields have to be merged
//	replace, orphan       2
//	delete, purge         1; 2 if the object may have changed unseen
//	recreate              as delete
//	check, delete type    those of the guard
//
// An operation that meets a conflict is tried again with what is there then. Nothing else is: an error that may pass ends the
// operation, and the next pass begins with what there is.
//
// An object that is to go, and whose type is not served any more in the version that was recorded, goes in one that is served: that
// takes a discovery for the type, and one more request for the first of its objects.
//
// # Whose the object is
//
// Every operation on an object that exists names its UID, and the API server refuses it for any other object. Where the object is
// read, its marks are checked too, and the write is refused if the object has changed since. Where it is not read (delete, and
// apply in one request), the marks are as old as what the plan saw, and [Executor.Managed] says that it saw the present: if another
// component adopts the object in between, the next observation tells.
package execute

import (
	"cmp"
	"context"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/manifest"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/component/served"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// defaultParallel is how many operations are carried out at the same time.
const defaultParallel = 16

// attempts is how often an operation is tried that meets conflicts.
const attempts = 5

// Mark is what tells that an object is ours.
type Mark struct {
	// Prefix is that of the keys.
	Prefix string
	// ID is the value of the label, Owner the clear text of the annotation.
	ID, Owner string
}

// Guard protects the instances that others have of types. It is implemented by foreign.Guard.
type Guard interface {
	// Check finds out who uses the types that the object key defines, and, with fence, fences off the creation of more.
	Check(ctx context.Context, key plan.Key, fence bool) (plan.Use, error)
	// CheckPattern finds out who uses the types that match pattern.
	CheckPattern(ctx context.Context, pattern plan.Pattern) (plan.Use, error)
	// Delete deletes the object that defines types, provided that it has that UID and nobody else uses them.
	Delete(ctx context.Context, key plan.Key, uid types.UID) (plan.Use, error)
	// Lift takes the fence off the object key that defines types, if it has one of ours.
	Lift(ctx context.Context, key plan.Key) error
}

// Executor carries out operations. It is used by one request; its methods are safe for concurrent use.
type Executor struct {
	// Client reads past the cache and writes, with the identity of the component.
	Client client.Client
	// Guard deletes types and checks their use.
	Guard Guard
	Mark  Mark
	// FieldManager is the one that all is written as. Default: the prefix of the mark.
	FieldManager string
	// Reclaim are the prefixes of the field managers whose fields an Override takes.
	Reclaim []string
	// Parallel is how many operations are carried out at the same time. Default: 16.
	Parallel int
	// Deleting: the component is going. Checks then fence.
	Deleting bool
	// Objects are those desired, by key.
	Objects map[plan.Key]*manifest.Object
	// Patterns are the additional managed types, for checks of them.
	Patterns []plan.Pattern
	// Records are those of the inventory, by key. They say of objects, desired or not, whether the instances that others have of
	// their types matter.
	Records map[plan.Key]apis.InventoryRecord
	// Managed returns the managed fields of ours that were seen of the object last, if they are those of this version of it.
	// None, or no function, means that nothing is known of them: the object is then read before it is applied. None means as
	// well that the object may have changed unseen: it is then read before it is deleted, too.
	Managed func(key plan.Key) []metav1.ManagedFieldsEntry

	versions versions
}

// Result is what became of an operation.
type Result struct {
	Operation plan.Operation
	// Object is the object as the API server answered; nil if there is no answer that shows it. After a create that found an
	// object of that name it is that object, along with an error of type [ExistsError].
	Object *unstructured.Unstructured
	// Gone: the object that the operation is about, the one of that UID, is known not to exist any more. An operation that was
	// to write it has an error besides, of type [StaleError].
	Gone bool
	// Unchanged: the API server found that there was nothing to change. It is only ever true where the object was read before.
	Unchanged bool
	// Use is the outcome of a check, or of the deletion of a type.
	Use plan.Use
	// Err is why it could not be done.
	Err error
}

// Run carries out a stage, with bounded parallelism, and returns a result for each operation, in their order. One that fails does
// not keep the others from being tried; after ctx is done, the rest fail with its error.
func (e *Executor) Run(ctx context.Context, stage plan.Stage) []Result {
	results := make([]Result, len(stage.Operations))
	e.each(len(stage.Operations), func(i int) {
		results[i] = e.carryOut(ctx, stage.Operations[i])
	})
	return results
}

// each calls do for 0 to n-1, several at a time, and returns when all have returned.
func (e *Executor) each(n int, do func(i int)) {
	var group errgroup.Group
	group.SetLimit(e.parallel())
	for i := range n {
		group.Go(func() error {
			do(i)
			return nil
		})
	}
	// None returns an error.
	_ = group.Wait()
}

func (e *Executor) parallel() int {
	if e.Parallel > 0 {
		return e.Parallel
	}
	return defaultParallel
}

func (e *Executor) fieldManager() client.FieldOwner {
	return client.FieldOwner(cmp.Or(e.FieldManager, e.Mark.Prefix))
}

// carryOut carries out one operation.
func (e *Executor) carryOut(ctx context.Context, op plan.Operation) Result {
	result := Result{Operation: op}
	err := ctx.Err()
	if err == nil {
		err = e.dispatch(ctx, &result)
	}
	if err != nil {
		if served.IsVersionGone(err) {
			e.doubt(op.Key.GroupKind())
		}
		result.Gone = isStale(err)
		result.Err = e.failure(op, err)
	}
	return result
}

// dispatch does what result.Operation says, and notes in result what came of it.
func (e *Executor) dispatch(ctx context.Context, result *Result) error {
	op := result.Operation
	switch op.Action {
	case plan.ActionCreate:
		return e.create(ctx, result)
	case plan.ActionCheck:
		return e.check(ctx, result)
	}
	if op.UID == "" {
		return errNoUID
	}
	switch op.Action {
	case plan.ActionAdopt, plan.ActionApply, plan.ActionReplace:
		return e.write(ctx, result)
	case plan.ActionOrphan:
		return e.orphan(ctx, result)
	case plan.ActionPurge:
		if definesTypes(op.Key) {
			return errPurgeOfType
		}
		return e.remove(ctx, result)
	case plan.ActionDelete:
		if definesTypes(op.Key) && !e.Records[op.Key].IgnoreForeignInstances {
			return e.removeType(ctx, result)
		}
		return e.remove(ctx, result)
	case plan.ActionRecreate:
		if definesTypes(op.Key) {
			return e.removeType(ctx, result)
		}
		return e.remove(ctx, result)
	case plan.ActionDeleteType:
		return e.removeType(ctx, result)
	}
	return errUnknownAction
}

// check finds out how others use types.
func (e *Executor) check(ctx context.Context, result *Result) error {
	op := result.Operation
	if e.Guard == nil {
		return errNoGuard
	}
	var err error
	switch {
	case op.Pattern < 0:
		result.Use, err = e.Guard.Check(ctx, op.Key, e.Deleting)
	case op.Pattern < len(e.Patterns):
		result.Use, err = e.Guard.CheckPattern(ctx, e.Patterns[op.Pattern])
	default:
		err = errNoPattern
	}
	return err
}
