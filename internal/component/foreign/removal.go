package foreign

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/espalier-dev/espalier/internal/component/plan"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// goal is how far the protocol is to be followed.
type goal int

const (
	look goal = iota
	secure
	remove
)

// removal is the protocol for one CustomResourceDefinition.
type removal struct {
	*Guard
	name string
	// uid is the one meant; empty for whichever there is.
	uid  types.UID
	goal goal
}

func (g *Guard) removal(name string, uid types.UID, goal goal) *removal {
	return &removal{Guard: g, name: name, uid: uid, goal: goal}
}

// run begins anew when somebody else has changed the definition meanwhile, or when it seems to be gone.
func (r *removal) run(ctx context.Context) (use plan.Use, err error) {
	for range attempts {
		use, err = r.pass(ctx)
		unknown, _ := errors.AsType[*unknownError](err)
		if !apierrors.IsConflict(err) && (unknown == nil || !unknown.unserved) {
			return use, err
		}
	}
	if apierrors.IsConflict(err) {
		err = fmt.Errorf("CustomResourceDefinition %s keeps changing: %w", r.name, err)
	}
	return use, err
}

func (r *removal) pass(ctx context.Context) (plan.Use, error) {
	none := plan.Use{State: plan.ForeignNone}
	d, err := r.readDefinition(ctx, r.name)
	if err != nil || d == nil || r.uid != "" && d.UID != r.uid {
		return none, err
	}
	if d.terminating() {
		if r.goal == remove {
			return none, nil
		}
		return r.instances(ctx, d)
	}
	use, d, err := r.secure(ctx, d)
	unknown, isUnknown := errors.AsType[*unknownError](err)
	switch {
	case isUnknown:
		if failure := r.lift(ctx, d, unknown.obstacle); failure != nil {
			return plan.Use{}, failure
		}
	case err == nil && use.State == plan.ForeignBlocking:
		return use, r.lift(ctx, d, "")
	case err == nil && r.goal == remove:
		return use, r.remove(ctx, d)
	}
	return use, err
}

// secure follows the protocol up to the deletion. It returns the definition as it left it, whatever else it returns.
func (r *removal) secure(ctx context.Context, d *definition) (plan.Use, *definition, error) {
	use, err := r.instances(ctx, d)
	if err != nil || use.State != plan.ForeignNone || r.goal == look || d.proven(r.annotation()) {
		return use, d, err
	}
	if !fenced(d, r.rule()) {
		if err := r.retriable(ctx, d); err != nil {
			return plan.Use{}, d, err
		}
		if d, err = r.fence(ctx, d); err != nil {
			return plan.Use{}, d, err
		}
	}
	// Whoever serves a definition that was not established when it was fenced has seen the fence.
	if !d.dormant() {
		settled, err := r.prove(ctx, d, r.margin()+d.delay(string(r.manager())))
		if err != nil {
			return plan.Use{}, d, err
		}
		if err := pause(ctx, settled); err != nil {
			return plan.Use{}, d, err
		}
		if d, err = r.noteProof(ctx, d); err != nil {
			return plan.Use{}, d, err
		}
	}
	use, err = r.instances(ctx, d)
	return use, d, err
}

// remove deletes this very state of the definition, with the fence that is on it.
func (r *removal) remove(ctx context.Context, d *definition) error {
	err := r.Client.Delete(ctx, emptyDefinition(d.Name), client.Preconditions{UID: &d.UID, ResourceVersion: &d.ResourceVersion},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return client.IgnoreNotFound(err)
	}
	return fmt.Errorf("could not delete CustomResourceDefinition %s: %w", d.Name, err)
}

func pause(ctx context.Context, over <-chan time.Time) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-over:
		return ctx.Err()
	}
}
