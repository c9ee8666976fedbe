package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/gotype"
)

// children are the children of one type of a node: [ChildReconciler] has one, [ChildSetReconciler] many. The methods
// find the children, set their owner, have the object manager make them agree with what is desired, and decide which
// errors are reflected on the resource.
type children[T, CT client.Object, CLT client.ObjectList] struct {
	// kind and name are those of the node, for errors.
	kind, name string
	// node stands for the node itself, as a key.
	node any

	childType CT
	// listType is nil until completeListType found it, if CLT is an interface.
	listType CLT
	listOnce sync.Once
	listErr  error
	manager  ObjectManager[CT]
	// tracked is true if the resource is woken by what the node tracks although it does not own its children.
	tracked bool
	// unowned is true if the children have no owner reference.
	unowned bool
	// reasons are the API reasons of errors that are reflected.
	reasons     []metav1.StatusReason
	listOptions func(ctx context.Context, resource T) []client.ListOption
	ourChild    func(resource T, child CT) bool
	// recreates is true if a child with an immutable field that is desired otherwise is deleted and created again.
	recreates bool
	// recreations are the attempts to do so, outside of a root.
	recreations recreations
	// label is the value of [NodeLabel] that the children have. It is empty if they are not labelled.
	label string
	// finalizer is put on the resource by the node itself; empty for none.
	finalizer string
}

// errorf returns an error of the node.
func (k *children[T, CT, CLT]) errorf(format string, args ...any) error {
	return fmt.Errorf("%s %q "+format, append([]any{k.kind, k.name}, args...)...)
}

// completeListType finds the list type in the scheme, if the author gave none: it has the kind of the child followed by
// List, as Kubernetes names its lists.
func (k *children[T, CT, CLT]) completeListType(config Config) error {
	k.listOnce.Do(func() {
		if !gotype.IsNil(k.listType) {
			return
		}
		kind, err := config.GroupVersionKindFor(k.childType)
		if err != nil {
			k.listErr = k.errorf("is unable to find the kind of %s: %w", typeName(k.childType), err)
			return
		}
		kind.Kind += "List"
		list, err := config.Scheme().New(kind)
		if err != nil {
			k.listErr = k.errorf("must define ChildListType: %w", err)
			return
		}
		listType, ok := list.(CLT)
		if !ok {
			k.listErr = k.errorf("must define ChildListType, since %T is no list of objects", list)
			return
		}
		k.listType = listType
	})
	return k.listErr
}

// converge makes the cluster agree with what is desired of one child, or with the error that came in its place. found
// are the objects that are this child: one, as a rule. It returns the child as it is now.
func (k *children[T, CT, CLT]) converge(
	ctx context.Context, config Config, resource T, found []CT, desired CT, err error,
) (CT, error) {
	var none CT
	actual, extras := pickChild(found)
	switch {
	case errors.Is(err, OnlyReconcileChildStatus):
		return actual, nil
	case err != nil:
		return none, err
	}
	if err := k.take(ctx, config, resource, found...); err != nil {
		return none, err
	}
	if !gotype.IsNil(desired) {
		if err := k.setOwner(ctx, config, resource, desired); err != nil {
			return none, err
		}
	}

	if len(extras) > 0 {
		for _, extra := range append([]CT{actual}, extras...) {
			logr.FromContextOrDiscard(ctx).Info("extra child detected", "child", describeObject(extra))
			if _, err := k.manage(ctx, config, resource, extra, none); err != nil {
				return none, err
			}
		}
		if gotype.IsNil(desired) {
			// The finalizer stays until the next request, because a deleted child may not be gone yet.
			return none, nil
		}
		actual = none
	}
	if gotype.IsNil(actual) {
		actual = copyOf(k.childType)
		if err := k.checkScope(config, desired); err != nil {
			return none, err
		}
	}
	child, err := k.manage(ctx, config, resource, actual, desired)
	if k.recreates && apierrs.IsInvalid(err) {
		return k.recreate(ctx, config, resource, actual, desired, err)
	}
	return child, err
}

// pickChild returns the object that counts as the child, and all others that are not terminating. A terminating object
// counts only if there is no other.
func pickChild[CT client.Object](found []CT) (actual CT, extras []CT) {
	for _, child := range found {
		switch {
		case gotype.IsNil(actual), actual.GetDeletionTimestamp() != nil && child.GetDeletionTimestamp() == nil:
			actual = child
		case child.GetDeletionTimestamp() == nil:
			extras = append(extras, child)
		}
	}
	return actual, extras
}

