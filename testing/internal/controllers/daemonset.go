package controllers

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var daemonVersion = appsv1.SchemeGroupVersion.WithKind("DaemonSet")

// daemonSets keeps a Pod of each DaemonSet on each node that fits. See "DaemonSet" in the Kubernetes documentation.
// MaxSurge is not honored.
func daemonSets() *controller {
	return &controller{
		name: "kube-controller-manager", kinds: []schema.GroupKind{daemonKind},
		decide: func(v *view, _ key, obj client.Object, now time.Time) decision {
			set := obj.(*appsv1.DaemonSet)
			return decideDaemonSet(set, list[*corev1.Node](v, nodeKind, ""), controlled[*corev1.Pod](v, set), now)
		},
		concerns: func(v *view, k key, _ client.Object) []key {
			if k.GroupKind == nodeKind {
				return v.keys(daemonKind, "")
			}
			return nil
		},
	}
}

// decideDaemonSet creates, deletes and updates Pods, and sets the status, see the Kubernetes API reference,
// DaemonSetStatus v1 apps.
func decideDaemonSet(set *appsv1.DaemonSet, nodes []*corev1.Node, pods []*corev1.Pod, now time.Time) decision {
	var d decision
	hash := hashOf(&set.Spec.Template, set.Status.CollisionCount)
	wanted := map[string]bool{}
	for _, node := range nodes {
		wanted[node.Name] = fits(&daemonPod(set, node.Name, hash).Spec, node)
	}
	on := map[string]*corev1.Pod{}
	next := set.DeepCopy()
	status := &next.Status
	*status = appsv1.DaemonSetStatus{ObservedGeneration: set.Generation, CollisionCount: set.Status.CollisionCount}
	for _, pod := range pods {
		node := nodeOf(&pod.Spec)
		switch {
		case pod.DeletionTimestamp == nil && (isFinished(pod) || !wanted[node] || on[node] != nil):
			status.NumberMisscheduled += int32(yes(!wanted[node] && !isFinished(pod)))
			d.add(write{verb: remove, object: pod})
		case wanted[node]:
			on[node] = pod
		}
	}
	var outdated []*corev1.Pod
	for _, node := range nodes {
		if !wanted[node.Name] {
			continue
		}
		status.DesiredNumberScheduled++
		pod := on[node.Name]
		if pod == nil {
			d.add(write{verb: create, object: daemonPod(set, node.Name, hash)})
			continue
		}
		_, ready := readySince(pod)
		status.CurrentNumberScheduled++
		status.NumberReady += int32(yes(ready))
		available := pod.DeletionTimestamp == nil && d.available(pod, set.Spec.MinReadySeconds, now)
		status.NumberAvailable += int32(yes(available))
		if pod.Labels[appsv1.ControllerRevisionHashLabelKey] == hash {
			status.UpdatedNumberScheduled++
		} else if pod.DeletionTimestamp == nil {
			outdated = append(outdated, pod)
		}
	}
	status.NumberUnavailable = status.DesiredNumberScheduled - status.NumberAvailable
	if set.DeletionTimestamp != nil {
		d.writes = nil
	} else if len(d.writes) == 0 {
		d.add(rollDaemon(&d, set, outdated, *status, now)...)
	}
	d.add(changed(updateStatus, next, set)...)
	return d
}

// rollDaemon deletes Pods with an old template, as many as may be unavailable at once. Those that are not available
// anyway come first.
func rollDaemon(
	d *decision, set *appsv1.DaemonSet, outdated []*corev1.Pod, status appsv1.DaemonSetStatus, now time.Time,
) []write {
	rolling := set.Spec.UpdateStrategy.RollingUpdate
	if set.Spec.UpdateStrategy.Type != appsv1.RollingUpdateDaemonSetStrategyType || rolling == nil {
		return nil
	}
	most := max(1, share(rolling.MaxUnavailable, int(status.DesiredNumberScheduled), true))
	left := most - status.NumberUnavailable
	var writes []write
	for _, pod := range outdated {
		if d.available(pod, set.Spec.MinReadySeconds, now) {
			if left <= 0 {
				continue
			}
			left--
		}
		writes = append(writes, write{verb: remove, object: pod})
	}
	return writes
}

// daemonTolerations are those that each Pod of a DaemonSet gets, see "DaemonSet: Taints and tolerations" in the
// Kubernetes documentation.
var daemonTolerations = []corev1.Toleration{
	{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
	{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
	{Key: corev1.TaintNodeDiskPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodeMemoryPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodePIDPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
}

// daemonPod returns the Pod for a node, which its affinity names.
func daemonPod(set *appsv1.DaemonSet, node, hash string) *corev1.Pod {
	pod := newPod(&set.Spec.Template, set, daemonVersion, set.Name+"-")
	pod.Labels = with(pod.Labels, appsv1.ControllerRevisionHashLabelKey, hash)
	pod.Spec.Tolerations = append(slices.Clone(pod.Spec.Tolerations), daemonTolerations...)
	if pod.Spec.Affinity == nil {
		pod.Spec.Affinity = &corev1.Affinity{}
	}
	if pod.Spec.Affinity.NodeAffinity == nil {
		pod.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{
			Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node},
		}}}},
	}
	return pod
}
