package espalier

import (
	"context"

	"github.com/espalier-dev/espalier/stash"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Yield has a node store a value in the stash after its object was read or applied. A node that needs the value says so
// by [Switches.Needs]. The function gets the object as it is in the cluster, and must not change it. It is not called
// while the object is missing or terminating. If it returns [NotReady], there is no value, and who needs it waits.
// Another error is that of the node, and there is no value, too. If several nodes yield one value, the last that ran
// counts. Yield returns the node.
func Yield[Type, ChildType client.Object, V any](
	node *Child[Type, ChildType], into stash.Stasher[V], value func(live ChildType) (V, error),
) *Child[Type, ChildType] {
	var each func(live []ChildType) (V, error)
	if value != nil {
		each = func(live []ChildType) (V, error) { return value(live[0]) }
	}
	node.fill(into, each != nil && into != nil, func(ctx context.Context, live []ChildType) error {
		return store(ctx, into, live, each)
	})
	return node
}

// YieldEach is [Yield] for a set: the function gets the objects that exist and are not terminating, in the order of
// their names. It is not called if there is none.
func YieldEach[Type, ChildType client.Object, V any](
	node *Children[Type, ChildType], into stash.Stasher[V], value func(live []ChildType) (V, error),
) *Children[Type, ChildType] {
	node.fill(into, value != nil && into != nil, func(ctx context.Context, live []ChildType) error {
		return store(ctx, into, live, value)
	})
	return node
}

func store[ChildType client.Object, V any](
	ctx context.Context, into stash.Stasher[V], live []ChildType, value func(live []ChildType) (V, error),
) error {
	if err := stash.Check(ctx); err != nil {
		return err
	}
	v, err := value(live)
	if err == nil {
		into.Store(ctx, v)
	}
	return err
}

// fill adds a function that stores a value.
func (s *Switches[Self, T, CT]) fill(
	into Keyed, complete bool, store func(ctx context.Context, live []CT) error,
) {
	if !complete {
		into = nil
	}
	s.yields(into)
	s.stores = append(s.stores, store)
}

// yield stores the values of live objects. An object that is terminating has none.
func (s *Switches[Self, T, CT]) yield(ctx context.Context, o *outcome[CT]) error {
	var live []CT
	for _, object := range o.live {
		if object.GetDeletionTimestamp() == nil {
			live = append(live, object)
		}
	}
	if len(live) == 0 {
		return nil
	}
	for _, store := range s.stores {
		err := store(ctx, live)
		if notReady := asNotReady(err); notReady != nil {
			o.wake(notReady.Delay)
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}
