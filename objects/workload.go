package objects

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Workload is what varies in a deployment and its service.
type Workload struct {
	// Name is the name of the deployment and of the service, and the value of the label app of the pods. Required.
	Name string
	// Image is the image of the container. Required.
	Image string
	// Port is the port on which the container listens, and which the service has. Required.
	Port int32
	// Replicas is the number of pods. Default: it is left to others, such as an autoscaler.
	Replicas *int32
	// Env are environment variables. Optional.
	Env []corev1.EnvVar
	// ServiceAccountName is the service account of the pods. Default: that of the namespace.
	ServiceAccountName string
	// Customize changes the template of the pods. Optional.
	Customize func(pods *corev1.PodTemplateSpec)
}

// Deployment returns a function for the deployment of a workload. Nil stands for none.
func Deployment[T client.Object](
	workload func(ctx context.Context, resource T) (*Workload, error),
) func(ctx context.Context, resource T) (*appsv1.Deployment, error) {
	return func(ctx context.Context, resource T) (*appsv1.Deployment, error) {
		w, err := workload(ctx, resource)
		if w == nil || err != nil {
			return nil, err
		}
		return w.deployment(resource), nil
	}
}

// Service returns a function for the service of the pods of a workload. Nil stands for none.
func Service[T client.Object](
	workload func(ctx context.Context, resource T) (*Workload, error),
) func(ctx context.Context, resource T) (*corev1.Service, error) {
	return func(ctx context.Context, resource T) (*corev1.Service, error) {
		w, err := workload(ctx, resource)
		if w == nil || err != nil {
			return nil, err
		}
		return w.service(resource), nil
	}
}

func (w *Workload) labels() map[string]string {
	return map[string]string{"app": w.Name}
}

func (w *Workload) deployment(resource client.Object) *appsv1.Deployment {
	pods := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: w.labels()},
		Spec: corev1.PodSpec{
			ServiceAccountName: w.ServiceAccountName,
			Containers: []corev1.Container{{
				Name: w.Name, Image: w.Image, Env: w.Env,
				Ports: []corev1.ContainerPort{{ContainerPort: w.Port, Protocol: corev1.ProtocolTCP}},
			}},
		},
	}
	if w.Customize != nil {
		w.Customize(&pods)
	}
	return &appsv1.Deployment{
		ObjectMeta: metaOf(resource, w.Name),
		Spec: appsv1.DeploymentSpec{
			Replicas: w.Replicas, Template: pods,
			Selector: &metav1.LabelSelector{MatchLabels: w.labels()},
		},
	}
}

func (w *Workload) service(resource client.Object) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metaOf(resource, w.Name),
		Spec: corev1.ServiceSpec{
			Selector: w.labels(),
			Ports: []corev1.ServicePort{{
				Port: w.Port, TargetPort: intstr.FromInt32(w.Port), Protocol: corev1.ProtocolTCP,
			}},
		},
	}
}
