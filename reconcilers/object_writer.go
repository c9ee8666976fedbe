package reconcilers

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// objectWriter is one call of Manage. It does what object managers have in common: which step comes when, and what is
// logged, recorded and tracked.
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
	// lastWrites are those of the object manager.
	lastWrites *lastWrites
}

// objectStrategy is what object managers differ in.
type objectStrategy[Type client.Object] interface {
	// create creates desired, and returns the object as the server has it.
	create(ctx context.Context, w objectWriter[Type], desired Type) (Type, error)
	// update makes actual agree with desired, and returns the object as the server has it. Actual exists and is not
	// terminating.
	update(ctx context.Context, w objectWriter[Type], actual, desired Type) (Type, error)
}

// useConfigs completes w with the configs of the request.
func (w *objectWriter[Type]) useConfigs(ctx context.Context) error {
	original, err := RetrieveOriginalConfig(ctx)
	if err != nil {
		return err
	}
	config, err := RetrieveConfig(ctx)
	if err != nil {
		return err
	}
	w.original, w.config = original, config
	w.regarding, _ = resourceBehindCast(ctx, w.resource)
	return nil
}

// manage makes actual agree with desired, see [ObjectManager].
func (w objectWriter[Type]) manage(ctx context.Context, how objectStrategy[Type], actual, desired Type) (Type, error) {
	var none Type
	switch {
	case isNil(desired) && isAbsent(actual):
		return none, ClearFinalizer(ctx, w.resource, w.finalizer)
	case isNil(desired):
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
		// What is written to it would go with it. Its going wakes the resource, and only then can another be created.
		logr.FromContextOrDiscard(ctx).Info("resource is terminating, no update possible", "resource", describeObject(actual))
		return actual, nil
	}
	return how.update(ctx, w, actual, desired)
}

func (w objectWriter[Type]) create(ctx context.Context, how objectStrategy[Type], desired Type) (Type, error) {
	var none Type
	log := logr.FromContextOrDiscard(ctx)
	if log.Enabled() {
		log.Info("creating resource", "resource", w.loggable(desired))
	}
	if w.tracks && w.config.Tracker == nil {
		return none, fmt.Errorf("unable to track %s: %w", describeObject(desired), errNoTracker)
	}
	created, err := how.create(ctx, w, desired)
	if err != nil {
		return none, w.failed(ctx, creating, desired, err)
	}
	w.succeeded(creating, created)
	if w.tracks {
		// The name may have been generated, so it can be tracked only now. The object is there whatever becomes of
		// that.
		return created, w.config.track(ctx, created, w.resource)
	}
	return created, nil
}

// delete deletes actual. It returns an object that is already terminating, because finalizers of others may hold it.
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
	log := logr.FromContextOrDiscard(ctx)
	if log.Enabled() {
		log.Info("deleting unwanted resource", "resource", w.loggable(actual))
	}
	err := w.config.Delete(ctx, actual, deleteOptions(actual, w.propagation)...)
	if apierrs.IsNotFound(err) {
		// The cache showed what is gone already.
		if w.finalizer != "" {
			// Its last event may be past, and the finalizer goes only when the cache shows nothing.
			return none, fmt.Errorf("the cache still shows %s, which is gone: %w", describeObject(actual), ErrQuiet)
		}
		return none, nil
	}
	if err != nil {
		return none, w.failed(ctx, deleting, actual, err)
	}
	w.lastWrites.forget(actual.GetUID())
	w.succeeded(deleting, actual)
	return none, nil
}

// deleteOptions have preconditions for the object that was decided on, as it was then. Another object of its name, or
// one that has changed since, is not deleted.
func deleteOptions(obj client.Object, propagation metav1.DeletionPropagation) []client.DeleteOption {
	if propagation == "" {
		// What the API server does without being told differs from type to type: Jobs leave their Pods behind.
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

// attempt has the words for one way of writing an object, in logs and events.
type attempt struct {
	verb, logged, done, failed string
}

var (
	creating = attempt{verb: "create", logged: "create resource", done: "Created", failed: "CreationFailed"}
	updating = attempt{verb: "update", logged: "update resource", done: "Updated", failed: "UpdateFailed"}
	deleting = attempt{verb: "delete", logged: "delete unwanted resource", done: "Deleted", failed: "DeleteFailed"}
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
	logr.FromContextOrDiscard(ctx).Error(err, "unable to "+a.logged, "resource", w.loggable(obj))
	w.original.record(w.regarding, corev1.EventTypeWarning, a.failed, "Failed to %s %s %q: %v", a.verb, typeName(obj), obj.GetName(), err)
	return err
}

// loggable returns what may be logged of obj.
func (w objectWriter[Type]) loggable(obj Type) any {
	return sanitize(obj, w.sanitize)
}

// checkPropagation finds a policy that the API server would refuse only when the first object is to go.
func checkPropagation(policy metav1.DeletionPropagation) error {
	switch policy {
	case "", metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan:
		return nil
	default:
		return fmt.Errorf("must have a known DeletionPropagation, not %q", policy)
	}
}
