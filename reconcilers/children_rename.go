package reconcilers

import (
	"context"
	"errors"
	"time"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/resourcestate"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// checkRenaming finds mistakes in how the renaming is configured.
func (k *children[T, CT, CLT]) checkRenaming() error {
	switch k.renaming {
	case IgnoreName:
		return nil
	case ByKind:
		if k.ready == nil {
			return k.errorf("must implement ChildIsReady since Renaming is %s", k.renaming)
		}
		return nil
	default:
		return k.errorf("must have a known Renaming, not %q", k.renaming)
	}
}

// turn is what one request does with the objects of one child.
type turn[CT client.Object] struct {
	// found are the objects that count as the child, and desired is what it has to be.
	found   []CT
	desired CT
	// err came in place of what is desired. With OnlyReconcileChildStatus the child stays as it is.
	err error
	// refused is reflected together with the child.
	refused *NameError
	// last are deleted when the child is ready.
	last []CT
	// again is the delay of the next request; 0 for none.
	again time.Duration
}

// unstableNameDelay is after what time a child whose name keeps changing is looked at again.
const unstableNameDelay = 10 * time.Second

// rename decides which of the objects that were found counts as the child, and deletes those that have to go before
// the child is written.
func (k *children[T, CT, CLT]) rename(
	ctx context.Context, config Config, resource T, found []CT, desired CT, err error,
) turn[CT] {
	t := turn[CT]{found: found, desired: desired, err: err}
	statusOnly := errors.Is(err, OnlyReconcileChildStatus)
	if k.renaming == IgnoreName || !statusOnly && (err != nil || gotype.IsNil(desired)) {
		return t
	}
	if statusOnly {
		t.found = k.lastReady(ctx, found, desired)
		return t
	}
	memory := memoryOf[resourcestate.DesiredName](ctx, k.node)
	key := resourcestate.Child{Resource: resource.GetUID(), Path: pathOf(ctx).String()}
	name, unstable := memory.Get(key).Next(resource.GetGeneration(), nameOf(desired))
	defer func() { memory.Put(key, name) }()
	if unstable {
		t.found, t.err, t.again = k.lastReady(ctx, found, desired), OnlyReconcileChildStatus, unstableNameDelay
		t.refused = &NameError{Reason: nameNotStable, Desired: typeName(k.childType)}
		return t
	}
	if len(found) == 0 || len(found) == 1 && hasName(found[0], desired) {
		return t
	}
	if t.err = k.take(ctx, config, resource, found...); t.err != nil {
		return t
	}
	kind, err := config.GroupVersionKindFor(k.childType)
	if err != nil {
		t.err = k.errorf("is unable to find the kind of %s: %w", typeName(k.childType), err)
		return t
	}
	refuses := mayHoldData(kind.GroupKind(), createsOnly(k.manager))
	decided := decideNames(refuses, k.namedChildren(ctx, found, desired))
	t.decide(decided)
	for _, i := range decided.first {
		if _, t.err = k.manage(ctx, config, resource, found[i], *new(CT)); t.err != nil {
			return t
		}
	}
	switch {
	case decided.refused:
		t.refuse()
	case decided.waits:
		t.err = OnlyReconcileChildStatus
		if !k.wakes() {
			t.again = leftoverDelay
		}
	}
	return t
}

func (k *children[T, CT, CLT]) namedChildren(ctx context.Context, found []CT, desired CT) []namedChild {
	named := make([]namedChild, len(found))
	for i, child := range found {
		named[i] = namedChild{
			desired:     !gotype.IsNil(desired) && hasName(child, desired),
			ready:       k.isReady(ctx, child),
			terminating: child.GetDeletionTimestamp() != nil,
			created:     child.GetCreationTimestamp().Time,
		}
	}
	return named
}

// lastReady returns the object that counts as the child if all stay as they are.
func (k *children[T, CT, CLT]) lastReady(ctx context.Context, found []CT, desired CT) []CT {
	all := make([]int, len(found))
	for i := range found {
		all[i] = i
	}
	if i := lastReady(k.namedChildren(ctx, found, desired), all); i >= 0 {
		return found[i : i+1]
	}
	return nil
}

func (k *children[T, CT, CLT]) isReady(ctx context.Context, child CT) bool {
	if k.ready == nil {
		return true
	}
	if child.GetObjectKind().GroupVersionKind().Empty() {
		// An answer of the API server has no kind, and rules of health are by kind.
		child = copyOf(child)
		child.GetObjectKind().SetGroupVersionKind(k.indexed.Kind)
	}
	return k.ready(ctx, child)
}

// wakes reports whether the events of the children wake the resource.
func (k *children[T, CT, CLT]) wakes() bool { return !k.unowned || k.tracked }

// decide takes over what was decided of the objects that were found, but for those that are deleted first.
func (t *turn[CT]) decide(decided names) {
	found := t.found
	t.found = nil
	if decided.child >= 0 {
		t.found = []CT{found[decided.child]}
	}
	for _, i := range decided.last {
		t.last = append(t.last, found[i])
	}
}

// refuse makes the child, which has another name, as desired but for the name.
func (t *turn[CT]) refuse() {
	child := t.found[0]
	t.refused = &NameError{Reason: nameChanged, Desired: describeObject(t.desired), Child: describeObject(child)}
	t.desired = copyOf(t.desired)
	t.desired.SetNamespace(child.GetNamespace())
	t.desired.SetName(child.GetName())
}

// carryOut makes the child as desired, and deletes what is left under other names once it is ready.
func (k *children[T, CT, CLT]) carryOut(
	ctx context.Context, config Config, resource T, s supervision, t *turn[CT],
) (child CT, err error) {
	var none CT
	if t.refused != nil && t.err == nil {
		// It is not recreated, because the data would go with it, and the new one would have the name that is refused.
		if err := k.setOwner(ctx, config, resource, t.desired); err != nil {
			return none, err
		}
		return k.manage(ctx, config, resource, t.found[0], t.desired)
	}
	child, err = k.converge(ctx, config, resource, t.found, t.desired, t.err)
	if err != nil || len(t.last) == 0 {
		return child, err
	}
	ready, err := k.mayReplace(ctx, config, s, t.found, child)
	if err != nil {
		return none, err
	}
	if !ready && !k.wakes() {
		t.again = leftoverDelay
	}
	for _, old := range t.last {
		if !ready {
			break
		}
		if _, err := k.manage(ctx, config, resource, old, none); err != nil {
			return none, err
		}
	}
	return child, nil
}

// mayReplace reports whether child is ready, so that objects of other names may go. What the cache shows is not enough:
// the object may be gone. Read are the objects that were the child before it was written.
func (k *children[T, CT, CLT]) mayReplace(
	ctx context.Context, config Config, s supervision, read []CT, child CT,
) (bool, error) {
	if gotype.IsNil(child) {
		return true, nil // the object manager says that there is nothing to make
	}
	ready := func(child CT) bool {
		return child.GetDeletionTimestamp() == nil && (s.says == Suspend || k.isReady(ctx, child))
	}
	written := len(read) == 0 || !resourcestate.SameVersion(read[0], child)
	if written || config.APIReader == nil || !ready(child) {
		return ready(child), nil
	}
	live := copyOf(k.childType)
	err := config.APIReader.Get(ctx, client.ObjectKeyFromObject(child), live)
	if apierrs.IsNotFound(err) {
		return false, nil
	}
	return err == nil && live.GetUID() == child.GetUID() && ready(live), err
}

// withRefusal returns what is reflected: if the desired name is refused, the child that there is, and why.
func (t *turn[CT]) withRefusal(ctx context.Context, child CT, reflected error) (CT, error) {
	if t.refused == nil {
		return child, reflected
	}
	t.refused.Err = reflected
	if gotype.IsNil(child) && len(t.found) > 0 {
		child = t.found[0]
	}
	logOnce(ctx, "the child does not have the desired name", t.refused.Desired, t.refused.Error())
	return child, t.refused
}
