package reconcilers

import (
	"context"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/statusfield"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// resourceHandler asks for a request for each resource that an event is about. controller-runtime gives all resources
// that are there at the start a low priority; those that are unfinished get the one of a change, so that they do not
// wait for thousands that are as they should be.
type resourceHandler struct {
	handler.EnqueueRequestForObject
	orphaned *orphaned
}

func (h *resourceHandler) Create(ctx context.Context, e event.CreateEvent, q requestQueue) {
	h.orphaned.see(e.Object)
	e.IsInInitialList = e.IsInInitialList && !isUnfinished(e.Object)
	h.EnqueueRequestForObject.Create(ctx, e, q)
}

func (h *resourceHandler) Update(ctx context.Context, e event.UpdateEvent, q requestQueue) {
	h.orphaned.see(e.ObjectNew)
	h.EnqueueRequestForObject.Update(ctx, e, q)
}

// isUnfinished reports whether a resource is known to need a request: it is being deleted, has changed since its status
// was written, or is not ready.
func isUnfinished(obj client.Object) bool {
	if obj.GetDeletionTimestamp() != nil {
		return true
	}
	status := statusfield.Of(obj)
	if observed, has := status.ObservedGeneration(); has && observed != obj.GetGeneration() {
		return true
	}
	conditions := status.GetConditions()
	for _, summary := range []string{apis.ConditionReady, apis.ConditionSucceeded} {
		if c := meta.FindStatusCondition(conditions, summary); c != nil && c.Status != metav1.ConditionTrue {
			return true
		}
	}
	return false
}
