package registry

import (
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// completeDeployment sets the defaults of the Kubernetes API reference, DeploymentSpec v1 apps.
func completeDeployment(d, _ *appsv1.Deployment) {
	spec := &d.Spec
	completePodSpec(&spec.Template.Spec)
	setDefault(&spec.Replicas, 1)
	setDefault(&spec.RevisionHistoryLimit, 10)
	setDefault(&spec.ProgressDeadlineSeconds, 600)
	setIfZero(&spec.Strategy.Type, appsv1.RollingUpdateDeploymentStrategyType)
	if spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		setDefault(&spec.Strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
		setDefault(&spec.Strategy.RollingUpdate.MaxUnavailable, intstr.FromString("25%"))
		setDefault(&spec.Strategy.RollingUpdate.MaxSurge, intstr.FromString("25%"))
	}
}

// completeStatefulSet sets the defaults of the Kubernetes API reference, StatefulSetSpec v1 apps.
func completeStatefulSet(s, _ *appsv1.StatefulSet) {
	spec := &s.Spec
	completePodSpec(&spec.Template.Spec)
	setDefault(&spec.Replicas, 1)
	setDefault(&spec.RevisionHistoryLimit, 10)
	setIfZero(&spec.PodManagementPolicy, appsv1.OrderedReadyPodManagement)
	setIfZero(&spec.UpdateStrategy.Type, appsv1.RollingUpdateStatefulSetStrategyType)
	if spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType {
		setDefault(&spec.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateStatefulSetStrategy{})
		setDefault(&spec.UpdateStrategy.RollingUpdate.Partition, 0)
		setDefault(&spec.UpdateStrategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
	}
	setDefault(&spec.PersistentVolumeClaimRetentionPolicy, appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{})
	setIfZero(&spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted,
		appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	setIfZero(&spec.PersistentVolumeClaimRetentionPolicy.WhenScaled,
		appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	for i := range spec.VolumeClaimTemplates {
		claim := &spec.VolumeClaimTemplates[i]
		completeClaimSpec(&claim.Spec)
		setIfZero(&claim.Status.Phase, corev1.ClaimPending)
	}
}

// completeDaemonSet sets the defaults of the Kubernetes API reference, DaemonSetSpec v1 apps, and the generation of the
// template, which is an annotation, see appsv1.DeprecatedTemplateGeneration. An object that was given without it stays
// so.
func completeDaemonSet(d, old *appsv1.DaemonSet) {
	spec := &d.Spec
	completePodSpec(&spec.Template.Spec)
	setDefault(&spec.RevisionHistoryLimit, 10)
	setIfZero(&spec.UpdateStrategy.Type, appsv1.RollingUpdateDaemonSetStrategyType)
	if spec.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType {
		setDefault(&spec.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateDaemonSet{})
		setDefault(&spec.UpdateStrategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
		setDefault(&spec.UpdateStrategy.RollingUpdate.MaxSurge, intstr.FromInt32(0))
	}
	if given, ok := d.Annotations[appsv1.DeprecatedTemplateGeneration]; ok {
		if _, err := strconv.Atoi(given); err != nil {
			return
		}
	}
	generation := 1
	if old != nil {
		var err error
		if generation, err = strconv.Atoi(old.Annotations[appsv1.DeprecatedTemplateGeneration]); err != nil {
			return
		}
		if !equality.Semantic.DeepEqual(&spec.Template, &old.Spec.Template) {
			generation++
		}
	}
	d.Annotations = with(d.Annotations, appsv1.DeprecatedTemplateGeneration, strconv.Itoa(generation))
}

// completeReplicaSet sets the defaults of the Kubernetes API reference, ReplicaSetSpec v1 apps.
func completeReplicaSet(r, _ *appsv1.ReplicaSet) {
	completePodSpec(&r.Spec.Template.Spec)
	setDefault(&r.Spec.Replicas, 1)
}

// completeReplicationController sets the defaults of the Kubernetes API reference, ReplicationControllerSpec v1 core.
// What is not said follows from the labels of the template.
func completeReplicationController(r, old *corev1.ReplicationController) {
	setDefault(&r.Spec.Replicas, 1)
	if r.Spec.Template == nil {
		return
	}
	completePodSpec(&r.Spec.Template.Spec)
	if len(r.Spec.Selector) == 0 {
		r.Spec.Selector = r.Spec.Template.Labels
	}
	if len(r.Labels) == 0 && (old == nil || len(old.Labels) > 0) {
		r.Labels = r.Spec.Template.Labels
	}
}

// completePodTemplate sets the defaults of a template that is an object.
func completePodTemplate(t, _ *corev1.PodTemplate) { completePodSpec(&t.Template.Spec) }

// with returns a map with one more entry. The map itself may be part of another object, so it is not changed.
func with(m map[string]string, key, value string) map[string]string {
	if got, ok := m[key]; ok && got == value {
		return m
	}
	c := make(map[string]string, len(m)+1)
	for k, v := range m {
		c[k] = v
	}
	c[key] = value
	return c
}
