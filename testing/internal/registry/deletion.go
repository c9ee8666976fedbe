package registry

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// orphaning are the kinds whose dependents stay by default, see "Garbage Collection" in the Kubernetes documentation.
var orphaning = []schema.GroupKind{{Group: "batch", Kind: "Job"}, {Kind: "ReplicationController"}}

// OrphansDependents reports whether a delete without a propagation policy leaves the dependents of an object.
func (t Type) OrphansDependents() bool { return slices.Contains(orphaning, t.Kind) }

// GracePeriod returns the seconds that the first delete leaves an object; asked is what the delete says. Only Pods on a
// node have time to end, see "Termination of Pods" in the Kubernetes documentation. A period below zero is one second.
func GracePeriod(obj client.Object, asked *int64) int64 {
	pod, ok := obj.(*corev1.Pod)
	if !ok || pod.Spec.NodeName == "" {
		return 0
	}
	if phase := pod.Status.Phase; phase == corev1.PodSucceeded || phase == corev1.PodFailed {
		return 0
	}
	own := ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
	if period := ptr.Deref(asked, own); period >= 0 {
		return period
	}
	return 1
}
