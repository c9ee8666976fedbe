package controller

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/espalier-dev/espalier"
	v1 "github.com/espalier-dev/espalier/examples/shop/api/v1"
)

const (
	servicePort        = 80
	containerPort      = 8080
	checksumAnnotation = "shop.example.com/settings-checksum"
	workerLabel        = "shop.example.com/worker"
)

// Deployment runs the pods of the shop, and replaces them when the settings change.
func Deployment() Part {
	return espalier.Owns("Deployment", desiredDeployment).Reports(v1.DeploymentReady)
}

func desiredDeployment(ctx context.Context, shop *v1.Shop) (*appsv1.Deployment, error) {
	sum, err := checksum(ctx)
	if err != nil {
		return nil, err
	}
	container := container("shop", shop)
	container.Ports = []corev1.ContainerPort{
		{Name: "http", ContainerPort: containerPort, Protocol: corev1.ProtocolTCP},
	}
	return &appsv1.Deployment{
		ObjectMeta: childMeta(shop, shop.Name),
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(shop.Spec.Replicas),
			Selector: &metav1.LabelSelector{MatchLabels: labels(shop)},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{
					Labels: labels(shop), Annotations: map[string]string{checksumAnnotation: sum},
				},
				Spec: corev1.PodSpec{Containers: []corev1.Container{container}},
			},
		},
	}, nil
}

func container(name string, shop *v1.Shop) corev1.Container {
	container := corev1.Container{Name: name, Image: shop.Spec.Image}
	if shop.Spec.Settings != "" {
		container.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: shop.Spec.Settings},
		}}}
	}
	return container
}

// Service gives the pods an address. Its label tells it apart from the Services that more parts may have.
func Service() Part {
	return espalier.Owns("Service", desiredService).Labeled().Reports(v1.ServiceReady)
}

func desiredService(_ context.Context, shop *v1.Shop) (*corev1.Service, error) {
	return &corev1.Service{
		ObjectMeta: childMeta(shop, shop.Name),
		Spec: corev1.ServiceSpec{
			Selector: labels(shop),
			Ports: []corev1.ServicePort{{
				Name: "http", Protocol: corev1.ProtocolTCP,
				Port: servicePort, TargetPort: intstr.FromInt32(containerPort),
			}},
		},
	}, nil
}

// Ingress leads people from the host to the Service.
func Ingress() Part {
	return espalier.Owns("Ingress", desiredIngress).Reports(v1.IngressReady)
}

// desiredIngress returns no Ingress for a shop without a host. One that is there is deleted then.
func desiredIngress(_ context.Context, shop *v1.Shop) (*networkingv1.Ingress, error) {
	if shop.Spec.Host == "" {
		return nil, nil
	}
	return &networkingv1.Ingress{
		ObjectMeta: childMeta(shop, shop.Name),
		Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{
			Host: shop.Spec.Host,
			IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
				Paths: []networkingv1.HTTPIngressPath{{
					Path:     "/",
					PathType: ptr.To(networkingv1.PathTypePrefix),
					Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
						Name: shop.Name,
						Port: networkingv1.ServiceBackendPort{Number: servicePort},
					}},
				}},
			}},
		}}},
	}, nil
}

// Workers keeps a CronJob for each worker, and deletes those of workers that the shop does not have any more.
func Workers() Part {
	return espalier.OwnsEach("Workers", desiredWorkers).Reports(v1.WorkersReady)
}

func desiredWorkers(_ context.Context, shop *v1.Shop) ([]*batchv1.CronJob, error) {
	var cronJobs []*batchv1.CronJob
	for _, worker := range shop.Spec.Workers {
		container := container("worker", shop)
		container.Args = worker.Args
		cronJob := &batchv1.CronJob{ObjectMeta: childMeta(shop, shop.Name+"-"+worker.Name)}
		cronJob.Spec.Schedule = worker.Schedule
		cronJob.Spec.JobTemplate.Spec.Template = corev1.PodTemplateSpec{
			// It is not a pod of the Service.
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{workerLabel: worker.Name}},
			Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyOnFailure, Containers: []corev1.Container{container},
			},
		}
		cronJobs = append(cronJobs, cronJob)
	}
	return cronJobs, nil
}

func childMeta(shop *v1.Shop, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: shop.Namespace, Name: name, Labels: labels(shop)}
}

func labels(shop *v1.Shop) map[string]string {
	return map[string]string{"app.kubernetes.io/name": "shop", "app.kubernetes.io/instance": shop.Name}
}
