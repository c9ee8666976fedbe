package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/listing"
	"github.com/espalier-dev/espalier/internal/resourcestate"
	rtime "github.com/espalier-dev/espalier/time"

	"github.com/go-logr/logr"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
	// indexed is the type of the children in the index by owner, see completeListType.
	indexed listing.Type
	manager ObjectManager[CT]
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
	recreations resourcestate.Recreations
	// label is the value of [NodeLabel] that the children have. It is empty if they are not labelled.
	label string
	// finalizer is put on the resource by the node itself; empty for none.
	finalizer string
}

// errorf returns an error of the node.
func (k *children[T, CT, CLT]) errorf(format string, args ...any) error {
	return fmt.Errorf("%s %q "+format, append([]any{k.kind, k.name}, args...)...)
}

// find returns the current config, and the objects that are the node's children, sorted by namespace and name. They are
// for reading.
//
// If the resource is terminating, the node must not overlook a child that garbage collection does not delete. So if the
// cache shows none, the API server is asked. If the children are withdrawn, that is done before their finalizer is
// taken off the resource.
func (k *children[T, CT, CLT]) find(ctx context.Context, resource T) (config Config, found []CT, err error) {
	if config, err = RetrieveConfig(ctx); err != nil {
		return config, nil, fmt.Errorf("%s %q: %w", k.kind, k.name, err)
	}
	if err := k.completeListType(config); err != nil {
		return config, nil, err
	}
	candidates, err := k.candidates(ctx, config, resource)
	found = k.ownOf(resource, candidates)
	asks := err == nil && k.unowned && len(found) == 0 && config.APIReader != nil
	if asks && (resource.GetDeletionTimestamp() != nil ||
		SupervisionOf(ctx, resource) == Withdraw && k.holdsFinalizer(resource)) {
		candidates, err = listing.List(ctx, config.APIReader, k.listType, nil, k.listOptions(ctx, resource)...)
		found = k.ownOf(resource, candidates)
		if apierrs.IsBadRequest(err) {
			// Only the cache understands these options.
			err = nil
		}
	}
	if err != nil {
		recordFailure(ctx, typeName(k.childType), err)
	}
	return config, found, err
}

