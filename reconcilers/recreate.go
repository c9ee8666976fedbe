package reconcilers

import (
	"context"
	"fmt"
	"time"

	"github.com/espalier-dev/espalier/internal/resourcestate"
	"github.com/espalier-dev/espalier/internal/write"
	rtime "github.com/espalier-dev/espalier/time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

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
	now, attempts := rtime.RetrieveNow(ctx), k.recreationsOf(ctx)
	key := resourcestate.RecreatedChild{
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
	err := config.Create(ctx, copyOf(desired), client.DryRunAll)
	if err != nil && !apierrs.IsAlreadyExists(err) {
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
	if k.unowned {
		// No event may tell that it is gone.
		s.state.wakeAfter(time.Second)
	}
	// It counts as the child until it is gone, and is no longer one that may be ready.
	deleted := copyOf(actual)
	deleted.SetDeletionTimestamp(new(metav1.NewTime(now)))
	return deleted, nil
}

// recreationsKey is the key of the recreations of a node in the state of a resource.
type recreationsKey struct{ node any }

// recreationsOf returns the attempts of the node. Outside of a root the node itself keeps them.
func (k *children[T, CT, CLT]) recreationsOf(ctx context.Context) *resourcestate.Recreations {
	kept := stateOf(ctx)
	if kept == nil {
		return &k.recreations
	}
	return resourcestate.LoadOrNew[resourcestate.Recreations](kept, recreationsKey{k.node})
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
