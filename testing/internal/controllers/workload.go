package controllers

import (
	"encoding/json"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// isActive reports whether a Pod counts for its controller: it runs or may run, and is not being deleted.
func isActive(pod *corev1.Pod) bool { return !isFinished(pod) && pod.DeletionTimestamp == nil }

// isFinished reports whether the containers of a Pod have ended for good.
func isFinished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// readySince returns when a Pod became ready; ok is false if it is not.
func readySince(pod *corev1.Pod) (since time.Time, ok bool) {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Time, true
		}
	}
	return time.Time{}, false
}

// podCounts are the numbers of Pods in the status of a workload.
type podCounts struct{ total, ready, available int32 }

// count counts Pods. A Pod is available when it has been ready for a time, see minReadySeconds in the Kubernetes API
// reference, DeploymentSpec v1 apps. The decision gets the time when the next Pod becomes available.
func (d *decision) count(pods []*corev1.Pod, minReadySeconds int32, now time.Time) podCounts {
	counts := podCounts{total: int32(len(pods))}
	for _, pod := range pods {
		if _, ok := readySince(pod); ok {
			counts.ready++
		}
		if d.available(pod, minReadySeconds, now) {
			counts.available++
		}
	}
	return counts
}

// available reports whether a Pod is available.
func (d *decision) available(pod *corev1.Pod, minReadySeconds int32, now time.Time) bool {
	since, ok := readySince(pod)
	if !ok {
		return false
	}
	at := since.Add(time.Duration(minReadySeconds) * time.Second)
	if minReadySeconds > 0 && now.Before(at) {
		d.by(at)
		return false
	}
	return true
}

// newPod returns a Pod of a template. Its name begins with a prefix.
func newPod(
	template *corev1.PodTemplateSpec, owner client.Object, kind schema.GroupVersionKind, prefix string,
) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: prefix, Namespace: owner.GetNamespace(),
			Labels: maps.Clone(template.Labels), Annotations: maps.Clone(template.Annotations),
			Finalizers:      slices.Clone(template.Finalizers),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, kind)},
		},
		Spec: *template.Spec.DeepCopy(),
	}
}

// hashOf returns a hash of a template that is fit for names and labels.
func hashOf(template *corev1.PodTemplateSpec, collisions *int32) string {
	h := fnv.New32a()
	// A template that came from a server can be encoded.
	data, _ := json.Marshal(template)
	_, _ = h.Write(data)
	if collisions != nil {
		_, _ = h.Write([]byte(strconv.Itoa(int(*collisions))))
	}
	return rand.SafeEncodeString(strconv.FormatUint(uint64(h.Sum32()), 10))
}

// with returns a map with one more entry.
func with[V any](m map[string]V, name string, value V) map[string]V {
	m = maps.Clone(m)
	if m == nil {
		m = map[string]V{}
	}
	m[name] = value
	return m
}

// surplus returns the Pods to delete of some that are too many. Those that serve least go first: not on a node,
// pending, not ready, of lower deletion cost, and then the youngest. See "ReplicaSet: Scaling a ReplicaSet" in the
// Kubernetes documentation.
func surplus(pods []*corev1.Pod, n int) []*corev1.Pod {
	sorted := slices.Clone(pods)
	slices.SortStableFunc(sorted, func(a, b *corev1.Pod) int {
		for _, rank := range []func(*corev1.Pod) int{
			func(p *corev1.Pod) int { return yes(p.Spec.NodeName != "") },
			func(p *corev1.Pod) int { return yes(p.Status.Phase == corev1.PodRunning) },
			func(p *corev1.Pod) int { _, ready := readySince(p); return yes(ready) },
			func(p *corev1.Pod) int { cost, _ := strconv.Atoi(p.Annotations[corev1.PodDeletionCost]); return cost },
		} {
			if order := rank(a) - rank(b); order != 0 {
				return order
			}
		}
		return b.CreationTimestamp.Compare(a.CreationTimestamp.Time)
	})
	return sorted[:min(n, len(sorted))]
}

func yes(is bool) int {
	if is {
		return 1
	}
	return 0
}

// replicasOf is a number of replicas as it is by default.
func replicasOf(n *int32) int32 { return ptr.Deref(n, 1) }
