package fidelity

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// The least that the kinds accept.

func resourceList(name corev1.ResourceName, quantity string) corev1.ResourceList {
	return corev1.ResourceList{name: resource.MustParse(quantity)}
}

func claimSpec() corev1.PersistentVolumeClaimSpec {
	return corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: resourceList(corev1.ResourceStorage, "1Gi")},
	}
}

func jobSpec() batchv1.JobSpec {
	template := corev1.PodTemplateSpec{Spec: podSpec()}
	template.Spec.RestartPolicy = corev1.RestartPolicyNever
	return batchv1.JobSpec{Template: template}
}

func cronJobSpec() batchv1.CronJobSpec {
	return batchv1.CronJobSpec{Schedule: "@daily", JobTemplate: batchv1.JobTemplateSpec{Spec: jobSpec()}}
}

func ingressSpec() networkingv1.IngressSpec {
	return networkingv1.IngressSpec{DefaultBackend: &networkingv1.IngressBackend{
		Service: &networkingv1.IngressServiceBackend{
			Name: "a", Port: networkingv1.ServiceBackendPort{Number: 80},
		},
	}}
}

func autoscalerSpec() autoscalingv2.HorizontalPodAutoscalerSpec {
	return autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "a"},
		MaxReplicas:    3,
	}
}
