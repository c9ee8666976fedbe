package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/message"
	"github.com/espalier-dev/espalier/internal/pace"
	"github.com/espalier-dev/espalier/internal/resourcestate"
	"github.com/espalier-dev/espalier/internal/write"
	rtime "github.com/espalier-dev/espalier/time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// converge makes the cluster agree with what is desired of one child, or with the error that came in its place. found
// are the objects that are this child: one, as a rule. It returns the child as it is now.
func (k *children[T, CT, CLT]) converge(
	ctx context.Context, config Config, resource T, found []CT, desired CT, err error,
) (CT, error) {
	var none CT
	actual, extras := pickChild(found)
	statusOnly := errors.Is(err, OnlyReconcileChildStatus)
	if k.optional && (statusOnly || err == nil && !gotype.IsNil(desired)) {
		if err := lacking(ctx); err != nil {
			config.awaitKind(ctx, k.indexed.Kind)
			return none, err
		}
	}
	switch {
	case statusOnly && k.tracked && config.Tracker != nil && !isAbsent(actual):
		// The manager tracks what it gets, and does not get this one.
		return actual, config.track(ctx, actual, resource)
	case statusOnly:
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
			logr.FromContextOrDiscard(ctx).V(1).Info("extra child detected", "object", describeObject(extra))
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
	switch {
	case !apierrs.IsInvalid(err):
	case k.recreates:
		return k.recreate(ctx, config, resource, actual, desired, err)
	default:
		err = explainImmutable(err, actual, desired)
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

// take notes that the node counts objects as its children and is about to change them. It returns an error if another
// node does so in this request. A terminating resource may lose a child by any of its nodes.
func (k *children[T, CT, CLT]) take(ctx context.Context, config Config, resource T, found ...CT) error {
	request, at := listKeeper(ctx), pathOf(ctx)
	if request == nil || resource.GetDeletionTimestamp() != nil {
		return nil
	}
	key, node := k.listKey(ctx, config), itemOf(ctx).of(k.node)
	for _, child := range found {
		if other := request.lists.Take(key, child, node, at); other != nil {
			return fmt.Errorf("the nodes %s and %s both count %s as their child: "+
				"set LabelChildren (Labeled in the short form) or OurChild on both",
				other, at, describeObject(child))
		}
	}
	return nil
}

// setOwner makes the resource the controller of desired, unless owner references are not used. It labels desired if
// the children are labelled.
func (k *children[T, CT, CLT]) setOwner(ctx context.Context, config Config, resource T, desired CT) error {
	item := itemOf(ctx).labelled()
	k.setLabels(desired, item)
	if !k.unowned {
		if err := setController(ctx, config, resource, desired); err != nil {
			return k.errorf("is unable to make %s the controller of %s: %w",
				describeObject(resource), describeObject(desired), err)
		}
	}
	if !k.isOwn(resource, desired, item) {
		logOnce(ctx, "object returned from DesiredChild does not match OurChild", describeObject(desired),
			"this can result in orphaned children")
	}
	return nil
}

// hintUnowned says what helps if a resource cannot own a child.
const hintUnowned = " (AnyNamespace, or SkipOwnerReference of a literal, does without an owner reference)"

// setController makes owner the controller of child, unless child has a controller already.
//
// The rules are those of Kubernetes garbage collection: an owner is cluster-scoped or in the namespace of the child.
func setController(ctx context.Context, config Config, owner, child client.Object) error {
	ref, err := controllerRef(ctx, config, owner)
	if err != nil || metav1.GetControllerOfNoCopy(child) != nil {
		return err
	}
	from, to := owner.GetNamespace(), child.GetNamespace()
	switch {
	case from == "" || from == to:
	case to == "":
		return fmt.Errorf("cluster-scoped resource must not have a namespace-scoped owner, owner's namespace %s%s",
			from, hintUnowned)
	default:
		return fmt.Errorf("cross-namespace owner references are disallowed, owner's namespace %s, obj's namespace %s%s",
			from, to, hintUnowned)
	}
	isOwner := func(known metav1.OwnerReference) bool { return known.UID == ref.UID }
	others := slices.DeleteFunc(slices.Clone(child.GetOwnerReferences()), isOwner)
	child.SetOwnerReferences(append(others, ref))
	return nil
}

// ownerIdentity is what an owner reference is made of.
type ownerIdentity struct {
	object client.Object
	uid    types.UID
	reader client.Client
}

// controllerRef returns a reference to owner as controller, or an error if the kind of owner is not known. Below a root
// the reference is made once in a request.
func controllerRef(ctx context.Context, config Config, owner client.Object) (metav1.OwnerReference, error) {
	s := contextOf(ctx)
	owner, _ = s.behindCast(owner)
	request := s.state
	if request == nil || !s.comparable {
		request = &requestState{}
	}
	identity := ownerIdentity{object: owner, uid: owner.GetUID(), reader: config.Client}
	request.mu.Lock()
	defer request.mu.Unlock()
	if request.owner != identity {
		kind, err := config.GroupVersionKindFor(owner)
		if err != nil {
			return metav1.OwnerReference{}, err
		}
		request.owner, request.ownerRef = identity, *metav1.NewControllerRef(owner, kind)
	}
	return request.ownerRef, nil
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
	// Authors copy the labels of the resource.
	desired = withoutRingLabels(config, desired)
	ctx, err := k.beforeCreate(ctx, config, resource, actual, desired)
	if err == nil {
		err = k.confirmAbsent(ctx, config, resource, actual, desired)
	}
	if err != nil {
		var none CT
		return none, err
	}
	child, err := k.manager.Manage(ctx, resource, actual, desired)
	k.noteExisting(ctx, config, actual, desired, child, err)
	if err == nil || !gotype.IsNil(child) {
		k.recordWrite(ctx, config, actual, child)
	}
	if err == nil && !gotype.IsNil(child) && isAbsent(actual) {
		err = k.take(ctx, config, resource, child)
	}
	if k.optional && err != nil {
		err = k.refused(ctx, config, desired, err)
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
	request.lists.Wrote(request.resource, now, k.listKey(ctx, config), before, written, isAbsent(before))
}

// recreate deletes actual, whose update was refused as invalid, so that the desired child can be created in its place.
// It returns refused if that must not be done. It is done only if the refusal names a field that differs, and if a dry
// run shows that the API server would accept what is desired as a new object: then a create can do what an update
// cannot. It is done once for what is desired, so it cannot go on for ever.
func (k *children[T, CT, CLT]) recreate(
	ctx context.Context, config Config, resource T, actual, desired CT, refused error,
) (CT, error) {
	var none CT
	field, ok := refusedField(refused, desired, actual)
	identity := resourcestate.DesiredOf(desired)
	if !ok || !identity.Known || isAbsent(actual) || actual.GetUID() == "" || actual.GetDeletionTimestamp() != nil {
		return none, refused
	}
	now, attempts := rtime.RetrieveNow(ctx), memoryOf[resourcestate.Recreation](ctx, k.node)
	key := resourcestate.Child{
		Resource: resource.GetUID(), Path: pathOf(ctx).String(), Name: desired.GetName(),
	}
	attempt := resourcestate.Recreation{Desired: identity, Version: actual.GetResourceVersion(), At: now}
	switch known := attempts.Get(key); {
	case known.Desired != identity:
	case known.Deleted:
		return none, fmt.Errorf("%w (it was deleted and created again for this change before)", refused)
	case known.Version == attempt.Version && now.Sub(known.At) < resourcestate.RefusalLasts:
		return none, refused
	}
	differ := func() differences { return differences{fields: []string{field}} }
	if err := holdWrite(ctx, resource, actual, differ); err != nil {
		return none, err
	}
	switch err := config.Create(ctx, copyOf(desired), client.DryRunAll); {
	case err == nil, apierrs.IsAlreadyExists(err):
	case Classify(err) == ClassRetry:
		// It says nothing of what is desired.
		return none, err
	default:
		attempts.Put(key, attempt)
		return none, refused
	}

	s := contextOf(ctx)
	regarding, _ := s.behindCast(resource)
	s.originalConfig.record(regarding, corev1.EventTypeNormal, "Recreating",
		"Recreating %s %q, because %s cannot be changed", typeName(actual), actual.GetName(), field)
	if _, err := k.manage(ctx, config, resource, actual, none); err != nil {
		return none, err
	}
	attempt.Deleted = true
	attempts.Put(key, attempt)
	noteWritten(ctx, resource, actual, pace.Recreation)
	if k.unowned {
		// No event may tell that it is gone.
		s.state.wakeAfter(time.Second)
	}
	// It counts as the child until it is gone, and is no longer one that may be ready.
	deleted := copyOf(actual)
	deleted.SetDeletionTimestamp(new(metav1.NewTime(now)))
	return deleted, nil
}

// explainImmutable returns refused with a text that says how a field can be changed that the API server leaves as it is
// in actual. It returns other refusals unchanged.
func explainImmutable(refused error, actual, desired client.Object) error {
	field, ok := refusedField(refused, desired, actual)
	if !ok || !write.IsImmutable(refused) {
		return refused
	}
	return &explainedError{refused, fmt.Sprintf("%s cannot be changed, but Recreates (RecreateImmutable of a literal) "+
		"deletes the object and creates it again: %v", field, refused)}
}

// refusedField returns the first field that a refusal names and in which actual really differs from what is desired.
func refusedField(refused error, desired, actual client.Object) (string, bool) {
	wanted, err := contentOf(desired)
	if err != nil {
		return "", false
	}
	there, err := contentOf(actual)
	if err != nil {
		return "", false
	}
	return write.RefusedField(refused, wanted, there)
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
		if isRefusal(reflected) {
			Note(ctx, Refused{Err: reflected})
		}
	}()
	var none CT
	if limited := (*limitedError)(nil); errors.As(err, &limited) {
		// Another request does not help, and the object may well be as desired.
		return none, err, nil
	}
	reason := apierrs.ReasonForError(err)
	if !slices.Contains(k.reasons, reason) && !(k.optional && reason == StatusReasonKindNotServed) {
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

// noteHanging has a summary and observers told of a child that is to be there, and that somebody has deleted while a
// finalizer keeps it: no condition may say so. A supervisor is told of each child.
func (k *children[T, CT, CLT]) noteHanging(ctx context.Context, s supervision, child CT) {
	if s.by != nil || gotype.IsNil(child) || child.GetDeletionTimestamp() == nil || len(child.GetFinalizers()) == 0 {
		return
	}
	if o := observationOf(ctx); o != nil {
		o.waits.Store(true)
	}
	contextOf(ctx).state.hangs(fmt.Sprintf(
		"%s: %s %s", pathOf(ctx).text(), describeObject(child), message.Deletion(child.GetFinalizers())))
}

// describe names child, or the type where there is none, for errors.
func (k *children[T, CT, CLT]) describe(child CT) string {
	if gotype.IsNil(child) {
		return typeName(k.childType)
	}
	return describeObject(child)
}
