package reconcilers

import (
	"context"
	"fmt"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/resourcestate"
	"github.com/espalier-dev/espalier/internal/write"
	rtime "github.com/espalier-dev/espalier/time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ObjectManager makes one object agree with what is desired. It is the strategy by which a child is created, updated
// and deleted: [UpdatingObjectManager] merges what is desired into the object and updates it, [ApplyingObjectManager]
// applies it.
//
// An implementation has these duties:
//
//   - It acts only on actual, the object that it gets.
//   - It writes nothing if actual and desired agree, and nothing if actual is terminating.
//   - It does not change actual in memory.
//   - It returns the object as the API server has it.
type ObjectManager[Type client.Object] interface {
	// SetupWithManager adds the watches that the manager needs, and checks its configuration.
	SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error

	// Manage creates desired if actual is absent (nil, or without a creation timestamp). It updates actual to agree
	// with desired if both exist. It deletes actual if desired is nil. Events are recorded on resource, finalizers are
	// put on resource, and tracked objects wake resource. Manage returns the object as the server has it now, or nil if
	// there is none or it was just deleted. A terminating actual is returned unchanged.
	Manage(ctx context.Context, resource client.Object, actual, desired Type) (Type, error)
}

// createsOnly reports whether an object manager says that it does not change the objects that it has created.
func createsOnly(manager any) bool {
	m, ok := manager.(interface{ CreatesOnly() bool })
	return ok && !gotype.IsNil(manager) && m.CreatesOnly()
}

// maxStandaloneWrites bounds the last writes that an object manager keeps itself.
const maxStandaloneWrites = 4096

// objectWriter is one call of Manage. It does what object managers have in common: it decides on the order of the
// steps, and logs, records events and tracks.
type objectWriter[Type client.Object] struct {
	// config reads, writes and tracks the object.
	config Config
	// original records events on regarding: the resource as the root loaded it.
	original  Config
	regarding client.Object
	// resource is the reconciled object.
	resource client.Object
	// finalizer is put on resource before there is an object; empty for none.
	finalizer string
	// tracks is true if events of the object wake the resource.
	tracks bool
	// propagation is used for deletes; empty for the default.
	propagation metav1.DeletionPropagation
	// sanitize is the function of the author; it may be nil.
	sanitize func(Type) any
	// lastWrites are kept by the object manager itself where nothing else is kept of the resource.
	lastWrites *resourcestate.LastWrites

	// manager identifies the object manager, by the last writes that it keeps itself.
	manager *resourcestate.LastWrites
	// kept is what is kept of the reconciled resource; nil for a client that cannot be the key of a map.
	kept *resourcestate.State
	// sender is the client of the node.
	sender client.Client
	// observed is true if observers listen.
	observed bool
}

// objectStrategy is what object managers differ in.
type objectStrategy[Type client.Object] interface {
	// identify identifies what is desired where there is no object yet.
	identify(desired Type) resourcestate.Desired
	// create creates desired, and returns the object as the server has it.
	create(ctx context.Context, w objectWriter[Type], desired Type) (Type, error)
	// update makes actual agree with desired, and returns the object as the server has it. Actual exists and is not
	// terminating.
	update(ctx context.Context, w objectWriter[Type], actual, desired Type) (Type, error)
}

// start completes w with what the request has: its configs, and the last writes that the root keeps with the reconciled
// resource. It prepares desired to be compared and sent.
func (w *objectWriter[Type]) start(ctx context.Context, desired Type) error {
	s := contextOf(ctx)
	switch {
	case !s.hasOriginalConfig:
		return errNoOriginalConfig
	case !s.hasConfig:
		return errNoConfig
	}
	w.original, w.config = s.originalConfig, s.config
	w.regarding, _ = s.behindCast(w.resource)
	w.manager = w.lastWrites
	w.observed = s.state != nil && s.state.observers != nil
	if s.state != nil && s.state.resource != nil {
		if !s.state.lastsForCall {
			w.lastWrites = resourcestate.LoadOrNew[resourcestate.LastWrites](s.state.resource, w.lastWrites)
		}
		if s.comparable {
			w.kept, w.sender = s.state.resource, s.config.Client
		}
	}
	return normalize(desired)
}

// manage makes actual agree with desired, see [ObjectManager].
func (w objectWriter[Type]) manage(ctx context.Context, how objectStrategy[Type], actual, desired Type) (Type, error) {
	var none Type
	switch {
	case gotype.IsNil(desired) && isAbsent(actual):
		return none, ClearFinalizer(ctx, w.resource, w.finalizer)
	case gotype.IsNil(desired):
		return w.delete(ctx, actual)
	}
	if w.finalizer != "" {
		if err := AddFinalizer(ctx, w.resource, w.finalizer); err != nil {
			return none, err
		}
	}
	if isAbsent(actual) {
		return w.create(ctx, how, desired)
	}
	if w.tracks {
		if err := w.config.track(ctx, actual, w.resource); err != nil {
			return none, err
		}
	}
	if actual.GetDeletionTimestamp() != nil {
		// A write would be lost with the object. The event of its deletion wakes the resource, which then creates
		// another.
		logr.FromContextOrDiscard(ctx).V(detailed).Info("resource is terminating, no update possible",
			"resource", describeObject(actual))
		return actual, nil
	}
	updated, err := how.update(ctx, w, actual, desired)
	if err == nil {
		err = stillLimited(ctx, w.kept, w.resource, actual)
	}
	return updated, err
}

// saved tells observers that an object needs no request.
func (w *objectWriter[Type]) saved(ctx context.Context) {
	if w.observed {
		Note(ctx, Saved{Objects: 1})
	}
}

// held tells observers that what differs is not written.
func (w *objectWriter[Type]) held(ctx context.Context, obj client.Object, kind HeldKind) {
	if w.observed {
		Note(ctx, Held{Object: refOf(w.config.Client, obj), Kind: kind})
	}
}

// mayUpdate returns an error if actual must not be written: this write was refused, or actual is written too often.
// Changes returns what is to be changed.
func (w *objectWriter[Type]) mayUpdate(
	ctx context.Context, actual Type, desired resourcestate.Desired, changes func() differences,
) error {
	if err := w.refused(ctx, w.writeOf(actual, desired)); err != nil {
		w.held(ctx, actual, HeldRefused)
		return err
	}
	return holdWrite(ctx, w.resource, actual, func() differences {
		d := changes()
		d.undone = w.lastWrites.Get(actual.GetUID(), desired).Version != ""
		return d
	})
}

// refusalsKey is the key of the refusals of an object manager in the state of a resource.
type refusalsKey struct{ manager *resourcestate.LastWrites }

// writeOf identifies the write of obj: the object as it was read, or what is to be created.
func (w *objectWriter[Type]) writeOf(obj client.Object, desired resourcestate.Desired) resourcestate.RefusedWrite {
	write := resourcestate.RefusedWrite{
		Client:  w.sender,
		Name:    client.ObjectKeyFromObject(obj),
		UID:     obj.GetUID(),
		Version: obj.GetResourceVersion(),
		Desired: desired,
	}
	if write.Name.Name == "" {
		write.Name.Name = obj.GetGenerateName()
	}
	return write
}

// refused returns the answer to an earlier write that was the same, if it was refused as invalid.
func (w *objectWriter[Type]) refused(ctx context.Context, write resourcestate.RefusedWrite) error {
	if w.kept == nil || !write.Desired.Known {
		return nil
	}
	known, ok := resourcestate.Load[*resourcestate.Refusals](w.kept, refusalsKey{w.manager})
	if !ok {
		return nil
	}
	return known.Answer(write, rtime.RetrieveNow(ctx))
}

// noteRefusal remembers that a write was refused with err, if it was refused as invalid.
func (w *objectWriter[Type]) noteRefusal(ctx context.Context, write resourcestate.RefusedWrite, err error) {
	if w.kept == nil || !write.Desired.Known || !apierrs.IsInvalid(err) {
		return
	}
	known := resourcestate.LoadOrNew[resourcestate.Refusals](w.kept, refusalsKey{w.manager})
	known.Add(write, err, rtime.RetrieveNow(ctx))
}

func (w objectWriter[Type]) create(ctx context.Context, how objectStrategy[Type], desired Type) (Type, error) {
	var none Type
	write := w.writeOf(desired, how.identify(desired))
	if err := w.refused(ctx, write); err != nil {
		w.held(ctx, desired, HeldRefused)
		return none, err
	}
	if log := logr.FromContextOrDiscard(ctx).V(detailed); log.Enabled() {
		log.Info("creating resource", "resource", w.loggable(desired))
	}
	if w.tracks && w.config.Tracker == nil {
		return none, fmt.Errorf("unable to track %s: %w", describeObject(desired), errNoTracker)
	}
	created, err := how.create(ctx, w, desired)
	if err != nil {
		w.noteRefusal(ctx, write, err)
		return none, w.failed(ctx, creating, desired, err)
	}
	noteWritten(ctx, w.resource, created, 0)
	w.succeeded(creating, created)
	noteWrite(ctx, "created", written{verb: "create", object: created}, "it did not exist")
	if w.tracks {
		// The name may have been generated, so it can be tracked only now. The object exists even if that fails.
		return created, w.config.track(ctx, created, w.resource)
	}
	return created, nil
}

// delete deletes actual. If actual is already terminating, it is returned: finalizers of others may keep it.
func (w objectWriter[Type]) delete(ctx context.Context, actual Type) (Type, error) {
	var none Type
	if w.tracks {
		// After a restart nothing else knows that the resource waits for this object to go.
		if err := w.config.track(ctx, actual, w.resource); err != nil {
			return none, err
		}
	}
	if actual.GetDeletionTimestamp() != nil {
		return actual, nil
	}
	err := write.Delete(ctx, w.config.Client, actual, write.VersionOf(actual), w.propagation)
	if apierrs.IsNotFound(err) {
		if w.finalizer != "" {
			// The cache lags behind. The finalizer stays until the cache shows no object, and the last event of the
			// object may have come before it was tracked.
			return none, fmt.Errorf("the cache still shows %s, which is gone: %w", describeObject(actual), ErrQuiet)
		}
		return none, nil
	}
	if err != nil {
		return none, w.failed(ctx, deleting, actual, err)
	}
	w.lastWrites.Forget(actual.GetUID())
	w.succeeded(deleting, actual)
	reason := "it is not desired"
	if w.resource.GetDeletionTimestamp() != nil {
		reason = "the resource is being deleted"
	}
	noteWrite(ctx, "deleted", written{verb: "delete", object: actual}, reason)
	return none, nil
}

// attempt is a way of writing an object, with its words in events.
type attempt struct {
	verb, done, failed string
}

var (
	creating = attempt{verb: "create", done: "Created", failed: "CreationFailed"}
	updating = attempt{verb: "update", done: "Updated", failed: "UpdateFailed"}
	deleting = attempt{verb: "delete", done: "Deleted", failed: "DeleteFailed"}
)

// succeeded records what was done to obj.
func (w objectWriter[Type]) succeeded(a attempt, obj Type) {
	w.original.record(w.regarding, corev1.EventTypeNormal, a.done, "%s %s %q", a.done, typeName(obj), obj.GetName())
}

// failed records what could not be done to obj, and returns err.
func (w objectWriter[Type]) failed(ctx context.Context, a attempt, obj Type, err error) error {
	noteFailure(ctx, written{verb: a.verb, object: obj}, err)
	if isQuiet(err) {
		return err
	}
	if a == creating {
		err = explain(ctx, err)
	}
	w.original.record(w.regarding, corev1.EventTypeWarning, a.failed,
		"Failed to %s %s %q: %v", a.verb, typeName(obj), obj.GetName(), err)
	return err
}

// loggable returns what may be logged of obj.
func (w objectWriter[Type]) loggable(obj Type) any {
	return sanitize(obj, w.sanitize)
}

// checkPropagation returns an error for an unknown policy. The API server would refuse it only at the first delete.
func checkPropagation(policy metav1.DeletionPropagation) error {
	switch policy {
	case "", metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan:
		return nil
	default:
		return fmt.Errorf("must have a known DeletionPropagation, not %q", policy)
	}
}

// explanationKey is the key of a function that explains the error of a create: it says whose the object is that has the
// name. The object manager has it explained before it logs it and records it as an event.
type explanationKey struct{}

// explain returns err, with whose the object is if err is an AlreadyExists of a child.
func explain(ctx context.Context, err error) error {
	if f, ok := ctx.Value(explanationKey{}).(func(error) error); ok && apierrs.IsAlreadyExists(err) {
		return f(err)
	}
	return err
}
