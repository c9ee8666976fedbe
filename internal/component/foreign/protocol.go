package foreign

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/kinds"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// followDefinition follows the protocol for a CustomResourceDefinition. It starts again if another writer has changed
// the definition in between, or if it seems to be gone.
func (g *Guard) followDefinition(ctx context.Context, name string, uid types.UID, goal goal) (use plan.Use, err error) {
	for range attempts {
		use, err = g.followOnce(ctx, name, uid, goal)
		unknown, _ := errors.AsType[*unknownError](err)
		if !apierrors.IsConflict(err) && (unknown == nil || !unknown.unserved) {
			return use, err
		}
	}
	if apierrors.IsConflict(err) {
		err = fmt.Errorf("CustomResourceDefinition %s keeps changing: %w", name, err)
	}
	return use, err
}

func (g *Guard) followOnce(ctx context.Context, name string, uid types.UID, goal goal) (plan.Use, error) {
	none := plan.Use{State: plan.ForeignNone}
	d, err := g.readDefinition(ctx, name)
	switch {
	case err != nil || d == nil || uid != "" && d.UID != uid, d.DeletionTimestamp != nil && goal == goalDelete:
		return none, err
	case d.DeletionTimestamp != nil:
		return g.instances(ctx, d)
	}
	use, d, err := g.secure(ctx, d, goal)
	unknown, isUnknown := errors.AsType[*unknownError](err)
	switch {
	case isUnknown:
		if failure := g.lift(ctx, d, unknown.obstacle); failure != nil {
			return plan.Use{}, failure
		}
	case err == nil && use.State == plan.ForeignBlocking:
		err = g.lift(ctx, d, "")
	case err == nil && goal == goalDelete:
		// This very state of the definition is deleted, with the fence that it has.
		state := client.Preconditions{UID: &d.UID, ResourceVersion: &d.ResourceVersion}
		err = g.delete(ctx, kinds.CustomResourceDefinition, d.Name, state)
	}
	return use, err
}

// secure follows the protocol up to the deletion. It returns the definition as it left it, even with an error.
func (g *Guard) secure(ctx context.Context, d *definition, goal goal) (plan.Use, *definition, error) {
	use, err := g.instances(ctx, d)
	proven := d.Annotations[g.annotation()] == d.record(stateProven, d.Generation)
	if err != nil || use.State != plan.ForeignNone || goal == goalCheck || proven {
		return use, d, err
	}
	if !fenced(d, g.rule()) {
		if err := g.checkObstacle(ctx, d); err != nil {
			return plan.Use{}, d, err
		}
		if d, err = g.fence(ctx, d); err != nil {
			return plan.Use{}, d, err
		}
	}
	// An API server that serves a definition only after it was fenced has seen the fence.
	if !d.dormant() {
		if err := g.prove(ctx, d, g.margin()+d.delay(string(g.manager()))); err != nil {
			return plan.Use{}, d, err
		}
		if d, err = g.recordProof(ctx, d); err != nil {
			return plan.Use{}, d, err
		}
	}
	use, err = g.instances(ctx, d)
	return use, d, err
}

// delete deletes an object in the given state. It is not an error if the object is gone; a conflict is returned as it
// is.
func (g *Guard) delete(ctx context.Context, kind schema.GroupKind, name string, state client.Preconditions) error {
	err := g.Client.Delete(ctx, named(kind, name), state, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return client.IgnoreNotFound(err)
	}
	return fmt.Errorf("could not delete %s %s: %w", kind.Kind, name, err)
}

// pause waits until over, or until ctx is done, which is an error.
func pause(ctx context.Context, over <-chan time.Time) error {
	select {
	case <-ctx.Done():
	case <-over:
	}
	return ctx.Err()
}
