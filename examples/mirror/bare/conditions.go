package bare

import (
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/espalier-dev/espalier/examples/mirror/api/v1"
	"github.com/espalier-dev/espalier/examples/mirror/registry"
)

// parts are the conditions that Ready sums up, the most important first.
var parts = []string{
	v1.ConfigReady, v1.ServiceReady, v1.PoliciesReady, v1.PruneReady, v1.BudgetReady, v1.CredentialsFound,
	v1.StatefulSetReady, v1.Registered,
}

// initializeConditions adds the conditions that are missing.
func initializeConditions(mirror *v1.Mirror) {
	for _, part := range append([]string{v1.Ready}, parts...) {
		if meta.FindStatusCondition(mirror.Status.Conditions, part) == nil {
			set(mirror, part, metav1.ConditionUnknown, "Initializing", "")
		}
	}
}

// summarize sets Ready: False with an error or a part that is not ready, Unknown with one that nothing is known of.
func summarize(mirror *v1.Mirror, err error) {
	mirror.Status.ObservedGeneration = mirror.Generation
	if err != nil {
		setFalse(mirror, v1.Ready, "ReconcileFailed", err.Error())
		return
	}
	for _, status := range []metav1.ConditionStatus{metav1.ConditionFalse, metav1.ConditionUnknown} {
		for _, part := range parts {
			condition := meta.FindStatusCondition(mirror.Status.Conditions, part)
			if condition != nil && condition.Status == status {
				set(mirror, v1.Ready, status, condition.Reason, part+": "+condition.Message)
				return
			}
		}
	}
	setTrue(mirror, v1.Ready, "Ready")
}

// reflectStatefulSet shows how the StatefulSet is.
func reflectStatefulSet(mirror *v1.Mirror, statefulSet *appsv1.StatefulSet) {
	status, replicas := statefulSet.Status, *statefulSet.Spec.Replicas
	mirror.Status.ReadyReplicas = status.ReadyReplicas
	message := ""
	switch {
	case status.ObservedGeneration < statefulSet.Generation:
		message = "the StatefulSet's controller has not seen the latest change"
	case status.Replicas != replicas:
		message = fmt.Sprintf("%d of %d replicas", status.Replicas, replicas)
	case status.ReadyReplicas < replicas:
		message = fmt.Sprintf("%d of %d replicas ready", status.ReadyReplicas, replicas)
	case status.CurrentRevision != status.UpdateRevision:
		message = fmt.Sprintf("%d of %d replicas updated", status.UpdatedReplicas, replicas)
	default:
		setTrue(mirror, v1.StatefulSetReady, "Ready")
		return
	}
	setFalse(mirror, v1.StatefulSetReady, "InProgress", message)
}

// setFailed shows an error in the condition of a part, and returns it.
func setFailed(mirror *v1.Mirror, part string, err error) error {
	setFalse(mirror, part, reasonOf(err), err.Error())
	return err
}

const (
	notOurs      = "AlreadyExists"
	notConfirmed = "Pending"
)

// reasonOf returns the reason of a condition that shows an error.
func reasonOf(err error) string {
	var theirs *notOursError
	switch reason := apierrors.ReasonForError(err); {
	case errors.As(err, &theirs):
		return notOurs
	case errors.Is(err, registry.ErrPending):
		return notConfirmed
	case reason != metav1.StatusReasonUnknown:
		return string(reason)
	default:
		return "Failed"
	}
}

func isTrue(mirror *v1.Mirror, part string) bool {
	return meta.IsStatusConditionTrue(mirror.Status.Conditions, part)
}

func setTrue(mirror *v1.Mirror, part, reason string) {
	set(mirror, part, metav1.ConditionTrue, reason, "")
}

func setFalse(mirror *v1.Mirror, part, reason, message string) {
	set(mirror, part, metav1.ConditionFalse, reason, message)
}

func set(mirror *v1.Mirror, part string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&mirror.Status.Conditions, metav1.Condition{
		Type: part, Status: status, Reason: reason, Message: message, ObservedGeneration: mirror.Generation,
	})
}
