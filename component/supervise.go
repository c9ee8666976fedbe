package component

import (
	"cmp"
	"context"
	"fmt"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/engine"
	"github.com/espalier-dev/espalier/internal/component/readiness"
	"github.com/espalier-dev/espalier/internal/message"
	"github.com/espalier-dev/espalier/reconcilers"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// hasObjects reports whether the component may have objects, or something else to clean up.
func (r *request[T]) hasObjects() bool {
	return controllerutil.ContainsFinalizer(r.resource, r.Finalizer) || len(r.status.Inventory) > 0
}

// forgetRollouts makes the status of a component that is withdrawn that of one that was never rolled out. The revision
// keeps counting.
func (r *request[T]) forgetRollouts() {
	status := r.status
	status.ProcessingDigest, status.ProcessingSince, status.LastProcessingDigest = "", nil, ""
	status.AppliedGeneration, status.LastAppliedAt = 0, nil
	status.Target, status.InventoryKind, status.Inventory = "", "", nil
}

// suspend suspends the objects of a task, if the supervisor asks for that. Objects that have to go for that are
// deleted, whatever their delete policies.
func (r *request[T]) suspend(ctx context.Context, task *engine.Task) error {
	for i := range task.Objects {
		object := &task.Objects[i]
		if _, leaves := task.Leaving[object.Desired.Key]; leaves || object.Desired.ReadOnly {
			continue
		}
		suspended, remove, err := object.Suspended(r.supervisor.Suspend)
		switch {
		case err != nil:
			return fmt.Errorf("unable to suspend %s: %w", object.Desired.Key, err)
		case remove:
			leave(task, object.Desired.Key, apis.DeleteDelete)
		default:
			*object = suspended
		}
	}
	task.Suspended = func(live *unstructured.Unstructured) readiness.Result {
		health, err := r.suspensionOf(ctx, live)
		switch {
		case err != nil:
			return readiness.Result{Status: apis.ObjectFailed, Message: message.Stable(err.Error())}
		case health.State == apis.StateSuspended:
			return readiness.Result{Status: apis.ObjectCurrent}
		}
		text := message.Stable(cmp.Or(health.Message, "it is not suspended yet"))
		return readiness.Result{Status: apis.ObjectInProgress, Message: text}
	}
	return nil
}

// suspensionOf asks a rule of the author. It is called concurrently, by goroutines of the engine, too.
func (r *request[T]) suspensionOf(
	ctx context.Context, live *unstructured.Unstructured,
) (health apis.Health, err error) {
	defer reconcilers.Recover(ctx, &err)
	return r.supervisor.SuspensionOf(live), nil
}
