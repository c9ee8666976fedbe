package bare

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "github.com/espalier-dev/espalier/examples/shop/api/v1"
)

const (
	servicePort        = 80
	containerPort      = 8080
	checksumAnnotation = "shop.example.com/settings-checksum"
	workerLabel        = "shop.example.com/worker"
)

// notOursError says that an object has the name of a child but belongs to somebody else.
type notOursError struct {
	kind, name, owner string
}

func (e *notOursError) Error() string {
	return fmt.Sprintf("%s %q already exists and belongs to %s", e.kind, e.name, e.owner)
}

// apply creates or updates a child, unless its name is taken.
func (r *Reconciler) apply(ctx context.Context, shop *v1.Shop, child client.Object, mutate func()) error {
	kind, err := r.kindOf(child)
	if err != nil {
		return err
	}
	operation, err := controllerutil.CreateOrUpdate(ctx, r.Client, child, func() error {
		if child.GetUID() != "" && !metav1.IsControlledBy(child, shop) {
			theirs := &notOursError{kind: kind, name: child.GetName(), owner: "nobody"}
			if controller := metav1.GetControllerOf(child); controller != nil {
				theirs.owner = fmt.Sprintf("%s %q", controller.Kind, controller.Name)
			}
			return theirs
		}
		mutate()
		return controllerutil.SetControllerReference(shop, child, r.Scheme())
	})
	if err != nil {
		return fmt.Errorf("unable to apply %s %q: %w", kind, child.GetName(), err)
	}
	switch operation {
	case controllerutil.OperationResultCreated:
		r.event(shop, child, "Created", kind)
	case controllerutil.OperationResultUpdated:
		r.event(shop, child, "Updated", kind)
	}
	return nil
}

// remove deletes a child, unless it is not the shop's.
func (r *Reconciler) remove(ctx context.Context, shop *v1.Shop, child client.Object) error {
	kind, err := r.kindOf(child)
	if err != nil {
		return err
	}
	if !metav1.IsControlledBy(child, shop) || child.GetDeletionTimestamp() != nil {
		return nil
	}
	if err := r.Delete(ctx, child); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("unable to delete %s %q: %w", kind, child.GetName(), err))
	}
	r.event(shop, child, "Deleted", kind)
	return nil
}

func (r *Reconciler) event(shop *v1.Shop, child client.Object, reason, kind string) {
	r.Recorder.Eventf(shop, child, corev1.EventTypeNormal, reason, reason, "%s %s %q", reason, kind, child.GetName())
}

func (r *Reconciler) kindOf(child client.Object) (string, error) {
	gvk, err := apiutil.GVKForObject(child, r.Scheme())
	return gvk.Kind, err
}

func (r *Reconciler) reconcileDeployment(ctx context.Context, shop *v1.Shop, settings *corev1.ConfigMap) error {
	sum, err := checksum(settings)
	if err != nil {
		return err
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace, Name: shop.Name}}
	err = r.apply(ctx, shop, deployment, func() {
		merge(&deployment.Labels, labels(shop))
		deployment.Spec.Replicas = ptr.To(shop.Spec.Replicas)
		deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels(shop)}
		template := &deployment.Spec.Template
		merge(&template.Labels, labels(shop))
		merge(&template.Annotations, map[string]string{checksumAnnotation: sum})
		container := mutateContainer(&template.Spec, "shop", shop)
		container.Ports = []corev1.ContainerPort{
			{Name: "http", ContainerPort: containerPort, Protocol: corev1.ProtocolTCP},
		}
	})
	if err != nil {
		return setFailed(shop, v1.DeploymentReady, err)
	}
	reflectDeployment(shop, deployment)
	return nil
}

// checksum changes with the data of the settings, so that the pods are replaced then.
func checksum(settings *corev1.ConfigMap) (string, error) {
	data, err := json.Marshal(settings.Data)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", sha256.Sum256(data)), nil
}