// withUnlabelled returns found together with the unlabelled children that have the name of a desired one.
func (k *children[T, CT, CLT]) withUnlabelled(
	ctx context.Context, config Config, resource T, found []CT, desired ...CT,
) ([]CT, error) {
	if k.label == "" {
		return found, nil
	}
	names := map[client.ObjectKey]bool{}
	for _, child := range desired {
		if !gotype.IsNil(child) {
			names[client.ObjectKeyFromObject(child)] = true
		}
	}
	for _, child := range found {
		delete(names, client.ObjectKeyFromObject(child))
	}
	if len(names) == 0 {
		return found, nil
	}
	candidates, err := k.candidates(ctx, config, resource)
	if err != nil {
		return nil, err
	}
	for _, obj := range candidates {
		if names[client.ObjectKeyFromObject(obj)] && k.isUnlabelled(resource, obj) {
			found = append(found, obj.(CT))
		}
	}
	return found, nil
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
	key := k.listKey(config)
	for _, child := range found {
		if other := request.lists.Take(key, child, k.node, at); other != nil {
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

// recordWrite notes in the lists of the request what a call of Manage did: before is the object that Manage was called
// with, and written what it returned, nil if the object was deleted.
func (k *children[T, CT, CLT]) recordWrite(ctx context.Context, config Config, before, written CT) {
	request := listKeeper(ctx)
	if request == nil || client.Object(before) == client.Object(written) {
		return
	}
	now := rtime.RetrieveNow(ctx)
	request.lists.Wrote(request.resource, now, k.listKey(config), before, written, isAbsent(before))
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

// describe names child, or the type where there is none, for errors.
func (k *children[T, CT, CLT]) describe(child CT) string {
	if gotype.IsNil(child) {
		return typeName(k.childType)
	}
	return describeObject(child)
}

// observe tells the supervisor, if there is one, what became of one child.
func (k *children[T, CT, CLT]) observe(ctx context.Context, config Config, s supervision, o outcome[CT]) {
	if s.by != nil {
		k.report(ctx, config, s, o)
	}
}

func (k *children[T, CT, CLT]) ownOf(resource T, objects []client.Object) []CT {
	own := make([]CT, 0, len(objects))
	for _, obj := range objects {
		if k.isOwn(resource, obj) {
			own = append(own, obj.(CT))
		}
	}
	return own
}

// isOwn reports whether an object is a child of the node.
func (k *children[T, CT, CLT]) isOwn(resource T, obj client.Object) bool {
	return k.mayBeOwn(resource, obj) && (k.label == "" || obj.GetLabels()[NodeLabel] == k.label)
}

// mayBeOwn reports whether an object is a child of the node, whatever its label.
func (k *children[T, CT, CLT]) mayBeOwn(resource T, obj client.Object) bool {
	child, ok := obj.(CT)
	if !ok || !k.unowned && !metav1.IsControlledBy(child, resource) {
		return false
	}
	return k.ourChild == nil || k.ourChild(resource, child)
}

// isUnlabelled reports whether an object is a child of the node if it is desired: it was made before the children were
// labelled, or has lost its label.
func (k *children[T, CT, CLT]) isUnlabelled(resource T, obj client.Object) bool {
	return k.label != "" && obj.GetLabels()[NodeLabel] == "" && k.mayBeOwn(resource, obj)
}

// candidates returns the objects among which the children are: what the cache shows, corrected by what the controller
// wrote. Outside of a root there is no request to keep them in, and each call lists.
func (k *children[T, CT, CLT]) candidates(ctx context.Context, config Config, resource T) ([]client.Object, error) {
	request := listKeeper(ctx)
	if request == nil {
		return k.list(ctx, config, resource)
	}
	key := k.listKey(config)
	if known, ok := request.lists.Get(key); ok && key.Node == nil {
		return known, nil
	}
	// References into the cache are enough, because they are copied below.
	listed, err := k.list(ctx, config, resource, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, err
	}
	now := rtime.RetrieveNow(ctx)
	return request.lists.Believe(ctx, request.resource, config.APIReader, now, key, k.indexed.Kind, listed)
}

// list returns what the cache has. Without list options of the author, these are the objects that the resource
// controls. With list options, the objects that are no children of the node are left out, so that they are not kept.
func (k *children[T, CT, CLT]) list(
	ctx context.Context, config Config, resource T, opts ...client.ListOption,
) ([]client.Object, error) {
	if k.listOptions == nil {
		return config.owners.Controlled(ctx, config.Client, k.indexed, k.listType, resource, opts...)
	}
	mayBeOwn := func(obj client.Object) bool { return k.mayBeOwn(resource, obj) }
	opts = slices.Concat(k.listOptions(ctx, resource), opts)
	return listing.List(ctx, config.Client, k.listType, mayBeOwn, opts...)
}

func (k *children[T, CT, CLT]) listKey(config Config) listing.ListKey {
	key := listing.ListKey{
		Reader: config.Client,
		Listed: reflect.TypeOf(k.listType),
		Kind:   k.listType.GetObjectKind().GroupVersionKind(),
	}
	if k.listOptions != nil {
		key.Node = k.node
	}
	return key
}

// listKeeper returns the state of the request that keeps lists of children. It returns nil if there is none: outside of
// a root, and for a client that cannot be the key of a map.
func listKeeper(ctx context.Context) *requestState {
	if s := contextOf(ctx); s.state != nil && s.state.resource != nil && s.comparable {
		return s.state
	}
	return nil
}

// indexedType returns the type of obj as the index by owner has it.
func indexedType(c client.Client, obj client.Object) listing.Type {
	return listing.Type{Kind: kindOf(c, obj), Watched: watchable(obj, c.Scheme())}
}
