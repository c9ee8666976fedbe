package component

import (
	"context"
	"fmt"

	"github.com/espalier-dev/espalier/internal/component/engine"
	"github.com/espalier-dev/espalier/reconcilers"
)

// remove deletes the component, or its objects if it is withdrawn.
func (j *job[T]) remove(ctx context.Context) error {
	report, err := j.runEngine(ctx, j.engine(), engine.Task{
		Deleting: true,
		Patterns: j.patterns(),
		DryRun:   j.dryRun,
		Now:      j.now,
		BeforeDelete: func(ctx context.Context) error {
			return j.hooks(ctx, "pre-delete", j.Hooks.PreDelete)
		},
	})
	if err := j.assess(report, err); err != nil || !j.facts.done || j.dryRun {
		return err
	}
	if j.facts.withdrawing {
		err := j.release(ctx)
		j.facts.withdrawn = err == nil
		return err
	}
	return j.finish(ctx)
}

// finish lets the resource go, once its objects are gone. It is then not touched any more.
func (j *job[T]) finish(ctx context.Context) error {
	err := j.release(ctx)
	j.finished = err == nil
	return err
}

// release ends what the component has of the resource, once its objects are gone.
func (j *job[T]) release(ctx context.Context) error {
	if err := j.hooks(ctx, "post-delete", j.Hooks.PostDelete); err != nil {
		return err
	}
	if err := j.store.Remove(ctx); err != nil {
		return fmt.Errorf("unable to remove the inventory: %w", err)
	}
	if err := reconcilers.ClearFinalizer(ctx, j.resource, j.Finalizer); err != nil {
		return err
	}
	j.source.setCoalesceDelay(j.owner.Watcher, 0)
	j.states.Forget(j.resource.GetUID())
	return j.state.Close()
}
