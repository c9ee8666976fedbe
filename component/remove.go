package component

import (
	"context"
	"fmt"
	"maps"

	"github.com/espalier-dev/espalier/internal/component/engine"
	"github.com/espalier-dev/espalier/reconcilers"
)

// remove deletes the component, or its objects if it is withdrawn.
func (r *request[T]) remove(ctx context.Context) error {
	// Who has mended what blocks annotates the resource, and need not wait for the next attempt.
	if annotations := r.resource.GetAnnotations(); !r.dryRun && !maps.Equal(annotations, r.state.annotations) {
		r.state.annotations = maps.Clone(annotations)
		r.state.engine.RetryFences()
	}
	report, err := r.runEngine(ctx, engine.Task{
		Deleting: true,
		Patterns: r.patterns(),
		DryRun:   r.dryRun,
		Now:      r.now,
		BeforeDelete: func(ctx context.Context) error {
			return r.hooks(ctx, "pre-delete", r.Hooks.PreDelete)
		},
	})
	if err := r.assess(report, err); err != nil || !r.facts.done || r.dryRun {
		return err
	}
	if r.facts.withdrawing {
		err := r.release(ctx)
		r.facts.withdrawn = err == nil
		return err
	}
	return r.finish(ctx)
}

// finish lets the resource go, once its objects are gone. It is then not touched any more.
func (r *request[T]) finish(ctx context.Context) error {
	err := r.release(ctx)
	r.finished = err == nil
	return err
}

// release ends what the component has of the resource, once its objects are gone.
func (r *request[T]) release(ctx context.Context) error {
	if err := r.hooks(ctx, "post-delete", r.Hooks.PostDelete); err != nil {
		return err
	}
	if err := r.store.Remove(ctx); err != nil {
		return fmt.Errorf("unable to remove the inventory: %w", err)
	}
	if err := reconcilers.ClearFinalizer(ctx, r.resource, r.Finalizer); err != nil {
		return err
	}
	r.source.setCoalesceDelay(r.owner.Watcher, 0)
	r.states.Forget(r.resource.GetUID())
	return r.state.Close()
}
