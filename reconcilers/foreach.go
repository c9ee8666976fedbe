package reconcilers

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/statusfield"
	"github.com/espalier-dev/espalier/stash"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ForEach runs a node once for each item of a list. The node reads the item from the stash, see [CursorStasher].
//
//   - Runs: Items once, then the nested node for each item, in order.
//   - Stops: at the first error, unless ContinueOnError or a Key is set.
//   - On error: an error of Items is returned without a result. An error of the nested node is returned with the
//     aggregated results of the items so far, including the item that failed.
//   - On deletion: the same. To clean up, the nested node needs the same items as before.
//
// Without an error the results are aggregated, see [AggregateResults]. In paths and logs the index of the item follows
// the name of the node. The cursor is in the stash only while the nested node runs. Afterwards, also after an error or
// a panic, the stash holds its previous value, so a loop may run inside another loop over items of the same type.
// Unless the list is empty, the context must have a stash. The context of a root has one.
//
// With a Key, each item is on its own, as if the nested node were written once for each, and the nodes below need
// nothing for that:
//
//   - Their objects have the label [ItemLabel], which tells those of the items apart. Values that they store in the
//     stash are those of the item.
//   - An error or a halt of one item does not keep the others from running. The errors are joined.
//   - A condition that they set is summed up: it is False if it is so for one item, else Unknown if it is so for one,
//     and its message names the item. The record in the status names up to ten items that are not as they should be.
//   - The keys are recorded in the status of the resource before the nested node runs for their items, which it does in
//     the next request. The resource needs an [apis.ItemsStatus] in its status.
//   - When an item is gone, the nested node runs for its key as on [Withdraw], until nothing of it is left. So it does
//     for all recorded keys when the resource is deleted. The cursor then has an empty item and the index -1; see
//     [ItemKey]. A finalizer stays until no item needs it.
//   - Two items with one key are an error. For both the node does not run, and what they have stays. Where the nodes
//     clean up, it goes by the key.
//
// In paths the key takes the place of the index: App/Databases[eu]/Config.
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

	// ContinueOnError runs the nested node for each item, also after an error, as [Always] does with nodes: results are
	// aggregated, and errors are joined, in the order of the items. With a Key it is always so. Default: false.
	ContinueOnError bool

	// Key returns what identifies an item for as long as it exists: at most 253 bytes without brackets. Name is then
	// required, unique in the tree, and must not change later. Default (nil): an item has no identity. All items share
	// what the nested nodes have, and nothing is cleaned up for an item that is gone.
	Key func(item Item) string

	memories ResourceState[*itemsMemory]

	// nestedTypes and nestedFinalizers are those of the conditions and of the finalizers of the nested nodes.
	nestedTypes      []string
	nestedFinalizers []string
	nestedOnce       sync.Once

	initOnce sync.Once
	unnamed  bool
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
		r.unnamed = r.Name == ""
		r.Name = cmp.Or(r.Name, "ForEach")
		r.key = cursorKey[Item]()
	})
}

// SetupWithManager validates, then sets up the nested node and the node itself.
func (r *ForEach[Type, Item]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	r.init()
	if err := r.checkKey(ctx); err != nil {
		return err
	}
	if r.Key != nil {
		ctx = derive(ctx, func(s *treeContext) { s.item = newItem(s.item, r.Name, "") })
	}
	return setUpNode(ctx, mgr, bldr, r, r.Name, setUpOf(r.Reconciler), r.Setup)
}

// loopName is what no two loops with a Key of a tree have in common.
type loopName string

// checkKey returns an error if the keys of the items cannot be recorded.
func (r *ForEach[Type, Item]) checkKey(ctx context.Context) error {
	if err := r.check(); err != nil || r.Key == nil {
		return err
	}
	if other, taken := Claim(Enter(ctx, r.Name), loopName(r.Name)); taken {
		return fmt.Errorf("ForEach %q must have another Name than the one at %s, since Key is set", r.Name, other)
	}
	resource, ok := RetrieveResourceType(ctx).(Type)
	if ok && statusfield.PartOf[apis.ItemsStatus](statusfield.WithStatus(resource)) == nil {
		return r.errNoRecords(resource)
	}
	return nil
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
	if r.Key != nil && r.unnamed {
		return fmt.Errorf("ForEach %q must have a Name, since Key is set", r.Name)
	}
	return nil
}

func (r *ForEach[Type, Item]) checkStash(ctx context.Context) error {
	if err := stash.Check(ctx); err != nil {
		return fmt.Errorf("ForEach %q: %w", r.Name, err)
	}
	return nil
}

// Reconcile runs the nested node for each item, see [ForEach].
func (r *ForEach[Type, Item]) Reconcile(ctx context.Context, resource Type) (Result, error) {
	r.init()
	if err := r.check(); err != nil {
		return Result{}, err
	}
	if r.Key != nil {
		return r.reconcileItems(ctx, resource)
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
	if err := r.checkStash(ctx); err != nil {
		return Result{}, err
	}
	defer keepStashed(ctx, r.key)()
	aggregate := Result{}
	var errs []error
	for i, item := range items {
		stash.StoreValue(ctx, r.key, Cursor[Item]{Index: i, Length: len(items), Item: item})
		result, err := ReconcileNested(enterPlace(ctx, strconv.Itoa(i), placeIteration), r.Reconciler, resource)
		aggregate = aggregateResult(aggregate, result)
		if err == nil {
			continue
		}
		if errs = append(errs, err); !r.ContinueOnError {
			break
		}
	}
	return aggregate, joinAll(errs...)
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
	d := Description{Kind: "ForEach", Name: r.Name, Nodes: []Description{Describe(r.Reconciler)}}
	if d.items = r.Key != nil; d.items {
		d.Detail = "by key"
	}
	return d
}
