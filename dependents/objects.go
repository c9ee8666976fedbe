package dependents

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The functions below make dependents of common kinds, in the namespace of the resource. The name of a dependent is its
// name in the [Set], and object returns the name of its object. All switches can be used with them.

func metaOf(resource client.Object, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: resource.GetNamespace(), Name: name}
}

// ServiceAccount returns a dependent that is a service account.
func ServiceAccount[T client.Object](
	name string, object func(resource T) string,
) *Dependent[T, *corev1.ServiceAccount] {
	return Of(name, func(_ context.Context, resource T) (*corev1.ServiceAccount, error) {
		return &corev1.ServiceAccount{ObjectMeta: metaOf(resource, object(resource))}, nil
	})
}

// Role returns a dependent that is a role with these rules. The controller itself needs the rights that it grants.
func Role[T client.Object](
	name string, object func(resource T) string, rules func(resource T) []rbacv1.PolicyRule,
) *Dependent[T, *rbacv1.Role] {
	return Of(name, func(_ context.Context, resource T) (*rbacv1.Role, error) {
		return &rbacv1.Role{ObjectMeta: metaOf(resource, object(resource)), Rules: rules(resource)}, nil
	})
}

// RoleBinding returns a dependent that grants the role of a name to service accounts of these names. The role of a
// binding cannot be changed afterwards.
func RoleBinding[T client.Object](
	name string, object, role func(resource T) string, serviceAccounts func(resource T) []string,
) *Dependent[T, *rbacv1.RoleBinding] {
	return Of(name, func(_ context.Context, resource T) (*rbacv1.RoleBinding, error) {
		binding := &rbacv1.RoleBinding{
			ObjectMeta: metaOf(resource, object(resource)),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role(resource)},
		}
		for _, account := range serviceAccounts(resource) {
			binding.Subjects = append(binding.Subjects, rbacv1.Subject{
				Kind: rbacv1.ServiceAccountKind, Namespace: resource.GetNamespace(), Name: account,
			})
		}
		return binding, nil
	})
}

// Secret returns a dependent that is a secret with this data.
func Secret[T client.Object](
	name string, object func(resource T) string,
	data func(ctx context.Context, resource T) (map[string][]byte, error),
) *Dependent[T, *corev1.Secret] {
	return Of(name, func(ctx context.Context, resource T) (*corev1.Secret, error) {
		content, err := data(ctx, resource)
		if err != nil {
			return nil, err
		}
		return &corev1.Secret{ObjectMeta: metaOf(resource, object(resource)), Data: content}, nil
	})
}

// ConfigMap returns a dependent that is a config map with this data.
func ConfigMap[T client.Object](
	name string, object func(resource T) string,
	data func(ctx context.Context, resource T) (map[string]string, error),
) *Dependent[T, *corev1.ConfigMap] {
	return Of(name, func(ctx context.Context, resource T) (*corev1.ConfigMap, error) {
		content, err := data(ctx, resource)
		if err != nil {
			return nil, err
		}
		return &corev1.ConfigMap{ObjectMeta: metaOf(resource, object(resource)), Data: content}, nil
	})
}

// Workload is what varies in a deployment with a service.
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

// DeploymentWithService returns two dependents: a deployment, and a service of its pods, whose name in the [Set] ends
// in "-service". The function returns what varies, or nil if there are to be no such objects. It is called for each.
func DeploymentWithService[T client.Object](
	name string, workload func(ctx context.Context, resource T) (*Workload, error),
) (*Dependent[T, *appsv1.Deployment], *Dependent[T, *corev1.Service]) {
	deployment := Of(name, func(ctx context.Context, resource T) (*appsv1.Deployment, error) {
		w, err := workload(ctx, resource)
		if w == nil || err != nil {
			return nil, err
		}
		return w.deployment(resource), nil
	})
	service := Of(name+"-service", func(ctx context.Context, resource T) (*corev1.Service, error) {
		w, err := workload(ctx, resource)
		if w == nil || err != nil {
			return nil, err
		}
		return w.service(resource), nil
	})
	return deployment, service
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
