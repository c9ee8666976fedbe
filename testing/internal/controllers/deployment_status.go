package controllers

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// status returns the status of the Deployment, see the Kubernetes API reference, DeploymentStatus v1 apps, and
// "Deployment status" in the Kubernetes documentation.
func (r rollout) status(d *decision, now time.Time) appsv1.DeploymentStatus {
	next := *r.Status.DeepCopy()
	next.ObservedGeneration = r.Generation
	next.Replicas, next.ReadyReplicas, next.AvailableReplicas, next.UpdatedReplicas = 0, 0, 0, 0
	wanted, terminating := int32(0), int32(0)
	for _, set := range r.all() {
		wanted += replicasOf(set.Spec.Replicas)
		next.Replicas += set.Status.Replicas
		next.ReadyReplicas += set.Status.ReadyReplicas
		next.AvailableReplicas += set.Status.AvailableReplicas
		terminating += ptr.Deref(set.Status.TerminatingReplicas, 0)
	}
	next.TerminatingReplicas = &terminating
	if r.current != nil {
		next.UpdatedReplicas = r.current.Status.Replicas
	}
	next.UnavailableReplicas = max(0, wanted-next.AvailableReplicas)
	_, unavailable := r.limits()
	if next.AvailableReplicas >= replicasOf(r.Spec.Replicas)-unavailable {
		setDeploymentCondition(&next, appsv1.DeploymentAvailable, corev1.ConditionTrue,
			"MinimumReplicasAvailable", "Deployment has minimum availability.", now)
	} else {
		setDeploymentCondition(&next, appsv1.DeploymentAvailable, corev1.ConditionFalse,
			"MinimumReplicasUnavailable", "Deployment does not have minimum availability.", now)
	}
	r.setProgress(&next, d, now)
	return next
}

// setProgress sets the condition Progressing. A rollout that makes no progress for progressDeadlineSeconds has failed.
func (r rollout) setProgress(next *appsv1.DeploymentStatus, d *decision, now time.Time) {
	set := func(status corev1.ConditionStatus, reason, message string) {
		setDeploymentCondition(next, appsv1.DeploymentProgressing, status, reason, message, now)
	}
	was := progress(next)
	switch {
	case r.Spec.Paused:
		set(corev1.ConditionUnknown, "DeploymentPaused", "Deployment is paused")
		return
	case was.Reason == "DeploymentPaused":
		set(corev1.ConditionUnknown, "DeploymentResumed", "Deployment is resumed")
		was = progress(next)
	}
	if r.current == nil {
		return
	}
	done := fmt.Sprintf("ReplicaSet %q has successfully progressed.", r.current.Name)
	after := r.DeepCopy()
	after.Status = *next
	switch {
	case complete(after):
		set(corev1.ConditionTrue, "NewReplicaSetAvailable", done)
		return
	case next.Replicas == next.UpdatedReplicas && was.Reason == "NewReplicaSetAvailable" && was.Message == done:
		// What happens to Pods after a rollout is not a part of it.
		return
	case progressed(&r.Status, next):
		set(corev1.ConditionTrue, "ReplicaSetUpdated", fmt.Sprintf("ReplicaSet %q is progressing.", r.current.Name))
	case was.Type == "" || was.Reason == "NewReplicaSetAvailable":
		set(corev1.ConditionTrue, "NewReplicaSetCreated", fmt.Sprintf("Created new replica set %q", r.current.Name))
	}
	r.setDeadline(next, d, now)
}

// setDeadline has a rollout fail at its deadline.
func (r rollout) setDeadline(next *appsv1.DeploymentStatus, d *decision, now time.Time) {
	last := progress(next)
	if r.Spec.ProgressDeadlineSeconds == nil || last.Reason == "ProgressDeadlineExceeded" {
		return
	}
	end := last.LastUpdateTime.Add(time.Duration(*r.Spec.ProgressDeadlineSeconds) * time.Second)
	if now.Before(end) {
		d.by(end)
		return
	}
	setDeploymentCondition(next, appsv1.DeploymentProgressing, corev1.ConditionFalse, "ProgressDeadlineExceeded",
		fmt.Sprintf("ReplicaSet %q has timed out progressing.", r.current.Name), now)
}

// progress returns the condition Progressing, empty if there is none.
func progress(status *appsv1.DeploymentStatus) appsv1.DeploymentCondition {
	for _, c := range status.Conditions {
		if c.Type == appsv1.DeploymentProgressing {
			return c
		}
	}
	return appsv1.DeploymentCondition{}
}

// complete reports whether all Pods are those of the current template, and available.
func complete(d *appsv1.Deployment) bool {
	desired := replicasOf(d.Spec.Replicas)
	return d.Status.UpdatedReplicas == desired && d.Status.Replicas == desired &&
		d.Status.AvailableReplicas == desired && d.Status.ObservedGeneration >= d.Generation
}

// progressed reports whether a rollout has come further.
func progressed(was, is *appsv1.DeploymentStatus) bool {
	return is.UpdatedReplicas > was.UpdatedReplicas || is.ReadyReplicas > was.ReadyReplicas ||
		is.AvailableReplicas > was.AvailableReplicas ||
		is.Replicas-is.UpdatedReplicas < was.Replicas-was.UpdatedReplicas
}

// setDeploymentCondition sets a condition. It was updated now, unless it is as it was and does not tell of progress.
func setDeploymentCondition(
	s *appsv1.DeploymentStatus, kind appsv1.DeploymentConditionType, status corev1.ConditionStatus,
	reason, message string, now time.Time,
) {
	at := metav1.NewTime(now)
	c := appsv1.DeploymentCondition{
		Type: kind, Status: status, Reason: reason, Message: message, LastUpdateTime: at, LastTransitionTime: at,
	}
	i := slices.IndexFunc(s.Conditions, func(c appsv1.DeploymentCondition) bool { return c.Type == kind })
	if i < 0 {
		s.Conditions = append(s.Conditions, c)
		return
	}
	was := s.Conditions[i]
	if was.Status == status {
		c.LastTransitionTime = was.LastTransitionTime
	}
	if was.Status == status && was.Reason == reason && reason != "ReplicaSetUpdated" {
		c.LastUpdateTime = was.LastUpdateTime
	}
	s.Conditions[i] = c
}
