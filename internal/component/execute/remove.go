package execute

import (
	"context"
	"encoding/json"

	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/internal/component/foreign"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/component/served"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// remove deletes the object that the operation means, and no other. An object that lingers, because of a finalizer, is not told
// from one that is gone: that takes a second request.
func (e *Executor) remove(ctx context.Context, result *Result) (err error) {
	result.Gone, err = e.anywhere(ctx, result.Operation, func(target *unstructured.Unstructured) (bool, error) {
		return e.removeAs(ctx, result.Operation, target)
	})
	return err
}

// removeAs deletes target, in its version.
func (e *Executor) removeAs(ctx context.Context, op plan.Operation, target *unstructured.Unstructured) (gone bool, err error) {
	preconditions := client.Preconditions{UID: &op.UID}
	look := e.Managed != nil && len(e.Managed(op.Key)) == 0
	for range attempts {
		if look {
			live := partial(target)
			switch err = e.look(ctx, op, live); {
			case isStale(err):
				return true, nil
			case err != nil:
				return false, err
			}
			preconditions.ResourceVersion = &live.ResourceVersion
		}
		err = e.Client.Delete(ctx, target, preconditions, client.PropagationPolicy(metav1.DeletePropagationBackground))
		switch {
		case served.IsNotFound(err):
			return true, nil
		case !apierrs.IsConflict(err):
			return false, err
		}
		// Most likely it is another object by now.
		look = true
	}
	return false, err
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
func (e *Executor) orphan(ctx context.Context, result *Result) (err error) {
	result.Gone, err = e.anywhere(ctx, result.Operation, func(target *unstructured.Unstructured) (bool, error) {
		return e.orphanAs(ctx, result, target)
	})
	return err
}

// orphanAs takes our marks off target, in its version.
func (e *Executor) orphanAs(ctx context.Context, result *Result, target *unstructured.Unstructured) (gone bool, err error) {
	op := result.Operation
	lifted := !foreign.Fences(op.Key.GroupKind())
	for range attempts {
		live := partial(target)
		err = e.find(ctx, result.Operation, live)
		switch {
		case isStale(err):
			return true, nil
		case err != nil:
			return false, err
		case e.Mark.of(live) != plan.Ours:
			return false, nil
		case !lifted && foreign.Fenced(live, e.Mark.Prefix):
			if err = e.lift(ctx, op.Key); err != nil {
				return false, err
			}
			// That it is fenced no more is another version.
			lifted = true
			continue
		}
		if err = e.unmark(ctx, result, live); !conflicts(err) {
			return false, err
		}
	}
	return false, err
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
	target := named(result.Operation.Key, live.GroupVersionKind())
	if err := e.Client.Patch(ctx, target, client.RawPatch(types.MergePatchType, patch), e.fieldManager()); err != nil {
		return err
	}
	result.Object = target
	return nil
}
