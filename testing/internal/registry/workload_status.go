package registry

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// podCounts are the numbers of pods in the status of a workload, by the names of their fields.
type podCounts struct {
	total, ready, available int32
	others                  map[string]int32
}

// validateStatus requires what the Kubernetes API reference says of the counts in DeploymentStatus, ReplicaSetStatus
// and StatefulSetStatus v1 apps: each of them is a part of all replicas, and what is available is ready.
func validateStatus(obj client.Object) field.ErrorList {
	var counts podCounts
	switch w := obj.(type) {
	case *appsv1.Deployment:
		s := &w.Status
		counts = podCounts{s.Replicas, s.ReadyReplicas, s.AvailableReplicas, map[string]int32{
			"updatedReplicas": s.UpdatedReplicas,
		}}
	case *appsv1.ReplicaSet:
		s := &w.Status
		counts = podCounts{s.Replicas, s.ReadyReplicas, s.AvailableReplicas, map[string]int32{
			"fullyLabeledReplicas": s.FullyLabeledReplicas,
		}}
	case *appsv1.StatefulSet:
		s := &w.Status
		counts = podCounts{s.Replicas, s.ReadyReplicas, s.AvailableReplicas, map[string]int32{
			"currentReplicas": s.CurrentReplicas, "updatedReplicas": s.UpdatedReplicas,
		}}
	default:
		return nil
	}
	return counts.validate(field.NewPath("status"))
}

func (c podCounts) validate(at *field.Path) field.ErrorList {
	errs := notNegative(at.Child("replicas"), &c.total)
	part := func(name string, count int32) {
		errs = append(errs, notNegative(at.Child(name), &count)...)
		if count > c.total {
			errs = append(errs, field.Invalid(at.Child(name), count, "cannot be greater than status.replicas"))
		}
	}
	part("readyReplicas", c.ready)
	part("availableReplicas", c.available)
	for _, name := range slices.Sorted(maps.Keys(c.others)) {
		part(name, c.others[name])
	}
	if c.available > c.ready {
		errs = append(errs, field.Invalid(at.Child("availableReplicas"), c.available,
			"cannot be greater than readyReplicas"))
	}
	return errs
}
