package component

import (
	"cmp"
	"fmt"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/engine"
	"github.com/espalier-dev/espalier/internal/component/readiness"
	"github.com/espalier-dev/espalier/internal/message"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// hasObjects reports whether the component may have objects, or something else to clean up.
func (j *job[T]) hasObjects() bool {
	return controllerutil.ContainsFinalizer(j.resource, j.Finalizer) || len(j.status.Inventory) > 0
}

// forgetRollouts makes the status of a component that is withdrawn that of one that was never rolled out. The revision
// keeps counting.
func (j *job[T]) forgetRollouts() {
	status := j.status
	status.ProcessingDigest, status.ProcessingSince, status.LastProcessingDigest = "", nil, ""
	status.AppliedGeneration, status.LastAppliedAt = 0, nil
	status.Target, status.InventoryKind, status.Inventory = "", "", nil
}

// suspend suspends the objects of a task, if the supervisor asks for that. Objects that have to go for that are
// deleted, whatever their delete policies.
func (j *job[T]) suspend(task *engine.Task) error {
	for i := range task.Objects {
		object := &task.Objects[i]
		if _, leaves := task.Leaving[object.Desired.Key]; leaves || object.Desired.ReadOnly {
			continue
		}
		suspended, remove, err := object.Suspended(j.supervisor.Suspend)
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
		health := j.supervisor.SuspensionOf(live)
		if health.State == apis.StateSuspended {
			return readiness.Result{Status: apis.ObjectCurrent}
		}
		text := message.Stable(cmp.Or(health.Message, "it is not suspended yet"))
		return readiness.Result{Status: apis.ObjectInProgress, Message: text}
	}
	return nil
}
