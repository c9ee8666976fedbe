package reconcilers

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/stash"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ForEach runs a node once for each item of a list. The node reads the item from the stash, see [CursorStasher].
//
//   - Runs: Items once, then the nested node for each item, in order.
//   - Stops: at the first error.
//   - On error: an error of Items is returned without a result. An error of the nested node is returned with the
//     aggregated results of the items so far, including the item that failed.
//   - On deletion: the same. To clean up, the nested node needs the same items as before.
//
// Without an error the results are aggregated, see [AggregateResults]. In paths and logs the index of the item follows
// the name of the node. The cursor is in the stash only while the nested node runs. Afterwards, also after an error or
// a panic, the stash holds its previous value, so a loop may run inside another loop over items of the same type.
// Unless the list is empty, the context must have a stash. The context of a root has one.
type ForEach[Type client.Object, Item any] struct {
	// Name identifies the node in paths and logs. Default: ForEach.
	Name string

	// Setup adds watches and indexes, after those of the nested node. Optional.
	Setup func(ctx context.Context, mgr Manager, bldr *Builder) error

	// Reconciler is the nested node. Required.
	Reconciler SubReconciler[Type]

	// Items returns the items to run the nested node for. Their order should not change from request to request.
	// Required.
	Items func(ctx context.Context, resource Type) ([]Item, error)

	initOnce sync.Once
	key      stash.Key
}

var _ SubReconciler[client.Object] = (*ForEach[client.Object, any])(nil)

// Cursor is the position of a [ForEach] in its items.
type Cursor[I any] struct {
	// Index is the index of Item, counted from zero.
	Index int
	// Length is the number of items.
	Length int
	// Item is the current item.
	Item I
}

// CursorStasher reads the cursor of the innermost [ForEach] over items of type I. Each type has its own cursor, also if
// types in different packages have the same name.
//
//	cursor := reconcilers.CursorStasher[corev1.ServicePort]().RetrieveOrDie(ctx)
func CursorStasher[I any]() stash.Stasher[Cursor[I]] {
	return stash.New[Cursor[I]](cursorKey[I]())
}

// cursorKey contains the full name of type I. Reflection gives package paths, and different names for types that are
// local to functions, only for a type argument of another type.
func cursorKey[I any]() stash.Key {
	_, name, _ := strings.Cut(reflect.TypeFor[Cursor[I]]().Name(), "[")
	return stash.Key("reconciler.io/runtime:cursor:" + strings.TrimSuffix(name, "]"))
}

func (r *ForEach[Type, Item]) init() {
	r.initOnce.Do(func() {
		r.Name = cmp.Or(r.Name, "ForEach")
		r.key = cursorKey[Item]()
	})
}

// SetupWithManager validates, then sets up the nested node and the node itself.
func (r *ForEach[Type, Item]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	r.init()
	return setUpNode(ctx, mgr, bldr, r, r.Name, setUpOf(r.Reconciler), r.Setup)
}

// Validate checks that the required fields are set and, if recursive, the nested node.
func (r *ForEach[Type, Item]) Validate(ctx context.Context) error {
	r.init()
	if err := r.check(); err != nil {
		return err
	}
	return validateField(ctx, "ForEach", r.Name, "Reconciler", r.Reconciler)
}

func (r *ForEach[Type, Item]) check() error {
	if gotype.IsNil(r.Reconciler) {
		return fmt.Errorf("ForEach %q must implement Reconciler", r.Name)
	}
	if r.Items == nil {
		return fmt.Errorf("ForEach %q must implement Items", r.Name)
	}
	return nil
}

// Reconcile runs the nested node for each item, see [ForEach].
func (r *ForEach[Type, Item]) Reconcile(ctx context.Context, resource Type) (Result, error) {
	r.init()
	if err := r.check(); err != nil {
		return Result{}, err
	}
	ctx = Enter(ctx, r.Name)

	items, err := r.Items(ctx, resource)
	if err != nil {
		recordUnlocated(ctx, err)
		return Result{}, err
	}
	if len(items) == 0 {
		return Result{}, nil
	}
	defer keepStashed(ctx, r.key)()
	aggregate := Result{}
	for i, item := range items {
		stash.StoreValue(ctx, r.key, Cursor[Item]{Index: i, Length: len(items), Item: item})
		at := Enter(ctx, strconv.Itoa(i))
		result, err := r.Reconciler.Reconcile(at, resource)
		aggregate = aggregateResult(aggregate, result)
		if err != nil {
			recordUnlocated(at, err)
			return aggregate, err
		}
	}
	return aggregate, nil
}

// keepStashed returns a function that restores the current value of key in the stash.
func keepStashed(ctx context.Context, key stash.Key) func() {
	if !stash.HasValue(ctx, key) {
		return func() { stash.ClearValue(ctx, key) }
	}
	value := stash.RetrieveValue(ctx, key)
	return func() { stash.StoreValue(ctx, key, value) }
}

// Describe shows the nested node.
func (r *ForEach[Type, Item]) Describe() Description {
	r.init()
	return Description{Kind: "ForEach", Name: r.Name, Nodes: []Description{Describe(r.Reconciler)}}
}
