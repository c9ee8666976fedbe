package controllers

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// disruptionGrace is how long a Pod that was evicted, and is not being deleted, does not count as healthy.
const disruptionGrace = 2 * time.Minute

// disruptionBudgets says in the status of PodDisruptionBudgets how many Pods may be evicted. See "Specifying a
// Disruption Budget for your Application" in the Kubernetes documentation. Other controllers than Deployments,
// ReplicaSets and StatefulSets have no scale here.
func disruptionBudgets() *controller {
	return &controller{
		name: "kube-controller-manager", kinds: []schema.GroupKind{budgetKind},
		decide: func(v *view, _ key, obj client.Object, now time.Time) decision {
			budget := obj.(*policyv1.PodDisruptionBudget)
			pods := selectedPods(v, budget.Namespace, budget.Spec.Selector)
			expected, err := expectedPods(v, budget, pods)
			return decideBudget(budget, pods, expected, err, now)
		},
		concerns: func(v *view, k key, _ client.Object) []key {
			switch k.GroupKind {
			case podKind, deploymentKind, replicaSetKind, statefulKind:
				return v.keys(budgetKind, k.namespace)
			}
			return nil
		},
	}
}

// selectedPods returns the Pods that a selector selects. An invalid one selects none.
func selectedPods(v *view, namespace string, by *metav1.LabelSelector) []*corev1.Pod {
	selector, err := metav1.LabelSelectorAsSelector(by)
	if err != nil {
		return nil
	}
	var pods []*corev1.Pod
	for _, pod := range list[*corev1.Pod](v, podKind, namespace) {
		if selector.Matches(labels.Set(pod.Labels)) {
			pods = append(pods, pod)
		}
	}
	return pods
}

// expectedPods returns how many Pods there are to be: those that there are if the budget says a number of available
// ones, else those that their controllers are scaled to.
func expectedPods(v *view, budget *policyv1.PodDisruptionBudget, pods []*corev1.Pod) (int32, error) {
	if available := budget.Spec.MinAvailable; available != nil && available.Type == intstr.Int {
		return int32(len(pods)), nil
	}
	scales := map[types.UID]int32{}
	for _, pod := range pods {
		reference := metav1.GetControllerOf(pod)
		if reference == nil {
			continue
		}
		owner := v.controllerOf(pod)
		if set, ok := owner.(*appsv1.ReplicaSet); ok && metav1.GetControllerOf(set) != nil {
			owner = v.controllerOf(set)
		}
		replicas, _, ok := replicasIn(owner)
		if !ok {
			return 0, fmt.Errorf("pod %s: its controller %s %s has no scale", pod.Name, reference.Kind, reference.Name)
		}
		scales[owner.GetUID()] = replicas
	}
	sum := int32(0)
	for _, replicas := range scales {
		sum += replicas
	}
	return sum, nil
}

// controllerOf returns the controller of an object, nil if it is not there.
func (v *view) controllerOf(obj client.Object) client.Object {
	reference := metav1.GetControllerOf(obj)
	if reference == nil {
		return nil
	}
	kind := schema.FromAPIVersionAndKind(reference.APIVersion, reference.Kind).GroupKind()
	owner := v.find(key{kind, obj.GetNamespace(), reference.Name})
	if owner == nil || owner.GetUID() != reference.UID {
		return nil
	}
	return owner
}

// decideBudget sets the status of a budget for its Pods, see the Kubernetes API reference, PodDisruptionBudgetStatus v1
// policy. Failed is why it is not known how many Pods are expected.
func decideBudget(
	budget *policyv1.PodDisruptionBudget, pods []*corev1.Pod, expected int32, failed error, now time.Time,
) decision {
	var d decision
	next := budget.DeepCopy()
	s := &next.Status
	condition := metav1.Condition{
		Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse,
		Reason: policyv1.InsufficientPodsReason, LastTransitionTime: metav1.NewTime(now),
		ObservedGeneration: budget.Generation,
	}
	s.DisruptionsAllowed = 0
	if failed != nil {
		condition.Reason, condition.Message = policyv1.SyncFailedReason, failed.Error()
	} else {
		s.ObservedGeneration, s.ExpectedPods = budget.Generation, expected
		s.DesiredHealthy = desiredHealthy(budget, expected)
		s.CurrentHealthy, s.DisruptedPods = 0, nil
		for _, pod := range pods {
			if pod.DeletionTimestamp != nil {
				continue
			}
			if at, ok := budget.Status.DisruptedPods[pod.Name]; ok && now.Before(at.Add(disruptionGrace)) {
				s.DisruptedPods = with(s.DisruptedPods, pod.Name, at)
				d.by(at.Add(disruptionGrace))
				continue
			}
			_, ready := readySince(pod)
			s.CurrentHealthy += int32(yes(ready))
		}
		if expected > 0 {
			s.DisruptionsAllowed = max(0, s.CurrentHealthy-s.DesiredHealthy)
		}
		if s.DisruptionsAllowed > 0 {
			condition.Status, condition.Reason = metav1.ConditionTrue, policyv1.SufficientPodsReason
		}
	}
	meta.SetStatusCondition(&s.Conditions, condition)
	d.add(changed(updateStatus, next, budget)...)
	return d
}

// desiredHealthy returns how many of the expected Pods have to be healthy. Percentages are rounded up.
func desiredHealthy(budget *policyv1.PodDisruptionBudget, expected int32) int32 {
	of := func(n *intstr.IntOrString) int32 {
		scaled, _ := intstr.GetScaledValueFromIntOrPercent(n, int(expected), true) // It is valid.
		return int32(scaled)
	}
	switch {
	case budget.Spec.MaxUnavailable != nil:
		return max(0, expected-of(budget.Spec.MaxUnavailable))
	case budget.Spec.MinAvailable != nil:
		return of(budget.Spec.MinAvailable)
	}
	return 0
}
