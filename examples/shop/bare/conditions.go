package bare

import (
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/espalier-dev/espalier/examples/shop/api/v1"
	"github.com/espalier-dev/espalier/examples/shop/registry"
)

// parts are the conditions that Ready sums up, the most important first.
var parts = []string{
	v1.SettingsFound, v1.DeploymentReady, v1.ServiceReady, v1.IngressReady, v1.WorkersReady, v1.Registered,
}

// initializeConditions adds the conditions that are missing.
func initializeConditions(shop *v1.Shop) {
	for _, part := range append([]string{v1.Ready}, parts...) {
		if meta.FindStatusCondition(shop.Status.Conditions, part) == nil {
			set(shop, part, metav1.ConditionUnknown, "Initializing", "")
		}
	}
}

// summarize sets Ready: False with an error or a part that is not ready, Unknown with one that nothing is known of.
func summarize(shop *v1.Shop, err error) {
	shop.Status.ObservedGeneration = shop.Generation
	if err != nil {
		setFalse(shop, v1.Ready, "ReconcileFailed", err.Error())
		return
	}
	for _, status := range []metav1.ConditionStatus{metav1.ConditionFalse, metav1.ConditionUnknown} {
		for _, part := range parts {
			condition := meta.FindStatusCondition(shop.Status.Conditions, part)
			if condition != nil && condition.Status == status {
				set(shop, v1.Ready, status, condition.Reason, condition.Message)
				return
			}
		}
	}
	setTrue(shop, v1.Ready, "Ready")
}

// reflectDeployment sets the condition of the Deployment.
func reflectDeployment(shop *v1.Shop, deployment *appsv1.Deployment) {
	status := deployment.Status
	for _, condition := range status.Conditions {
		if condition.Type == appsv1.DeploymentProgressing && condition.Reason == "ProgressDeadlineExceeded" {
			setFalse(shop, v1.DeploymentReady, condition.Reason, condition.Message)
			return
		}
	}
	replicas := *deployment.Spec.Replicas
	message := ""
	switch {
	case status.ObservedGeneration < deployment.Generation:
		message = "the Deployment's controller has not seen the latest change"
	case status.UpdatedReplicas < replicas:
		message = fmt.Sprintf("%d of %d replicas updated", status.UpdatedReplicas, replicas)
	case status.Replicas > status.UpdatedReplicas:
		message = fmt.Sprintf("%d old replicas are still running", status.Replicas-status.UpdatedReplicas)
	case status.AvailableReplicas < replicas:
		message = fmt.Sprintf("%d of %d replicas available", status.AvailableReplicas, replicas)
	default:
		setTrue(shop, v1.DeploymentReady, "Ready")
		return
	}
	setFalse(shop, v1.DeploymentReady, "Progressing", message)
}

// setFailed shows an error in the condition of a part, and returns it.
func setFailed(shop *v1.Shop, part string, err error) error {
	setFalse(shop, part, reasonOf(err), err.Error())
	return err
}

const (
	notOurs   = "NotOurs"
	hostTaken = "HostTaken"
)

// reasonOf returns the reason of a condition that shows an error.
func reasonOf(err error) string {
	var theirs *notOursError
	var taken *registry.TakenError
	switch reason := apierrors.ReasonForError(err); {
	case errors.As(err, &theirs):
		return notOurs
	case errors.As(err, &taken):
		return hostTaken
	case reason != metav1.StatusReasonUnknown:
		return string(reason)
	default:
		return "Failed"
	}
}

func setTrue(shop *v1.Shop, part, reason string) {
	set(shop, part, metav1.ConditionTrue, reason, "")
}

func setFalse(shop *v1.Shop, part, reason, message string) {
	set(shop, part, metav1.ConditionFalse, reason, message)
}

func set(shop *v1.Shop, part string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&shop.Status.Conditions, metav1.Condition{
		Type: part, Status: status, Reason: reason, Message: message, ObservedGeneration: shop.Generation,
	})
}
