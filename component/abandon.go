package component

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/component/clusters"
	"github.com/espalier-dev/espalier/internal/component/inventory"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/kinds"
	"github.com/espalier-dev/espalier/internal/message"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
)

// missingError means that there is no kubeconfig.
type missingError struct{ error }

// unusableError means that a kubeconfig, or the identity to use with it, cannot be used.
type unusableError struct{ error }

func (e *unusableError) Unwrap() error { return e.error }

// unreachableError names the cluster that does not answer.
type unreachableError struct {
	*clusters.UnreachableError

	cluster string
}

func (e *unreachableError) Error() string { return e.cluster + " " + e.Problem }

func (e *unreachableError) Unwrap() error { return e.UnreachableError }

// explain turns the errors of many objects in a cluster that does not answer into one, which says when to try again.
func (r *request[T]) explain(err error) error {
	failed, ok := errors.AsType[*clusters.UnreachableError](err)
	if !ok && r.target != nil && apierrs.IsUnauthorized(err) {
		failed, ok = errors.AsType[*clusters.UnreachableError](r.target.reachability.Failure())
	}
	if !ok {
		return err
	}
	return generator.NewRetriableError(&unreachableError{failed, r.clusterName()}, &failed.RetryAfter)
}

// outOfReach reports whether the operator cannot delete the objects for a reason that may never go away: their cluster
// is not known any more, is another one, does not answer, or does not let it.
func (r *request[T]) outOfReach(err error) bool {
	_, missing := errors.AsType[*missingError](err)
	_, unusable := errors.AsType[*unusableError](err)
	_, unreachable := errors.AsType[*clusters.UnreachableError](err)
	// Without a target, the operator may not do something in its own cluster.
	denied := r.target != nil && (apierrs.IsForbidden(err) || apierrs.IsUnauthorized(err))
	return missing || unusable || unreachable || denied || errors.Is(err, errElsewhere)
}

// stallAfter is how long a deletion goes on without a write that succeeds before it offers to give up the objects,
// whatever it waits for.
const stallAfter = 10 * time.Minute

// stalls reports whether the deletion has not gone on for a while. A process that has just started does not know what
// the one before has written, and begins to count.
func (r *request[T]) stalls() bool {
	if since := &r.state.stalledSince; since.IsZero() || r.report != nil && r.report.Changed() {
		*since = r.now
	}
	at := r.state.stalledSince.Add(stallAfter)
	if r.now.Before(at) {
		r.facts.stalledAt = at
		return false
	}
	return true
}

// abandonAfter gives up the objects of a resource that is being deleted, if it asks for that, and err is why they
// cannot be deleted, the deletion is blocked, or it has not gone on for [stallAfter]. Otherwise it returns err, and
// says what would give them up.
//
// The condition says so first. The resource goes with the next request. Fences are taken off before.
func (r *request[T]) abandonAfter(ctx context.Context, err error) error {
	if r.dryRun {
		return err
	}
	blocked := err == nil && r.facts.blocked
	if !r.stalls() && !blocked && !r.outOfReach(err) {
		return err
	}
	cause := r.facts.progress
	if err != nil {
		cause = err.Error()
	}
	store, storeErr := r.inventoryStore()
	if storeErr != nil {
		return storeErr
	}
	records, storeErr := store.Load(ctx)
	if storeErr != nil {
		return fmt.Errorf("unable to load the inventory: %w", storeErr)
	}
	names := namesOf(records)
	left := fmt.Sprintf("%s (%s)", message.Objects(len(names)), message.List(names, maxNamed))
	_, missing := errors.AsType[*missingError](err)
	key := r.Prefix + "/" + generator.AnnotationAbandon
	value, asked := r.resource.GetAnnotations()[key]
	hint := ""
	switch uid := string(r.resource.GetUID()); {
	case missing && r.configuration.AbandonOnDeletion, asked && value == uid:
	case asked:
		hint = fmt.Sprintf("; the annotation %s counts only if its value is the UID %s", key, uid)
	default:
		hint = fmt.Sprintf("; the annotation %s: %s gives up %s", key, uid, left)
	}
	switch {
	case hint != "" && err == nil:
		r.facts.progress += hint
		return nil
	case hint != "":
		return &hintError{err, hint}
	}
	return r.giveUp(ctx, store, records, fmt.Sprintf("Gave up %s in %s: %s",
		left, r.clusterName(), message.Truncate(singleLine(cause), maxMessage/2)), err)
}

// giveUp has the condition say first what is given up, and lets the resource go with the next call. err is why the
// objects cannot be deleted, nil if they are waited for.
func (r *request[T]) giveUp(
	ctx context.Context, store inventory.Store, records []apis.InventoryRecord, text string, err error,
) error {
	if r.state.abandoning++; r.reason() != ReasonAbandoned && r.state.abandoning < maxAbandoning {
		r.facts.abandoning = text
		return nil
	}
	if fenced := r.liftFences(ctx, records, err); fenced != nil {
		text = message.Truncate(text+"; "+singleLine(fenced.Error()), maxMessage)
	}
	r.recordEvent(ctx, event{corev1.EventTypeWarning, ReasonAbandoned, text})
	names := namesOf(records)
	logr.FromContextOrDiscard(ctx).Info("gave up the objects of a component", "cluster", r.clusterName(),
		"objects", len(names), "first", message.List(names, maxLogged), "reason", text)
	if _, err := store.Save(ctx, nil); err != nil {
		return fmt.Errorf("unable to give up the inventory: %w", err)
	}
	r.store = store
	return r.finish(ctx)
}

const (
	// maxAbandoning is how many requests wait for a condition that nobody writes.
	maxAbandoning = 4
	// maxNamed is how many objects a condition names that are left.
	maxNamed = 5
	// maxLogged is how many objects that are given up are logged.
	maxLogged = 100
)

// liftFences takes the fences off the types that are given up, and says which it could not. It makes no request if err
// says that their cluster cannot be reached, or is another one.
func (r *request[T]) liftFences(ctx context.Context, records []apis.InventoryRecord, err error) error {
	_, unreachable := errors.AsType[*clusters.UnreachableError](err)
	if r.target == nil || unreachable || errors.Is(err, errElsewhere) {
		return nil
	}
	var failed []error
	guard := r.engine().Guard
	for i := range records {
		key := plan.KeyOf(records[i])
		if key.GroupKind() != kinds.CustomResourceDefinition {
			continue
		}
		if err := guard.Lift(ctx, key); err != nil {
			failed = append(failed, fmt.Errorf("unable to let instances of %s be created again: %w", key, err))
		}
	}
	return errors.Join(failed...)
}

// hintError adds to an error what can be done about it.
type hintError struct {
	err  error
	hint string
}

func (e *hintError) Error() string { return e.err.Error() + e.hint }

func (e *hintError) Unwrap() error { return e.err }

// namesOf returns the names of the objects that may exist.
func namesOf(records []apis.InventoryRecord) []string {
	names := make([]string, 0, len(records))
	for i := range records {
		if records[i].Phase != apis.PhaseCompleted {
			names = append(names, plan.KeyOf(records[i]).String())
		}
	}
	return names
}
