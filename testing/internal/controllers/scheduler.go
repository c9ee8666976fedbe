package controllers

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// scheduler puts Pods on nodes. See "Kubernetes Scheduler" in the Kubernetes documentation. It looks at the node that a
// Pod of a DaemonSet names, node selectors and taints; it does not look at resources.
func scheduler(options Options) *controller {
	return &controller{
		name: "kube-scheduler", kinds: []schema.GroupKind{podKind},
		decide: func(v *view, _ key, obj client.Object, now time.Time) decision {
			pod := obj.(*corev1.Pod)
			if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil || len(pod.Spec.SchedulingGates) > 0 {
				return decision{}
			}
			return schedule(pod, list[*corev1.Node](v, nodeKind, ""), options.behavior(pod), now)
		},
		concerns: func(v *view, k key, _ client.Object) []key {
			if k.GroupKind == nodeKind {
				return v.keys(podKind, "")
			}
			return nil
		},
	}
}

// schedule puts a Pod on the first node that fits. If there is none, the condition PodScheduled says so, see the
// Kubernetes API reference, PodCondition v1 core.
func schedule(pod *corev1.Pod, nodes []*corev1.Node, behavior Behavior, now time.Time) decision {
	why := behavior.Unschedulable
	i := slices.IndexFunc(nodes, func(n *corev1.Node) bool { return fits(&pod.Spec, n) && !n.Spec.Unschedulable })
	if why == "" && i < 0 {
		why = "no node fits"
	}
	next := pod.DeepCopy()
	if why == "" {
		next.Spec.NodeName = nodes[i].Name
		return decision{writes: []write{{verb: bind, object: next}}}
	}
	setPodCondition(&next.Status, corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonUnschedulable, why, now)
	return decision{writes: changed(updateStatus, next, pod)}
}

// fits reports whether a Pod may run on a node.
func fits(spec *corev1.PodSpec, node *corev1.Node) bool {
	if name := nodeOf(spec); name != "" && name != node.Name {
		return false
	}
	for _, taint := range node.Spec.Taints {
		tolerated := slices.ContainsFunc(spec.Tolerations, func(t corev1.Toleration) bool {
			return (t.Key == taint.Key || t.Key == "") && (t.Effect == taint.Effect || t.Effect == "") &&
				(t.Operator == corev1.TolerationOpExists || t.Value == taint.Value)
		})
		if taint.Effect != corev1.TaintEffectPreferNoSchedule && !tolerated {
			return false
		}
	}
	return labels.SelectorFromSet(spec.NodeSelector).Matches(labels.Set(node.Labels))
}

// nodeOf returns the node that the affinity of a Pod names, as that of a Pod of a DaemonSet does.
func nodeOf(spec *corev1.PodSpec) string {
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil {
		return ""
	}
	required := spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if required == nil {
		return ""
	}
	for _, term := range required.NodeSelectorTerms {
		for _, field := range term.MatchFields {
			if field.Key == metav1.ObjectNameField && len(field.Values) == 1 {
				return field.Values[0]
			}
		}
	}
	return ""
}

// behavior returns that of a Pod.
func (o Options) behavior(pod *corev1.Pod) Behavior {
	var b Behavior
	if o.Behavior != nil {
		b = o.Behavior(pod)
	}
	if b == (Behavior{}) && pod.Spec.RestartPolicy != corev1.RestartPolicyAlways {
		b.Exits = true
	}
	return b
}
