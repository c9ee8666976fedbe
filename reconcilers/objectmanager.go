package reconcilers

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/internal/digest"
	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/managedfields"
	"github.com/espalier-dev/espalier/internal/resourcestate"
	"github.com/espalier-dev/espalier/internal/statusfield"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
	// lastWrites are kept by the object manager itself, outside of a root.
	lastWrites *lastWrites

	// manager identifies the object manager, by the last writes that it keeps itself.
	manager *lastWrites
	// kept is what the root keeps of the reconciled resource; nil outside of a root.
	kept *resourcestate.State
	// sender is the client of the node.
	sender client.Client
}

// objectStrategy is what object managers differ in.
type objectStrategy[Type client.Object] interface {
	// hash identifies what is desired where there is no object yet.
	hash(desired Type) desiredHash
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
	if s.state != nil && s.state.resource != nil {
		empty := func() *lastWrites { return &lastWrites{} }
		w.lastWrites = resourcestate.LoadOrStore(s.state.resource, w.lastWrites, empty)
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
	if known := w.lastWrites.flapping(actual.GetUID()); err == nil && known != nil && known.flaps {
		err = w.flappingUntilQuiet(ctx, actual, known)
	}
	return updated, err
}

// mayUpdate returns an error if actual must not be written: this write was refused, or what is desired is flapping.
// Content returns the content of what is desired, or nil.
func (w *objectWriter[Type]) mayUpdate(
	ctx context.Context, actual Type, desired desiredHash, content func() map[string]any,
) error {
	if err := w.refused(ctx, w.writeOf(actual, desired)); err != nil {
		return err
	}
	return w.hold(ctx, actual, desired, content)
}

func (w objectWriter[Type]) create(ctx context.Context, how objectStrategy[Type], desired Type) (Type, error) {
	var none Type
	write := w.writeOf(desired, how.hash(desired))
	if err := w.refused(ctx, write); err != nil {
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
	w.succeeded(creating, created)
	logChange(ctx, "created", created, because("it did not exist"))
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
	err := w.config.Delete(ctx, actual, deleteOptions(actual, w.propagation)...)
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
	w.lastWrites.forget(actual.GetUID())
	w.succeeded(deleting, actual)
	logChange(ctx, "deleted", actual, func() string {
		if w.resource.GetDeletionTimestamp() != nil {
			return "the resource is being deleted"
		}
		return "it is not desired"
	})
	return none, nil
}

// deleteOptions have the UID and the version of obj as preconditions. An object that has changed since it was read is
// not deleted, nor is another object of its name.
func deleteOptions(obj client.Object, propagation metav1.DeletionPropagation) []client.DeleteOption {
	if propagation == "" {
		// The default of the API server differs from type to type: Jobs leave their Pods behind.
		propagation = metav1.DeletePropagationBackground
	}
	options := []client.DeleteOption{client.PropagationPolicy(propagation)}
	var preconditions client.Preconditions
	if uid := obj.GetUID(); uid != "" {
		preconditions.UID = &uid
	}
	if version := obj.GetResourceVersion(); version != "" {
		preconditions.ResourceVersion = &version
	}
	if preconditions == (client.Preconditions{}) {
		return options
	}
	return append(options, preconditions)
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

// lastWrite is what an object manager knows of an object from its last write, or its last comparison.
type lastWrite struct {
	// desired is the hash of what was desired.
	desired desiredHash
	// version is the resource version at which the object agreed with what was desired.
	version string
	// additions are what the server adds to what is desired. They are nil if it adds nothing, or if that is not known.
	additions *Patch
	// accepted are the differences that an apply leaves.
	accepted managedfields.Differences
}

// agreed reports whether actual is still the very version that agreed with what is desired.
func (l lastWrite) agreed(actual client.Object) bool {
	return l.version != "" && l.version == actual.GetResourceVersion()
}

// sameVersion reports whether a and b are one version of an object, and not just two without a version.
func sameVersion(a, b client.Object) bool {
	version := a.GetResourceVersion()
	return version != "" && version == b.GetResourceVersion()
}

// desiredHash identifies what is desired of an object: two equal hashes desire the same.
type desiredHash struct {
	digest uint64
	known  bool
}

// hashOfDesired returns the hash of desired. A value without a digest desires something new each time.
func hashOfDesired(desired any) desiredHash {
	sum, ok := digest.Of(desired)
	return desiredHash{digest: sum, known: ok}
}

// hashOfDesiredFor is hashOfDesired for an object that may be made from a copy of actual, as an aggregate is by
// default. Such an object repeats what the server and others say about it. Without what it repeats, its hash does not
// change whenever they say something else.
func hashOfDesiredFor(desired, actual client.Object) desiredHash {
	if desired.GetResourceVersion() == "" || desired.GetUID() != actual.GetUID() {
		return hashOfDesired(desired)
	}
	own := desired.DeepCopyObject().(client.Object)
	own.SetUID("")
	own.SetResourceVersion("")
	own.SetGeneration(0)
	own.SetCreationTimestamp(metav1.Time{})
	own.SetManagedFields(nil)
	// An object that repeats something has another hash than an object that lacks it.
	var repeats struct{ labels, annotations, status bool }
	if labels := own.GetLabels(); len(labels) > 0 && maps.Equal(labels, actual.GetLabels()) {
		own.SetLabels(nil)
		repeats.labels = true
	}
	if annotations := own.GetAnnotations(); len(annotations) > 0 && maps.Equal(annotations, actual.GetAnnotations()) {
		own.SetAnnotations(nil)
		repeats.annotations = true
	}
	if status := statusfield.Of(own); status.Exists() && !status.Differs(statusfield.Of(actual)) {
		status.Clear()
		repeats.status = true
	}
	return hashOfDesired([]any{own, repeats})
}

// lastWrites are the last writes of one object manager, by the UID of the object. Below a root they belong to one
// resource, and a write that is not looked up in 64 requests in a row is dropped: its object is gone, or not managed by
// the tree any more.
type lastWrites struct {
	mu      sync.Mutex
	byUID   map[types.UID]usedWrite
	limit   int
	request uint64
}

type usedWrite struct {
	lastWrite
	// used is the request that looked it up last.
	used uint64
	// flapping is what is known of the changes of what is desired; nil if the object was not updated yet.
	flapping *flapping
}

const (
	// maxIdleRequests is for how many requests in a row a write may go unused. An error or a halt keeps a request from
	// using all of them, and the next requests use them again.
	maxIdleRequests = 64
	// maxStandaloneWrites bounds the writes where there are no requests to count.
	maxStandaloneWrites = 4096
)

var _ resourcestate.Evictor = (*lastWrites)(nil)

// get returns the last write of an object, empty if there is none, or if something else was desired then.
func (w *lastWrites) get(uid types.UID, desired desiredHash) lastWrite {
	w.mu.Lock()
	defer w.mu.Unlock()
	write, ok := w.byUID[uid]
	if !ok {
		return lastWrite{}
	}
	if write.used != w.request {
		write.used = w.request
		w.byUID[uid] = write
	}
	if !desired.known || write.desired != desired {
		return lastWrite{}
	}
	return write.lastWrite
}

// record remembers that actual agrees with what is desired. An object without a UID, as in tests, is not recorded.
func (w *lastWrites) record(actual client.Object, desired desiredHash, last lastWrite) {
	uid := actual.GetUID()
	if uid == "" || !desired.known {
		return
	}
	last.desired = desired
	last.version = actual.GetResourceVersion()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byUID == nil || w.limit > 0 && len(w.byUID) >= w.limit {
		w.byUID = map[types.UID]usedWrite{}
	}
	w.byUID[uid] = usedWrite{lastWrite: last, used: w.request, flapping: w.byUID[uid].flapping}
}

// flapping returns what is known of the changes of what is desired of an object, or nil.
func (w *lastWrites) flapping(uid types.UID) *flapping {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.byUID[uid].flapping
}

func (w *lastWrites) setFlapping(uid types.UID, known *flapping) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byUID == nil {
		w.byUID = map[types.UID]usedWrite{}
	}
	write := w.byUID[uid]
	write.used, write.flapping = w.request, known
	w.byUID[uid] = write
}

func (w *lastWrites) forget(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.byUID, uid)
}

// Evict implements [resourcestate.Evictor].
func (w *lastWrites) Evict(now time.Time) (empty bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for uid, write := range w.byUID {
		if w.request-write.used > maxIdleRequests {
			delete(w.byUID, uid)
			continue
		}
		if write.flapping != nil && write.flapping.previous != nil {
			write.flapping = write.flapping.dropPrevious(now)
			w.byUID[uid] = write
		}
	}
	w.request++
	return len(w.byUID) == 0
}
