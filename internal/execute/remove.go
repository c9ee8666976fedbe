package execute

import (
	"context"
	"encoding/json"

	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/internal/foreign"
	"github.com/espalier-dev/espalier/internal/plan"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// remove deletes the object that the operation means, and no other. An object that lingers, because of a finalizer, is not told
// from one that is gone: that takes a second request.
func (e *Executor) remove(ctx context.Context, result *Result) error {
	op := result.Operation
	var err error
	for range attempts {
		err = e.Client.Delete(ctx, e.target(op), client.Preconditions{UID: &op.UID}, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if apierrs.IsNotFound(err) || meta.IsNoMatchError(err) {
			result.Gone = true
			return nil
		}
		if !apierrs.IsConflict(err) {
			return err
		}
		// Most likely it is another object by now.
		switch found := e.look(ctx, op, partial(e.target(op))); {
		case isStale(found):
			result.Gone = true
			return nil
		case found != nil:
			return found
		}
	}
	return err
}

// removeType deletes an object that defines types, if nobody else uses them.
func (e *Executor) removeType(ctx context.Context, result *Result) error {
	if e.Guard == nil {
		return errNoGuard
	}
	var err error
	result.Use, err = e.Guard.Delete(ctx, result.Operation.Key, result.Operation.UID)
	return err
}

// orphan takes our marks off an object, if it has them. The values that we wrote stay, and so do our entries in its managed fields:
// to give the fields up by applying nothing would take the values away, and an entry of a manager that does not write
// any more is in nobody's way. A fence is taken off first: nobody would do it later.
func (e *Executor) orphan(ctx context.Context, result *Result) error {
	op := result.Operation
	var err error
	lifted := !foreign.Fences(op.Key.GroupKind())
	for range attempts {
		live := partial(e.target(op))
		err = e.find(ctx, op, live)
		switch {
		case isStale(err) || meta.IsNoMatchError(err):
			result.Gone = true
			return nil
		case err != nil:
			return err
		case e.Mark.of(live) != plan.Ours:
			return nil
		case !lifted && foreign.Fenced(live, e.Mark.Prefix):
			if err = e.lift(ctx, op.Key); err != nil {
				return err
			}
			lifted = true
			continue
		}
		if err = e.unmark(ctx, result, live); !conflicts(err) {
			return err
		}
	}
	return err
}

func (e *Executor) lift(ctx context.Context, key plan.Key) error {
	if e.Guard == nil {
		return errNoGuard
	}
	return e.Guard.Lift(ctx, key)
}

// unmark takes our marks off live, provided that it has not changed since.
func (e *Executor) unmark(ctx context.Context, result *Result, live *metav1.PartialObjectMetadata) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":             live.UID,
		"resourceVersion": live.ResourceVersion,
		"labels":          map[string]any{e.Mark.key(component.LabelOwnerID): nil},
		"annotations": map[string]any{
			e.Mark.key(component.AnnotationOwnerID): nil,
			e.Mark.key(component.AnnotationDigest):  nil,
		},
	}})
	if err != nil {
		return err
	}
	target := e.target(result.Operation)
	if err := e.Client.Patch(ctx, target, client.RawPatch(types.MergePatchType, patch), e.fieldManager()); err != nil {
		return err
	}
	result.Object = target
	return nil
}
