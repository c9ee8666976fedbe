package controllers

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var replicaSetVersion = appsv1.SchemeGroupVersion.WithKind("ReplicaSet")

// replicaSets keeps as many Pods as a ReplicaSet asks for. See "ReplicaSet" in the Kubernetes documentation.
func replicaSets() *controller {
	return &controller{
		name: "kube-controller-manager", kinds: []schema.GroupKind{replicaSetKind},
		decide: func(v *view, _ key, obj client.Object, now time.Time) decision {
			set := obj.(*appsv1.ReplicaSet)
			pods := orphans[*corev1.Pod](v, podKind, set.Namespace, set.Spec.Selector)
			if adopted := adopt(set, replicaSetVersion, set.Spec.Selector, pods); len(adopted) > 0 {
				return decision{writes: adopted}
			}
			return decideReplicaSet(set, controlled[*corev1.Pod](v, obj), now)
		},
		concerns: concernsOrphan(podKind, replicaSetKind),
	}
}

// concernsOrphan returns the objects that may adopt one of a kind that has no controller.
func concernsOrphan(of, adopters schema.GroupKind) func(*view, key, client.Object) []key {
	return func(v *view, k key, obj client.Object) []key {
		if k.GroupKind != of || metav1.GetControllerOf(obj) != nil {
			return nil
		}
		return v.selecting(adopters, k.namespace, obj.GetLabels())
	}
}

// decideReplicaSet creates or deletes Pods and sets the status, see the Kubernetes API reference, ReplicaSetStatus v1
// apps.
func decideReplicaSet(set *appsv1.ReplicaSet, pods []*corev1.Pod, now time.Time) decision {
	var d decision
	var active []*corev1.Pod
	terminating := int32(0)
	for _, pod := range pods {
		if isActive(pod) {
			active = append(active, pod)
		} else if !isFinished(pod) {
			terminating++
		}
	}
	if set.DeletionTimestamp == nil {
		missing := int(replicasOf(set.Spec.Replicas)) - len(active)
		for range missing {
			d.add(write{verb: create, object: newPod(&set.Spec.Template, set,
				replicaSetVersion, set.Name+"-")})
		}
		for _, pod := range surplus(active, max(0, -missing)) {
			d.add(write{verb: remove, object: pod})
		}
	}
	next := set.DeepCopy()
	counts := d.count(active, set.Spec.MinReadySeconds, now)
	next.Status.ObservedGeneration = set.Generation
	next.Status.Replicas, next.Status.ReadyReplicas = counts.total, counts.ready
	next.Status.AvailableReplicas, next.Status.TerminatingReplicas = counts.available, &terminating
	next.Status.FullyLabeledReplicas = labeled(active, set.Spec.Template.Labels)
	d.add(changed(updateStatus, next, set)...)
	return d
}

// labeled counts the Pods that have all labels of a template.
func labeled(pods []*corev1.Pod, template map[string]string) int32 {
	n := int32(0)
	selector := labels.SelectorFromSet(template)
	for _, pod := range pods {
		if selector.Matches(labels.Set(pod.Labels)) {
			n++
		}
	}
	return n
}

// adopt has a controller own the objects that its selector selects and that have no controller. See "Owners and
// Dependents" in the Kubernetes documentation.
func adopt[T client.Object](
	owner client.Object, kind schema.GroupVersionKind, selector *metav1.LabelSelector, all []T,
) []write {
	selected, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil || selected.Empty() || owner.GetDeletionTimestamp() != nil {
		return nil
	}
	var writes []write
	for _, obj := range all {
		if metav1.GetControllerOf(obj) != nil || obj.GetDeletionTimestamp() != nil ||
			!selected.Matches(labels.Set(obj.GetLabels())) {
			continue
		}
		next := obj.DeepCopyObject().(client.Object)
		next.SetOwnerReferences(append(next.GetOwnerReferences(), *metav1.NewControllerRef(owner, kind)))
		writes = append(writes, write{verb: patchMetadata, object: next})
	}
	return writes
}