func (k *children[T, CT, CLT]) manage(ctx context.Context, config Config, resource T, actual, desired CT) (CT, error) {
	if isAbsent(actual) && !gotype.IsNil(desired) && slices.Contains(k.reasons, metav1.StatusReasonAlreadyExists) {
		ctx = withExplanation(ctx, func(err error) error {
			return k.blockerOf(ctx, config, resource, desired, err)
		})
	}
	child, err := k.manager.Manage(ctx, resource, actual, desired)
	if err == nil || !gotype.IsNil(child) {
		k.recordWrite(ctx, config, actual, child)
	}
	if err == nil && !gotype.IsNil(child) && isAbsent(actual) {
		err = k.take(ctx, config, resource, child)
	}
	return child, err
}

// setOwner makes the resource the controller of desired, unless owner references are not used. It labels desired if
// the children are labelled.
func (k *children[T, CT, CLT]) setOwner(ctx context.Context, config Config, resource T, desired CT) error {
	if k.label != "" {
		k.setLabel(desired)
	}
	if !k.unowned {
		if err := setController(ctx, config, resource, desired); err != nil {
			return k.errorf("is unable to make %s the controller of %s: %w",
				describeObject(resource), describeObject(desired), err)
		}
	}
	if !k.isOwn(resource, desired) {
		logOnce(ctx, "object returned from DesiredChild does not match OurChild", describeObject(desired),
			"this can result in orphaned children")
	}
	return nil
}

// setLabel labels a child with the name of the node.
func (k *children[T, CT, CLT]) setLabel(child CT) {
	labels := child.GetLabels()
	if labels[NodeLabel] == k.label {
		return
	}
	// The author may use one map for several objects.
	labels = maps.Clone(labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[NodeLabel] = k.label
	child.SetLabels(labels)
}

// take notes that the node counts objects as its children and is about to change them. It returns an error if another
// node does so in this request. A terminating resource may lose a child by any of its nodes.
func (k *children[T, CT, CLT]) take(ctx context.Context, config Config, resource T, found ...CT) error {
	request, at := listKeeper(ctx), pathOf(ctx)
	if request == nil || resource.GetDeletionTimestamp() != nil {
		return nil
	}
	key := childKey{list: k.listKey(config)}
	key.list.node = nil
	for _, child := range found {
		if key.uid = child.GetUID(); key.uid == "" {
			continue
		}
		if other := request.take(key, childTaker{node: k.node, at: at}); other != nil {
			return fmt.Errorf("the nodes %s and %s both count %s as their child: set LabelChildren or OurChild on both",
				other, at, describeObject(child))
		}
	}
	return nil
}

// checkScope returns an error for a child without the namespace that its type needs. The API server would refuse it
// with an error that does not name the object.
func (k *children[T, CT, CLT]) checkScope(config Config, desired CT) error {
	if gotype.IsNil(desired) || desired.GetNamespace() != "" {
		return nil
	}
	namespaced, err := config.IsObjectNamespaced(desired)
	if err != nil || !namespaced {
		// The mapper does not know the type, so the API server decides.
		return nil
	}
	return k.errorf("is unable to create %s: the type is namespaced, and no namespace is desired",
		describeObject(desired))
}

// observe tells the supervisor, if there is one, what became of one child.
func (k *children[T, CT, CLT]) observe(ctx context.Context, config Config, s supervision, o outcome[CT]) {
	if s.by != nil {
		k.report(ctx, config, s, o)
	}
}

// describe names child, or the type where there is none, for errors.
func (k *children[T, CT, CLT]) describe(child CT) string {
	if gotype.IsNil(child) {
		return typeName(k.childType)
	}
	return describeObject(child)
}

// classify decides who is to see the error that came of a child. The user sees reflected on the resource, and the
// caller of the node sees returned. The child is nil if there is an error.
func (k *children[T, CT, CLT]) classify(
	ctx context.Context, config Config, resource T, child, desired CT, err error,
) (_ CT, reflected, returned error) {
	if err == nil {
		return child, nil, nil
	}
	defer func() {
		if reflected != nil {
			logOnce(ctx, "the child is not as desired", k.describe(desired), reflected.Error())
		}
	}()
	var none CT
	if flaps := (*flappingError)(nil); errors.As(err, &flaps) {
		// Another request does not help, and the object may well be as desired.
		return none, err, nil
	}
	reason := apierrs.ReasonForError(err)
	if !slices.Contains(k.reasons, reason) {
		return none, nil, err
	}
	if reason == metav1.StatusReasonAlreadyExists {
		found := k.blockerOf(ctx, config, resource, desired, err)
		switch {
		case found.unreadable != nil:
			return none, nil, found.unreadable
		case found.ours:
			// The child is there and ours: the cache lags behind, and the next attempt will see it.
			contextOf(ctx).state.fail(pathOf(ctx), k.describe(desired), ClassConflict, err)
			return none, nil, err
		}
		return none, found.explained(), nil
	}
	if reason == metav1.StatusReasonForbidden {
		// No event says that a quota was raised or a right was granted.
		contextOf(ctx).state.wantRetry()
	}
	return none, err, nil
}
