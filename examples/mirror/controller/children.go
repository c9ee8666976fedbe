package controller

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	v1 "github.com/espalier-dev/espalier/examples/mirror/api/v1"
	"github.com/espalier-dev/espalier/objects"
)

const port = 8080

func desiredConfig(_ context.Context, mirror *v1.Mirror) (*corev1.ConfigMap, error) {
	return &corev1.ConfigMap{
		ObjectMeta: childMeta(mirror, mirror.Name),
		Data:       map[string]string{"mirror.conf": fmt.Sprintf("upstream %s;\n", mirror.Spec.Upstream)},
	}, nil
}

func desiredService(_ context.Context, mirror *v1.Mirror) (*corev1.Service, error) {
	return &corev1.Service{
		ObjectMeta: childMeta(mirror, mirror.Name),
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone, Selector: labels(mirror),
			Ports: []corev1.ServicePort{{Name: "http", Port: port}},
		},
	}, nil
}

// desiredPolicies let each peer in.
func desiredPolicies(_ context.Context, mirror *v1.Mirror) ([]*networkingv1.NetworkPolicy, error) {
	var policies []*networkingv1.NetworkPolicy
	for _, peer := range mirror.Spec.Peers {
		policies = append(policies, &networkingv1.NetworkPolicy{
			ObjectMeta: childMeta(mirror, mirror.Name+"-"+peer),
			Spec: networkingv1.NetworkPolicySpec{
				PodSelector: metav1.LabelSelector{MatchLabels: labels(mirror)},
				Ingress: []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{{
					PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": peer}},
				}}}},
			},
		})
	}
	return policies, nil
}

// desiredPrune returns no CronJob for a mirror that is never cleaned.
func desiredPrune(_ context.Context, mirror *v1.Mirror) (*batchv1.CronJob, error) {
	if mirror.Spec.Prune == "" {
		return nil, nil
	}
	cronJob := &batchv1.CronJob{ObjectMeta: childMeta(mirror, mirror.Name+"-prune")}
	cronJob.Spec.Schedule = mirror.Spec.Prune
	cronJob.Spec.JobTemplate.Spec.Template.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyOnFailure,
		Containers: []corev1.Container{{
			Name: "prune", Image: mirror.Spec.Image, Args: []string{"prune", mirror.Name},
		}},
	}
	return cronJob, nil
}

// desiredBudget returns no budget for a mirror of one pod, which could never be moved.
func desiredBudget(_ context.Context, mirror *v1.Mirror) (*policyv1.PodDisruptionBudget, error) {
	if mirror.Spec.Replicas < 2 {
		return nil, nil
	}
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: childMeta(mirror, mirror.Name),
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels(mirror)},
		},
	}, nil
}

// desiredStatefulSet replaces the pods when the credentials change.
func desiredStatefulSet(ctx context.Context, mirror *v1.Mirror) (*appsv1.StatefulSet, error) {
	hash, err := objects.DataHash(credentials.RetrieveOrEmpty(ctx))
	if err != nil {
		return nil, err
	}
	container := corev1.Container{
		Name: "mirror", Image: mirror.Spec.Image,
		Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: port}},
		VolumeMounts: []corev1.VolumeMount{
			{Name: "cache", MountPath: "/cache"}, {Name: "config", MountPath: "/etc/mirror"},
		},
	}
	if mirror.Spec.Credentials != "" {
		container.EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: mirror.Spec.Credentials},
		}}}
	}
	return &appsv1.StatefulSet{
		ObjectMeta: childMeta(mirror, mirror.Name),
		Spec: appsv1.StatefulSetSpec{
			Replicas: &mirror.Spec.Replicas, ServiceName: mirror.Name,
			Selector: &metav1.LabelSelector{MatchLabels: labels(mirror)},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{
					Labels: labels(mirror), Annotations: map[string]string{"mirror.example.com/credentials": hash},
				},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{container},
					Volumes: []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{
						ConfigMap: &corev1.ConfigMapVolumeSource{
							LocalObjectReference: corev1.LocalObjectReference{Name: mirror.Name},
						},
					}}},
				},
			},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
				ObjectMeta: metav1.ObjectMeta{Name: "cache"},
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources: corev1.VolumeResourceRequirements{
						Requests: corev1.ResourceList{corev1.ResourceStorage: mirror.Spec.Storage},
					},
				},
			}},
		},
	}, nil
}

// readyReplicas shows how many pods are ready.
func readyReplicas(_ context.Context, mirror *v1.Mirror, live *appsv1.StatefulSet) error {
	mirror.Status.ReadyReplicas = 0
	if live != nil {
		mirror.Status.ReadyReplicas = live.Status.ReadyReplicas
	}
	return nil
}

func childMeta(mirror *v1.Mirror, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: mirror.Namespace, Name: name, Labels: labels(mirror)}
}

func labels(mirror *v1.Mirror) map[string]string {
	return map[string]string{"app.kubernetes.io/name": "mirror", "app.kubernetes.io/instance": mirror.Name}
}