// mutateContainer makes the container of that name run the image of the shop, and returns it. Other containers, and
// what the API server has filled in, stay as they are.
func mutateContainer(pod *corev1.PodSpec, name string, shop *v1.Shop) *corev1.Container {
	var container *corev1.Container
	for i := range pod.Containers {
		if pod.Containers[i].Name == name {
			container = &pod.Containers[i]
		}
	}
	if container == nil {
		pod.Containers = append(pod.Containers, corev1.Container{Name: name})
		container = &pod.Containers[len(pod.Containers)-1]
	}
	container.Image = shop.Spec.Image
	container.EnvFrom = nil
	if shop.Spec.Settings != "" {
		container.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: shop.Spec.Settings},
		}}}
	}
	return container
}

func (r *Reconciler) reconcileService(ctx context.Context, shop *v1.Shop) error {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace, Name: shop.Name}}
	err := r.apply(ctx, shop, service, func() {
		merge(&service.Labels, labels(shop))
		service.Spec.Selector = labels(shop)
		service.Spec.Ports = []corev1.ServicePort{{
			Name: "http", Protocol: corev1.ProtocolTCP,
			Port: servicePort, TargetPort: intstr.FromInt32(containerPort),
		}}
	})
	if err != nil {
		return setFailed(shop, v1.ServiceReady, err)
	}
	setTrue(shop, v1.ServiceReady, "Ready")
	return nil
}

func (r *Reconciler) reconcileIngress(ctx context.Context, shop *v1.Shop) error {
	ingress := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace, Name: shop.Name}}
	if shop.Spec.Host == "" {
		err := r.Get(ctx, client.ObjectKeyFromObject(ingress), ingress)
		if err == nil {
			err = r.remove(ctx, shop, ingress)
		}
		if client.IgnoreNotFound(err) != nil {
			return setFailed(shop, v1.IngressReady, err)
		}
		setTrue(shop, v1.IngressReady, "NoHost")
		return nil
	}
	err := r.apply(ctx, shop, ingress, func() {
		merge(&ingress.Labels, labels(shop))
		ingress.Spec.Rules = []networkingv1.IngressRule{{
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
		}}
	})
	if err != nil {
		return setFailed(shop, v1.IngressReady, err)
	}
	setTrue(shop, v1.IngressReady, "Ready")
	return nil
}

func (r *Reconciler) reconcileWorkers(ctx context.Context, shop *v1.Shop) error {
	var failed error
	desired := map[string]bool{}
	for _, worker := range shop.Spec.Workers {
		name := shop.Name + "-" + worker.Name
		desired[name] = true
		// One that fails does not keep the others from their CronJobs. The condition shows the first.
		if err := r.reconcileWorker(ctx, shop, worker, name); err != nil && failed == nil {
			failed = err
		}
	}
	var cronJobs batchv1.CronJobList
	if err := r.List(ctx, &cronJobs, client.InNamespace(shop.Namespace)); err != nil {
		return setFailed(shop, v1.WorkersReady, fmt.Errorf("unable to list the workers: %w", err))
	}
	for i := range cronJobs.Items {
		if desired[cronJobs.Items[i].Name] {
			continue
		}
		if err := r.remove(ctx, shop, &cronJobs.Items[i]); err != nil && failed == nil {
			failed = err
		}
	}
	if failed != nil {
		return setFailed(shop, v1.WorkersReady, failed)
	}
	setTrue(shop, v1.WorkersReady, "Ready")
	return nil
}

func (r *Reconciler) reconcileWorker(ctx context.Context, shop *v1.Shop, worker v1.Worker, name string) error {
	cronJob := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace, Name: name}}
	return r.apply(ctx, shop, cronJob, func() {
		merge(&cronJob.Labels, labels(shop))
		cronJob.Spec.Schedule = worker.Schedule
		template := &cronJob.Spec.JobTemplate.Spec.Template
		// It is not a pod of the Service.
		merge(&template.Labels, map[string]string{workerLabel: worker.Name})
		template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
		mutateContainer(&template.Spec, "worker", shop).Args = worker.Args
	})
}

func labels(shop *v1.Shop) map[string]string {
	return map[string]string{"app.kubernetes.io/name": "shop", "app.kubernetes.io/instance": shop.Name}
}

// merge adds what is desired to labels or annotations, and leaves those of others.
func merge(current *map[string]string, desired map[string]string) {
	if *current == nil {
		*current = map[string]string{}
	}
	for key, value := range desired {
		(*current)[key] = value
	}
}
