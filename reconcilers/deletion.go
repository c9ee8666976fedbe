package reconcilers

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// delete asks for actual to go. It returns what is there still: an object that is already terminating, for others may hold it.
func (w worksite[Type]) delete(ctx context.Context, actual Type) (Type, error) {
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
	w.lessons.forget(actual.GetUID())
	w.succeeded(deleting, actual)
	return none, nil
}

// deleteOptions make sure that what is deleted is the object that was decided on, as it was when that was decided: not another
// of its name, nor one that somebody has changed since.
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

// checkPropagation finds a policy that the API server would refuse only when the first object is to go.
func checkPropagation(policy metav1.DeletionPropagation) error {
	switch policy {
	case "", metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan:
		return nil
	default:
		return fmt.Errorf("must have a known DeletionPropagation, not %q", policy)
	}
}
