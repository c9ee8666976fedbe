package reconcilers

import (
	"context"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/espalier-dev/espalier/stash"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ForEach runs a node once for each of some items. The node finds the item in the stash, see [CursorStasher].
//
//   - Runs: Items once, then the nested node for each item, in order.
//   - Stops: at the first error.
//   - On error: an error of Items is returned alone. An error of the nested node is returned with the aggregated
//     results of the items so far, its own included.
//   - On deletion: the same. A node that cleans up needs the same items then.
//
// Without an error the results are aggregated, see [AggregateResults]. Paths and logs name the index of the item below
// the node. The cursor is there only while the nested node runs: afterwards, also after an error or a panic, the stash
// holds what it held before, so loops over items of one type nest. The context must have a stash, unless there are no
// items, as that of a root has.
type ForEach[Type client.Object, Item any] struct {
	// Name identifies the node in paths and logs. Default: ForEach.
	Name string

	// Setup adds watches and indexes, after those of the nested node. Optional.
	Setup func(ctx context.Context, mgr Manager, bldr *Builder) error

	// Reconciler is the nested node. Required.
	Reconciler SubReconciler[Type]

	// Items returns what to run the nested node for. Their order should not change from request to request. Required.
	Items func(ctx context.Context, resource Type) ([]Item, error)

	initOnce sync.Once
	key      stash.Key
}

var _ SubReconciler[client.Object] = (*ForEach[client.Object, any])(nil)

// Cursor is where a [ForEach] is.
type Cursor[I any] struct {
	// Index is the place of Item among the items, counted from zero.
	Index int
	// Length is the number of items.
	Length int
	// Item is the current item.
	Item I
}

// CursorStasher reads the cursor of the innermost [ForEach] over items of type I. Each type has a cursor of its own,
// types of the same name in different packages included.
//
//	cursor := reconcilers.CursorStasher[corev1.ServicePort]().RetrieveOrDie(ctx)
func CursorStasher[I any]() stash.Stasher[Cursor[I]] {
	return stash.New[Cursor[I]](cursorKey[I]())
}

// cursorKey names the type I in full. Only as an argument of another type does a type tell all of its package paths,
// and tell apart types that are local to functions.
func cursorKey[I any]() stash.Key {
	_, name, _ := strings.Cut(reflect.TypeFor[Cursor[I]]().Name(), "[")
	return stash.Key("reconciler.io/runtime:cursor:" + strings.TrimSuffix(name, "]"))
}

func (r *ForEach[Type, Item]) init() {
	r.initOnce.Do(func() {
		if r.Name == "" {
			r.Name = "ForEach"
		}
		r.key = cursorKey[Item]()
	})
}

// SetupWithManager validates, then sets up the nested node and the node itself.
func (r *ForEach[Type, Item]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	r.init()
	ctx = Enter(ctx, r.Name)
	if err := r.Validate(ctx); err != nil {
		return err
	}
	if err := r.Reconciler.SetupWithManager(ctx, mgr, bldr); err != nil {
		return err
	}
	if r.Setup == nil {
		return nil
	}
	return r.Setup(ctx, mgr, bldr)
}

// Validate checks that the required fields are set and, if recursive, the nested node.
func (r *ForEach[Type, Item]) Validate(ctx context.Context) error {
	r.init()
	if err := r.check(); err != nil {
		return err
	}
	if err := validateNested(ctx, r.Reconciler); err != nil {
		return fmt.Errorf("ForEach %q must have a valid Reconciler: %w", r.Name, err)
	}
	return nil
}

func (r *ForEach[Type, Item]) check() error {
	if isNilNode(r.Reconciler) {
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

// keepStashed returns a function that makes the stash hold under key what it holds now.
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
