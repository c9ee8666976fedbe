// Package execute executes the operations of a plan. It decides nothing but how a conflict is resolved.
//
// An operation makes this number of requests if nothing interferes:
//
//	create                1
//	apply                 1; 2 if it has ignored fields, overrides fields, or has no known managed fields;
//	                      1 more if managed fields have to be merged first, which also makes it read the object
//	adopt, relabel        2; 1 more if managed fields have to be merged
//	replace, orphan       2
//	delete, purge         1; 2 if the object may have changed unseen
//	recreate              as delete
//	check, delete type,
//	delete if unused      see package foreign
//
// An operation that meets a conflict is tried again with the object that exists then. No other error is tried again
// here: the operation ends with it, and the next request of the component makes a new plan.
//
// An object can be recorded in a version that is not served any more. It is deleted or orphaned in a version that is
// served. This takes a discovery for the type, and one more request for the first object of the type.
//
// # Ownership
//
// Every operation on an object that exists names its UID, and the API server refuses it for any other object. If the
// object is read, its ownership is checked too, and the write is refused if the object has changed since. If it is not
// read (delete, and apply in one request), its ownership is what the plan saw, and [Executor.Managed] says whether this
// is still current. If another component adopts the object in between, the next observation shows it.
package execute

import (
	"cmp"
	"context"
	"sync"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/foreign"
	"github.com/espalier-dev/espalier/internal/component/manifest"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/kinds"
	"github.com/espalier-dev/espalier/internal/panics"
	"github.com/espalier-dev/espalier/internal/served"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// defaultParallel is how many operations are executed at the same time.
const defaultParallel = 16

// attempts is how often an operation is tried that meets conflicts.
const attempts = 5

// Guard protects the instances that others have of types, and the objects that they have in namespaces. It is
// implemented by foreign.Guard.
type Guard interface {
	// Check finds out who uses the types that the object key defines.
	Check(ctx context.Context, key plan.Key) (plan.Use, error)
	// Fence prevents that more instances of the types are created that the objects define: of all types or of none.
	// With dryRun, it only finds out whether that would be refused.
	Fence(ctx context.Context, keys []plan.Key, dryRun bool) []foreign.Outcome
	// CheckPattern finds out who uses the types that match pattern.
	CheckPattern(ctx context.Context, pattern plan.Pattern) (plan.Use, error)
	// Delete deletes those of the objects, which define types or are namespaces, whose types no others use, and which
	// no others have objects in.
	Delete(ctx context.Context, targets []foreign.Target) []foreign.Outcome
	// Fenced reports whether the object key, whose metadata are given, says that it has a fence of this guard. It makes
	// no request.
	Fenced(key plan.Key, object metav1.Object) bool
	// Lift removes the fence of the object key, if it has one of this guard.
	Lift(ctx context.Context, key plan.Key) error
}

// Executor executes operations. It is used by one request; its methods are safe for concurrent use.
type Executor struct {
	// Client reads past the cache and writes, with the identity of the component.
	Client client.Client
	// Guard deletes types and namespaces, and checks their use.
	Guard Guard
	// Mark is the mark of the component.
	Mark Mark
	// FieldManager is used for all writes. Default: the prefix of the mark.
	FieldManager string
	// Reclaim are the prefixes of the field managers whose fields are taken over by an operation with Override.
	Reclaim []string
	// Parallel is how many operations are executed at the same time. Default: 16.
	Parallel int
	// Objects are the desired objects, by key.
	Objects map[plan.Key]*manifest.Object
	// Patterns are the additional managed types, for checks of them.
	Patterns []plan.Pattern
	// Records are the records of the inventory, by key; those of objects to be created need not be there. They say
	// which objects were ours, and whether instances that others have of a type, or objects that they have in a
	// namespace, matter when the object is deleted.
	Records map[plan.Key]apis.InventoryRecord
	// Managed returns our managed fields of the object as they were last seen, if that was the current version of the
	// object. If there is no function, or if it returns none, the managed fields are not known, and the object is read
	// before it is applied. If it returns none, the object may also have changed unseen, and it is read before it is
	// deleted.
	Managed func(key plan.Key) []metav1.ManagedFieldsEntry

	// Seen is called with each object that the API server returns, as soon as it does, from several goroutines at the
	// same time. What it returns is kept in the result in place of the object. Optional.
	Seen func(op plan.Operation, object *unstructured.Unstructured) plan.Observed

	versions servedVersions
}

// Result is the outcome of an operation.
type Result struct {
	Operation plan.Operation
	// Wave is that of the stage.
	Wave string
	// Object is the object as the API server returned it; nil if no answer contains it. If a create found an object of
	// that name, it is that object, and Err has the type [ExistsError]. With [Executor.Seen] it is nil.
	Object *unstructured.Unstructured
	// Observed is what [Executor.Seen] made of the object.
	Observed plan.Observed
	// Exists says that a create found an object of that name.
	Exists bool
	// Gone says that the object with the UID of the operation is known not to exist any more. An operation that was to
	// write it then has an error of type [StaleError].
	Gone bool
	// Unchanged says that the API server found nothing to change. It can be true only if the object was read before.
	Unchanged bool
	// Use is the outcome of a check, of a fence, or of the deletion of a type or a namespace.
	Use plan.Use
	// Err is why the operation failed.
	Err error
}

// Run executes a stage, several operations at a time, and returns a result for each operation, in their order. The
// others are tried even if one fails. After ctx is done, the rest fail with its error.
func (e *Executor) Run(ctx context.Context, stage plan.Stage) []Result {
	results := make([]Result, len(stage.Operations))
	var guarded, others []int
	for i := range results {
		results[i].Operation, results[i].Wave = stage.Operations[i], stage.Wave
		if e.isGuarded(&results[i].Operation) {
			guarded = append(guarded, i)
		} else {
			others = append(others, i)
		}
	}
	var group sync.WaitGroup
	if len(guarded) > 0 {
		group.Go(func() { e.deleteGuarded(ctx, results, guarded) })
	}
	e.parallelize(ctx, len(others), func(i int) { e.execute(ctx, &results[others[i]]) })
	group.Wait()
	return results
}

// parallelize calls do for 0 to n-1, several at a time, and returns when all calls have returned.
func (e *Executor) parallelize(ctx context.Context, n int, do func(i int)) {
	// Each call reports the error of a context that is done, so none is left out.
	ctx = context.WithoutCancel(ctx)
	workqueue.ParallelizeUntil(ctx, cmp.Or(max(e.Parallel, 0), defaultParallel), n, do)
}

func (e *Executor) fieldManager() client.FieldOwner {
	return client.FieldOwner(cmp.Or(e.FieldManager, e.Mark.Prefix))
}

// execute executes one operation. It is called by goroutines of its own, a panic of which would end the program.
func (e *Executor) execute(ctx context.Context, result *Result) {
	defer func() {
		if value := recover(); value != nil {
			result.Err = e.failure(result.Operation, panics.Recovered(ctx, value))
		}
	}()
	err := ctx.Err()
	if err == nil {
		err = e.dispatch(ctx, result)
	}
	e.conclude(result, err)
}

// conclude sets the error of a result, and hands on its object.
func (e *Executor) conclude(result *Result, err error) {
	if err != nil {
		if served.IsVersionGone(err) {
			e.forgetVersion(result.Operation.Key.GroupKind())
		}
		result.Gone = isStale(err)
		result.Err = e.failure(result.Operation, err)
	}
	if e.Seen != nil && result.Object != nil {
		result.Observed, result.Object = e.Seen(result.Operation, result.Object), nil
	}
}

// dispatch calls the function for the action of the operation. That function fills in the result.
func (e *Executor) dispatch(ctx context.Context, result *Result) error {
	op := result.Operation
	switch {
	case op.Action == plan.ActionCreate:
		return e.create(ctx, result)
	case op.Action == plan.ActionCheck && e.Guard == nil:
		return errNoGuard
	case op.Action == plan.ActionCheck:
		return e.check(ctx, result)
	case op.UID == "":
		return errNoUID
	case op.Action == plan.ActionPurge && kinds.IsContainer(op.Key.GroupKind()):
		return errPurgeOfContainer
	}
	switch op.Action {
	case plan.ActionAdopt, plan.ActionRelabel, plan.ActionApply, plan.ActionReplace:
		return e.write(ctx, result)
	case plan.ActionDelete, plan.ActionPurge, plan.ActionRecreate:
		return e.inServedVersion(ctx, result, e.delete)
	case plan.ActionOrphan:
		return e.inServedVersion(ctx, result, e.orphan)
	}
	return errUnknownAction
}
