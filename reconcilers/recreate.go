package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/internal/resourcestate"
	rtime "github.com/espalier-dev/espalier/time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
	hash := hashOfDesired(desired)
	if !ok || !hash.known || isAbsent(actual) || actual.GetUID() == "" || actual.GetDeletionTimestamp() != nil {
		return none, refused
	}
	now, attempts := rtime.RetrieveNow(ctx), k.recreationsOf(ctx)
	key := recreatedChild{resource: resource.GetUID(), path: pathOf(ctx).String(), name: desired.GetName()}
	attempt := recreation{desired: hash, version: actual.GetResourceVersion(), at: now}
	switch known := attempts.get(key); {
	case known.desired != hash:
	case known.deleted:
		return none, fmt.Errorf("%w (it was deleted and created again for this change before)", refused)
	case known.version == attempt.version && now.Sub(known.at) < refusalLasts:
		return none, refused
	}
	err := config.Create(ctx, copyOf(desired), client.DryRunAll)
	if err != nil && !apierrs.IsAlreadyExists(err) {
		attempts.put(key, attempt)
		return none, refused
	}

	s := contextOf(ctx)
	regarding, _ := s.behindCast(resource)
	s.originalConfig.record(regarding, corev1.EventTypeNormal, "Recreating",
		"Recreating %s %q, because %s cannot be changed", typeName(actual), actual.GetName(), field)
	if _, err := k.manage(ctx, config, resource, actual, none); err != nil {
		return none, err
	}
	attempt.deleted = true
	attempts.put(key, attempt)
	if k.unowned {
		// No event may tell that it is gone.
		s.state.wakeAfter(time.Second)
	}
	// It counts as the child until it is gone, and is no longer one that may be ready.
	deleted := copyOf(actual)
	deleted.SetDeletionTimestamp(new(metav1.NewTime(now)))
	return deleted, nil
}

// recreations are the children of one node that were deleted to be created again, or that could not be. A root keeps
// them with the resource.
type recreations struct {
	mu      sync.Mutex
	byChild map[recreatedChild]recreation
}

// recreatedChild identifies a child also after it was created again.
type recreatedChild struct {
	resource types.UID
	// path is the path of the node, which ends with the identity of a child of a set.
	path string
	// name is the name of the child; empty if it is generated.
	name string
}

// recreation is the last attempt to recreate a child.
type recreation struct {
	// desired is what was desired.
	desired desiredHash
	// deleted reports whether the child was deleted. Else a dry run has shown that what is desired cannot be created
	// either.
	deleted bool
	// version and at are the version of the child, and the time.
	version string
	at      time.Time
}

// recreationsKey is the key of the recreations of a node in the state of a resource.
type recreationsKey struct{ node any }

// recreationsOf returns the attempts of the node. Outside of a root the node itself keeps them.
func (k *children[T, CT, CLT]) recreationsOf(ctx context.Context) *recreations {
	kept := stateOf(ctx)
	if kept == nil {
		return &k.recreations
	}
	return resourcestate.LoadOrStore(kept, recreationsKey{k.node}, func() *recreations { return &recreations{} })
}

func (r *recreations) get(key recreatedChild) recreation {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byChild[key]
}

func (r *recreations) put(key recreatedChild, attempt recreation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byChild == nil {
		r.byChild = map[recreatedChild]recreation{}
	}
	r.byChild[key] = attempt
}

// refusedField returns the first field that a refusal names and in which actual really differs from what is desired.
func refusedField(refused error, desired, actual client.Object) (string, bool) {
	var status apierrs.APIStatus
	if !errors.As(refused, &status) || status.Status().Details == nil {
		return "", false
	}
	wanted, err := contentOf(desired)
	if err != nil {
		return "", false
	}
	there, err := contentOf(actual)
	if err != nil {
		return "", false
	}
	for _, cause := range status.Status().Details.Causes {
		value, ok := fieldAt(wanted, cause.Field)
		current, _ := fieldAt(there, cause.Field)
		if ok && setsAnother(value, current) {
			return cause.Field, true
		}
	}
	return "", false
}

// fieldAt returns what is at a path as the API server writes it, such as spec.containers[0].image or
// metadata.labels[app]. It is false for an empty path, and if there is nothing.
func fieldAt(content any, path string) (value any, ok bool) {
	if path == "" {
		return nil, false
	}
	for path != "" {
		var step string
		step, path = firstStep(path)
		switch at := content.(type) {
		case map[string]any:
			content, ok = at[step]
		case []any:
			index, err := strconv.Atoi(step)
			if ok = err == nil && index >= 0 && index < len(at); ok {
				content = at[index]
			}
		default:
			ok = false
		}
		if !ok {
			return nil, false
		}
	}
	return content, ok
}

// firstStep splits a path that is not empty into its first name, key or index and the rest.
func firstStep(path string) (step, rest string) {
	if inner, ok := strings.CutPrefix(path, "["); ok {
		step, rest, _ = strings.Cut(inner, "]")
		return step, rest
	}
	path = strings.TrimPrefix(path, ".")
	if end := strings.IndexAny(path, ".["); end >= 0 {
		return path[:end], path[end:]
	}
	return path, ""
}

// setsAnother reports whether desired sets a value that current does not have. What current has beside that, such as a
// default, is no difference.
func setsAnother(desired, current any) bool {
	switch desired := desired.(type) {
	case nil:
		return false
	case map[string]any:
		there, _ := current.(map[string]any)
		for name, value := range desired {
			if setsAnother(value, there[name]) {
				return true
			}
		}
		return false
	case []any:
		there, _ := current.([]any)
		if len(desired) != len(there) {
			return true
		}
		for i := range desired {
			if setsAnother(desired[i], there[i]) {
				return true
			}
		}
		return false
	}
	return !reflect.DeepEqual(desired, current)
}
