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

// outcome is what came of one child.
type outcome[CT client.Object] struct {
	// child is the child as it is now, nil if there is none.
	child CT
	// reflected is an error that the user is to see on the resource, nil if there is none.
	reflected error
	// returned is an error that the node returns. Nothing is reflected then.
	returned error
}

// judge tells who is to see the error that came of a child: the user, on the resource, or the caller of the node.
func (k *children[T, CT, CLT]) judge(ctx context.Context, config Config, resource T, child, desired CT, err error) outcome[CT] {
	if err == nil {
		return outcome[CT]{child: child}
	}
	reason := apierrs.ReasonForError(err)
	if !slices.Contains(k.reasons, reason) {
		return outcome[CT]{returned: err}
	}
	if reason == metav1.StatusReasonAlreadyExists {
		foreign, lookupErr := k.blockedByForeign(ctx, config, resource, desired, err)
		if lookupErr != nil {
			return outcome[CT]{returned: lookupErr}
		}
		if !foreign {
			// The child is there and ours: the cache lags behind, and the next attempt will see it.
			contextOf(ctx).state.fail(pathOf(ctx), k.describe(desired), ClassConflict, err)
			return outcome[CT]{returned: err}
		}
	}
	return outcome[CT]{reflected: err}
}

// blockedByForeign reads the object that has the name of the desired child, past the cache, and tells whether it belongs to
// somebody else. If so, the resource is woken when it changes.
func (k *children[T, CT, CLT]) blockedByForeign(ctx context.Context, config Config, resource T, desired CT, err error) (bool, error) {
	blocker := copyOf(k.childType)
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
			return false, fmt.Errorf("%s %q is unable to read %s %s, which exists already: %w", k.kind, k.name, typeName(k.childType), key, lookupErr)
		}
		blocker.SetNamespace(key.Namespace)
		blocker.SetName(key.Name)
	} else if k.isOwn(resource, blocker) {
		return false, nil
	}
	logr.FromContextOrDiscard(ctx).Info("unable to reconcile child, not owned",
		"child", describeObject(blocker), "ownerRefs", blocker.GetOwnerReferences())
	if (!k.unowned || k.tracked) && config.Tracker != nil {
		if trackErr := config.track(ctx, blocker, resource); trackErr != nil {
			return false, fmt.Errorf("%s %q is unable to track %s: %w", k.kind, k.name, describeObject(blocker), trackErr)
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
