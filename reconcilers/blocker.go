package reconcilers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/ownership"
	"github.com/espalier-dev/espalier/internal/resourcestate"
	"github.com/espalier-dev/espalier/internal/shard"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// explainedError is a refusal of the API server with a text that says more. It has the status of the error that it
// wraps.
type explainedError struct {
	error
	// text is the text of the error. It is empty if that is the text of the wrapped error.
	text string
}

func (e *explainedError) Error() string { return cmp.Or(e.text, e.error.Error()) }

func (e *explainedError) Unwrap() error { return e.error }

// Status implements [apierrs.APIStatus]. Functions that reflect a child may expect it of each refusal.
func (e *explainedError) Status() metav1.Status {
	var answer apierrs.APIStatus
	if !errors.As(e.error, &answer) {
		return metav1.Status{}
	}
	status := answer.Status()
	status.Message = e.Error()
	return status
}

var _ apierrs.APIStatus = (*explainedError)(nil)

// existsError is an AlreadyExists of a child, with what is known of the object that has the name of the child. Its text
// says whose the object is, if that is known.
type existsError struct {
	explainedError
	// ours is true if the object may be a child of the node, which the cache does not show yet.
	ours bool
	// unreadable is set if the object cannot be read or tracked.
	unreadable error
}

// explained returns the error that people see. It is the wrapped error if nothing is known of the object.
func (e *existsError) explained() error {
	if e.text == "" {
		return e.error
	}
	return e
}

// blockerOf returns what is known of the object that has the name of the desired child, which err is about. It reads
// the object past the cache, once for an error. If the object is not a child of the node, the resource is woken when it
// changes.
func (k *children[T, CT, CLT]) blockerOf(
	ctx context.Context, config Config, resource T, desired CT, err error,
) *existsError {
	var found *existsError
	if errors.As(err, &found) {
		return found
	}
	found = &existsError{explainedError: explainedError{error: err}}
	key := blockerKey(resource, desired, err)
	switch {
	case config.APIReader == nil:
		// It cannot be read. If it is ours, the cache shows it soon.
		found.ours = true
		return found
	case key.Name == "":
		return found
	}
	blocker, item := copyOf(k.childType), itemOf(ctx).labelled()
	getErr := config.APIReader.Get(ctx, key, blocker)
	switch {
	case apierrs.IsNotFound(getErr):
		blocker.SetNamespace(key.Namespace)
		blocker.SetName(key.Name)
	case getErr != nil:
		found.unreadable = k.errorf("is unable to read %s %s, which exists already: %w",
			typeName(k.childType), key, getErr)
		return found
	case k.isOwn(resource, blocker, item), k.isUnlabelled(resource, blocker, item):
		found.ours = true
		return found
	default:
		if kept, key := k.takenNames(ctx, resource, desired); kept != nil {
			kept.Put(key, takenName{exists: err})
		}
	}
	return k.explain(ctx, config, resource, blocker, found)
}

// takenName is the name of a child that the API server refused, because another object has it.
type takenName struct{ exists error }

// takenNames returns what is remembered of taken names, with the key of the desired child. It is nil where no watch
// shows the other object.
func (k *children[T, CT, CLT]) takenNames(
	ctx context.Context, resource T, desired CT,
) (*resourcestate.Memory[takenName], resourcestate.Child) {
	if k.unowned && !k.tracked || desired.GetName() == "" {
		return nil, resourcestate.Child{}
	}
	key := resourcestate.Child{Resource: resource.GetUID(), Path: pathOf(ctx).String(), Name: desired.GetName()}
	return memoryOf[takenName](ctx, k.node), key
}

