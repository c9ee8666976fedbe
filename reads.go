package espalier

import (
	"context"
	"fmt"
	"reflect"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/stash"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Read is a node that reads an object that the resource refers to. [Reads] returns it.
type Read[Type, ObjectType client.Object] struct {
	Ordered[*Read[Type, ObjectType]]

	into     stash.Stasher[ObjectType]
	key      func(ctx context.Context, resource Type) types.NamespacedName
	optional bool
}

// Reads returns a node that reads the object whose name key returns, through the cache, and stores it in the stash for
// the nodes after it. The resource is reconciled again when the object changes, and when it comes or goes. If the name
// is empty, there is nothing to read. The object is for reading only.
//
//   - Runs: reads the object.
//   - Stops: if the object does not exist. The nodes after it do not run, so what they made stays as it is. The
//     conditions that they report are Unknown then, with the reason Waiting. Nothing is retried: the event of the
//     object wakes the resource. With [Read.Optional] they run, without a value in the stash.
//   - On error: returns it.
//   - On deletion, and on [reconcilers.Withdraw]: does nothing.
func Reads[Type, ObjectType client.Object](
	name string, into stash.Stasher[ObjectType],
	key func(ctx context.Context, resource Type) types.NamespacedName,
) *Read[Type, ObjectType] {
	node := &Read[Type, ObjectType]{into: into, key: key}
	node.self, node.rules = node, rules{word: "Reads", name: name, desires: true}
	if into != nil {
		node.order.Yields = []stash.Key{into.Key()}
	}
	return node
}

// Reports has the node report by a condition of that type whether the object exists: True with the reason Found, or
// NotDesired if there is nothing to read; False with the reason NotFound.
func (r *Read[Type, ObjectType]) Reports(conditionType string) *Read[Type, ObjectType] {
	r.condition = conditionType
	return r
}

// Optional has the nodes after this one run even if the object does not exist. The condition is then True, with the
// reason NotFound.
func (r *Read[Type, ObjectType]) Optional() *Read[Type, ObjectType] {
	r.optional = true
	return r
}

// SetupWithManager watches the type of the object.
func (r *Read[Type, ObjectType]) SetupWithManager(
	ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder,
) error {
	ctx = reconcilers.Enter(ctx, r.name)
	if err := r.Validate(ctx); err != nil {
		return err
	}
	if err := checkStatus(ctx, "Reads", r.name, r.condition); err != nil {
		return err
	}
	return reconcilers.WatchOptional(ctx, bldr, gotype.Empty[ObjectType]())
}

// Validate checks that the functions are set, and that an object of the type can be made.
func (r *Read[Type, ObjectType]) Validate(context.Context) error {
	switch {
	case r.into == nil:
		return r.errorf("must have a stasher")
	case r.key == nil:
		return r.errorf("must have a function that returns the name of the object")
	case client.Object(gotype.Empty[ObjectType]()) == nil:
		return r.errorf("must have a stasher of a pointer to a struct, not of %s", reflect.TypeFor[ObjectType]())
	}
	return r.check()
}

// Reconcile reads the object, see [Reads].
func (r *Read[Type, ObjectType]) Reconcile(ctx context.Context, resource Type) (reconcilers.Result, error) {
	var none reconcilers.Result
	if reconcilers.CleansUp(ctx, resource) {
		return none, nil
	}
	ctx = reconcilers.Enter(ctx, r.name)
	if err := r.Validate(ctx); err != nil {
		return none, err
	}
	if unmet := reconcilers.Unmet(ctx, &r.order); unmet != "" {
		r.report(ctx, resource, waitingFor(unmet))
		return none, reconcilers.Failed(ctx, nil, reconcilers.ErrHaltUntilEvent)
	}
	config, err := reconcilers.RetrieveConfig(ctx)
	if err != nil {
		return none, err
	}
	key := r.key(ctx, resource)
	if key.Name == "" {
		r.report(ctx, resource, metav1.Condition{Status: metav1.ConditionTrue, Reason: ReasonNotDesired, Message: ""})
		return none, nil
	}
	object := gotype.Empty[ObjectType]()
	switch err := config.TrackAndGet(ctx, key, object); {
	case apierrs.ReasonForError(err) == reconcilers.StatusReasonKindNotServed:
		return none, r.missing(ctx, resource, string(reconcilers.StatusReasonKindNotServed), err.Error())
	case apierrs.IsNotFound(err):
		return none, r.missing(ctx, resource, string(metav1.StatusReasonNotFound),
			fmt.Sprintf("%s %s does not exist", kindName[ObjectType](), key))
	case err != nil:
		object.SetNamespace(key.Namespace)
		object.SetName(key.Name)
		return none, reconcilers.Failed(ctx, object, err)
	}
	if err := stash.Check(ctx); err != nil {
		return none, reconcilers.Failed(ctx, object, err)
	}
	r.into.Store(ctx, object)
	r.report(ctx, resource, metav1.Condition{Status: metav1.ConditionTrue, Reason: ReasonFound, Message: ""})
	return none, nil
}

// missing reports that there is no object, and halts unless it is optional. No event tells of a kind for sure, so one
// that is not served is asked for again.
func (r *Read[Type, ObjectType]) missing(ctx context.Context, resource Type, reason, message string) error {
	if r.optional {
		r.report(ctx, resource, metav1.Condition{Status: metav1.ConditionTrue, Reason: reason, Message: message})
		return nil
	}
	r.report(ctx, resource, metav1.Condition{Status: metav1.ConditionFalse, Reason: reason, Message: message})
	halt := reconcilers.ErrHaltUntilEvent
	if reason == string(reconcilers.StatusReasonKindNotServed) {
		halt = reconcilers.ErrHaltSubReconcilers
	}
	return reconcilers.Failed(ctx, nil, halt)
}

// Describe returns that the node reads the type.
func (r *Read[Type, ObjectType]) Describe() reconcilers.Description {
	return reconcilers.Description{
		Kind:       "Reads",
		Name:       r.name,
		Detail:     kindName[ObjectType](),
		Conditions: conditions(r.condition),
		Order:      r.orderOf(),
		Uses: []reconcilers.Access{
			{Object: gotype.Empty[ObjectType](), Verbs: []string{"get", "list", "watch"}, Optional: true},
		},
	}
}
