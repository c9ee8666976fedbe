package controllers

import (
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// surge is how many Pods a rolling update may have beyond the replicas.
func (r rollout) surge() int32 {
	surge, _ := r.limits()
	return surge
}

// limits returns maxSurge, rounded up, and maxUnavailable, rounded down, see the Kubernetes API reference,
// RollingUpdateDeployment v1 apps. One of them is at least one.
func (r rollout) limits() (surge, unavailable int32) {
	rolling := r.Spec.Strategy.RollingUpdate
	if r.Spec.Strategy.Type != appsv1.RollingUpdateDeploymentStrategyType || rolling == nil {
		return 0, 0
	}
	desired := int(replicasOf(r.Spec.Replicas))
	surge = share(rolling.MaxSurge, desired, true)
	unavailable = share(rolling.MaxUnavailable, desired, false)
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return surge, min(unavailable, int32(desired))
}

// share is a number, or a percentage of all.
func share(of *intstr.IntOrString, all int, up bool) int32 {
	if of == nil {
		return 0
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(of, all, up)
	if err != nil {
		return 0
	}
	return int32(n)
}

// scaleTo scales a ReplicaSet and has it know the sizes of the Deployment.
func (r rollout) scaleTo(set *appsv1.ReplicaSet, replicas int32) []write {
	next := set.DeepCopy()
	next.Spec.Replicas = &replicas
	next.Annotations = r.withSizes(next.Annotations)
	return changed(update, next, set)
}

// scaleAll scales the ReplicaSets when the replicas of the Deployment were changed. If more than one have Pods each
// gets its share, see "Proportional scaling" in "Deployments" of the Kubernetes documentation.
func (r rollout) scaleAll() []write {
	var active []*appsv1.ReplicaSet
	resized := false
	desired, total := replicasOf(r.Spec.Replicas), int32(0)
	for _, set := range r.all() {
		if n := replicasOf(set.Spec.Replicas); n > 0 {
			active = append(active, set)
			total += n
			known, err := strconv.Atoi(set.Annotations[desiredAnnotation])
			resized = resized || err == nil && int32(known) != desired
		}
	}
	switch {
	case len(active) == 1 && (resized || r.Spec.Paused):
		return r.scaleTo(active[0], desired)
	case len(active) == 0 && r.Spec.Paused && r.current != nil:
		return r.scaleTo(r.current, desired)
	case len(active) < 2 || !resized:
		return nil
	case r.Spec.Strategy.Type != appsv1.RollingUpdateDeploymentStrategyType:
		return nil
	}
	wanted := desired + r.surge()
	if desired == 0 {
		wanted = 0
	}
	var writes []write
	left := wanted - total
	for i, set := range active {
		n := replicasOf(set.Spec.Replicas)
		part := (n*wanted+total/2)/total - n
		if i == len(active)-1 || beyond(part, left) {
			part = left
		}
		left -= part
		writes = append(writes, r.scaleTo(set, max(0, n+part))...)
	}
	return writes
}

// beyond reports whether a part is more than what is left, or of the other direction.
func beyond(part, left int32) bool { return left >= 0 && part > left || left <= 0 && part < left }

// recreate creates the new ReplicaSet when the Pods of the old ones have ended.
func (r rollout) recreate() []write {
	var writes []write
	for _, set := range r.old {
		if replicasOf(set.Spec.Replicas) > 0 {
			writes = append(writes, r.scaleTo(set, 0)...)
		}
	}
	switch {
	case len(writes) > 0 || r.oldRunning:
		return writes
	case r.current == nil:
		return []write{r.newSet(replicasOf(r.Spec.Replicas))}
	}
	return r.scaleTo(r.current, replicasOf(r.Spec.Replicas))
}

// roll takes a step of a rolling update: the new ReplicaSet grows as far as maxSurge lets it, then the old ones shrink
// as far as maxUnavailable lets them, those Pods first that are not available anyway.
func (r rollout) roll() []write {
	surge, unavailable := r.limits()
	desired := replicasOf(r.Spec.Replicas)
	var total, available int32
	for _, set := range r.all() {
		total += replicasOf(set.Spec.Replicas)
		available += set.Status.AvailableReplicas
	}
	room := max(0, desired+surge-total)
	if r.current == nil {
		return []write{r.newSet(min(desired, room))}
	}
	current := replicasOf(r.current.Spec.Replicas)
	if grown := min(current+room, desired); grown != current && (room > 0 || current > desired) {
		return r.scaleTo(r.current, grown)
	}
	minimum := desired - unavailable
	starting := max(0, current-r.current.Status.AvailableReplicas)
	spare := total - minimum - starting
	if spare <= 0 {
		return nil
	}
	shrunk := make([]int32, len(r.old))
	for i, set := range r.old {
		n := replicasOf(set.Spec.Replicas)
		idle := min(max(0, n-set.Status.AvailableReplicas), spare)
		shrunk[i] = n - idle
		spare -= idle
	}
	left := max(0, min(spare, available-minimum))
	var writes []write
	for i, set := range r.old {
		part := min(shrunk[i], left)
		left -= part
		if n := shrunk[i] - part; n != replicasOf(set.Spec.Replicas) {
			writes = append(writes, r.scaleTo(set, n)...)
		}
	}
	return writes
}