// stillTaken returns the AlreadyExists of an earlier request, if the cache still shows the object of somebody else that
// has the name of the desired child. So a name that is taken costs no requests, and records no event again.
func (k *children[T, CT, CLT]) stillTaken(ctx context.Context, config Config, resource T, desired CT) error {
	names, key := k.takenNames(ctx, resource, desired)
	if names == nil || names.Get(key).exists == nil {
		return nil
	}
	blocker, item := copyOf(k.childType), itemOf(ctx).labelled()
	err := config.Get(ctx, blockerKey(resource, desired, nil), blocker)
	if err != nil || k.isOwn(resource, blocker, item) || k.isUnlabelled(resource, blocker, item) {
		names.Put(key, takenName{})
		return nil
	}
	exists := &existsError{explainedError: explainedError{error: names.Get(key).exists}}
	return k.explain(ctx, config, resource, blocker, exists)
}

// beforeCreate returns the context of an object manager that creates desired where there is no actual, see
// explanationKey. It returns an error if nothing can be created, because another object still has the name.
func (k *children[T, CT, CLT]) beforeCreate(
	ctx context.Context, config Config, resource T, actual, desired CT,
) (context.Context, error) {
	if !isAbsent(actual) || gotype.IsNil(desired) || !slices.Contains(k.reasons, metav1.StatusReasonAlreadyExists) {
		return ctx, nil
	}
	return k.withExplanation(ctx, config, resource, desired), k.stillTaken(ctx, config, resource, desired)
}

// withExplanation is not part of beforeCreate, whose arguments would be on the heap in each request.
func (k *children[T, CT, CLT]) withExplanation(
	ctx context.Context, config Config, resource T, desired CT,
) context.Context {
	return context.WithValue(ctx, explanationKey{}, func(exists error) error {
		return k.blockerOf(ctx, config, resource, desired, exists)
	})
}

// explain adds whose the object is that has the name of a child, and has the resource woken when it changes.
func (k *children[T, CT, CLT]) explain(
	ctx context.Context, config Config, resource T, blocker CT, found *existsError,
) *existsError {
	if claim := k.claimOf(resource, blocker, itemOf(ctx).labelled()); claim != "" {
		found.text = fmt.Sprintf("%v and %s", found.error, claim)
	}
	if (!k.unowned || k.tracked) && config.Tracker != nil {
		if err := config.track(ctx, blocker, resource); err != nil {
			found.unreadable = k.errorf("is unable to track %s: %w", describeObject(blocker), err)
		}
		if filters, _ := shard.Filters(config.shard, k.indexed.Kind); filters {
			// It may have no events, since it may be no object of the shard.
			contextOf(ctx).state.wakeAfter(time.Minute)
		}
	}
	return found
}

// claimOf says whose an object is that is not a child of the node, in words that follow "it".
func (k *children[T, CT, CLT]) claimOf(resource T, blocker CT, item string) string {
	claim := ownership.ClaimOf(blocker)
	if !metav1.IsControlledBy(blocker, resource) {
		return claim
	}
	if other := blocker.GetLabels()[NodeLabel]; k.label != "" && other != "" && other != k.label {
		return claim + fmt.Sprintf(" as the child of the node %q", other)
	}
	if other := blocker.GetLabels()[ItemLabel]; other != item {
		if other == "" {
			return claim + ", and is not for an item"
		}
		return claim + fmt.Sprintf(" for another item, which has the label %s=%s", ItemLabel, other)
	}
	return claim + ", but is not selected by OurChild"
}

// blockerKey returns the name of the object that is in the way of desired. The answer of the server has the name in its
// details, which matters for a generated name. An error of another origin may have none.
func blockerKey(resource, desired client.Object, err error) client.ObjectKey {
	var key client.ObjectKey
	if !gotype.IsNil(desired) {
		key = client.ObjectKeyFromObject(desired)
	}
	key.Namespace = cmp.Or(key.Namespace, resource.GetNamespace())
	var status apierrs.APIStatus
	if errors.As(err, &status) {
		if details := status.Status().Details; details != nil {
			key.Name = cmp.Or(details.Name, key.Name)
		}
	}
	return key
}
