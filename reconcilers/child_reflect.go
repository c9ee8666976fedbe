package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reflect writes the outcome onto the resource, or returns an error that is not for the user to see there.
func (r *ChildReconciler[T, CT, CLT]) reflect(ctx context.Context, config Config, resource T, child, desired CT, err error) error {
	var none CT
	if err == nil {
		return r.reflectOn(ctx, resource, child, nil)
	}
	reason := apierrs.ReasonForError(err)
	if !slices.Contains(r.ReflectedChildErrorReasons, reason) {
		return err
	}
	if reason == metav1.StatusReasonAlreadyExists {
		foreign, lookupErr := r.blockedByForeign(ctx, config, resource, desired, err)
		if lookupErr != nil {
			return lookupErr
		}
		if !foreign {
			// The child is there and ours: the cache lags behind, and the next attempt will see it.
			scopeOf(ctx).pass.fail(positionOf(ctx), r.describeChild(desired), ClassConflict, err)
			return err
		}
	}
	return r.reflectOn(ctx, resource, none, err)
}

func (r *ChildReconciler[T, CT, CLT]) reflectOn(ctx context.Context, resource T, child CT, err error) error {
	if r.ReflectChildStatusOnParentWithError != nil {
		return r.ReflectChildStatusOnParentWithError(ctx, resource, child, err)
	}
	r.ReflectChildStatusOnParent(ctx, resource, child, err)
	return nil
}

// blockedByForeign reads the object that has the name of the desired child, past the cache, and tells whether it belongs to
// somebody else. If so, the resource is woken when it changes.
func (r *ChildReconciler[T, CT, CLT]) blockedByForeign(ctx context.Context, config Config, resource T, desired CT, err error) (bool, error) {
	blocker := copyOf(r.ChildType)
	key := blockerKey(resource, desired, err)
	if config.APIReader == nil {
		// Nobody can tell. If it is ours, the cache shows it soon.
		return false, nil
	}
	if key.Name == "" {
		return true, nil
	}
	if lookupErr := config.APIReader.Get(ctx, key, blocker); lookupErr != nil {
		if !apierrs.IsNotFound(lookupErr) {
			return false, fmt.Errorf("ChildReconciler %q is unable to read %s %s, which exists already: %w", r.Name, typeName(r.ChildType), key, lookupErr)
		}
		blocker.SetNamespace(key.Namespace)
		blocker.SetName(key.Name)
	} else if r.ours(resource, blocker) {
		return false, nil
	}
	logr.FromContextOrDiscard(ctx).Info("unable to reconcile child, not owned",
		"child", describeObject(blocker), "ownerRefs", blocker.GetOwnerReferences())
	if !r.skipOwnerReference() && config.Tracker != nil {
		if trackErr := config.track(ctx, blocker, resource); trackErr != nil {
			return false, fmt.Errorf("ChildReconciler %q is unable to track %s: %w", r.Name, describeObject(blocker), trackErr)
		}
	}
	return true, nil
}

// blockerKey names the object in the way of desired. The server names it in the details of its answer, which matters for a
// generated name; an error made elsewhere may have none.
func blockerKey(resource, desired client.Object, err error) client.ObjectKey {
	var key client.ObjectKey
	if !isNil(desired) {
		key = client.ObjectKeyFromObject(desired)
	}
	if key.Namespace == "" {
		key.Namespace = resource.GetNamespace()
	}
	var status apierrs.APIStatus
	if errors.As(err, &status) {
		if details := status.Status().Details; details != nil && details.Name != "" {
			key.Name = details.Name
		}
	}
	return key
}
