package reconcilers

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// worksite is what one call of Manage works with. What object managers have in common is done here: when what happens, and what
// is logged, recorded and tracked of it.
type worksite[Type client.Object] struct {
	// config reads, writes and tracks the object.
	config Config
	// events are recorded through original, on regarding: the resource as the root loaded it.
	original  Config
	regarding client.Object
	// resource is the reconciled object.
	resource client.Object
	// finalizer is put on resource before there is an object; empty for none.
	finalizer string
	// tracks tells whether resource is woken by the object.
	tracks bool
	// propagation is that of deletes; empty for the default.
	propagation metav1.DeletionPropagation
	// sanitize is the author's; it may be nil.
	sanitize func(Type) any
	// lessons are those of the manager.
	lessons notebook
}

// craft is what object managers differ in.
type craft[Type client.Object] interface {
	// post creates desired, and returns the object as the server has it.
	post(ctx context.Context, w worksite[Type], desired Type) (Type, error)
	// change makes actual, which is there and not about to go, agree with desired, and returns the object as the server has it.
	change(ctx context.Context, w worksite[Type], actual, desired Type) (Type, error)
}

// locate completes w with the configs of the request.
func (w *worksite[Type]) locate(ctx context.Context) error {
	original, err := RetrieveOriginalConfig(ctx)
	if err != nil {
		return err
	}
	config, err := RetrieveConfig(ctx)
	if err != nil {
		return err
	}
	w.original, w.config = original, config
	w.regarding, _ = originalOf(ctx, w.resource)
	return nil
}

// manage makes actual agree with desired, see [ObjectManager].
func (w worksite[Type]) manage(ctx context.Context, how craft[Type], actual, desired Type) (Type, error) {
	var none Type
	switch {
	case isNil(desired) && isAbsent(actual):
		return none, ClearFinalizer(ctx, w.resource, w.finalizer)
	case isNil(desired):
		return w.delete(ctx, actual)
	}
	if err := AddFinalizer(ctx, w.resource, w.finalizer); err != nil {
		return none, err
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
	return how.change(ctx, w, actual, desired)
}

func (w worksite[Type]) create(ctx context.Context, how craft[Type], desired Type) (Type, error) {
	var none Type
	log := logr.FromContextOrDiscard(ctx)
	if log.Enabled() {
		log.Info("creating resource", "resource", w.loggable(desired))
	}
	if w.tracks && w.config.Tracker == nil {
		return none, fmt.Errorf("unable to track %s: %w", describeObject(desired), errNoTracker)
	}
	created, err := how.post(ctx, w, desired)
	if err != nil {
		return none, w.failed(ctx, creating, desired, err)
	}
	w.succeeded(creating, created)
	if w.tracks {
		// The name may have been generated, so it can be tracked only now. The object is there whatever becomes of that.
		return created, w.config.track(ctx, created, w.resource)
	}
	return created, nil
}

// attempt is how one way of writing an object is spoken of in logs and events.
type attempt struct {
	verb, logged, done, failed string
}

var (
	creating = attempt{verb: "create", logged: "create resource", done: "Created", failed: "CreationFailed"}
	updating = attempt{verb: "update", logged: "update resource", done: "Updated", failed: "UpdateFailed"}
	deleting = attempt{verb: "delete", logged: "delete unwanted resource", done: "Deleted", failed: "DeleteFailed"}
)

// succeeded records what was done to obj.
func (w worksite[Type]) succeeded(a attempt, obj Type) {
	w.original.record(w.regarding, corev1.EventTypeNormal, a.done, "%s %s %q", a.done, typeName(obj), obj.GetName())
}

// failed records what could not be done to obj, and returns err.
func (w worksite[Type]) failed(ctx context.Context, a attempt, obj Type, err error) error {
	if isQuiet(err) {
		return err
	}
	logr.FromContextOrDiscard(ctx).Error(err, "unable to "+a.logged, "resource", w.loggable(obj))
	w.original.record(w.regarding, corev1.EventTypeWarning, a.failed, "Failed to %s %s %q: %v", a.verb, typeName(obj), obj.GetName(), err)
	return err
}

// loggable returns what may be logged of obj.
func (w worksite[Type]) loggable(obj Type) any {
	return sanitize(obj, w.sanitize)
}
