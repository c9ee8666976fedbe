package bare

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
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/espalier-dev/espalier/examples/mirror/api/v1"
)

const port = 8080

func (r *Reconciler) reconcileConfig(ctx context.Context, mirror *v1.Mirror) error {
	config := &corev1.ConfigMap{ObjectMeta: childMeta(mirror, mirror.Name)}
	err := r.apply(ctx, mirror, v1.ConfigReady, config, func() {
		config.Data = map[string]string{"mirror.conf": fmt.Sprintf("upstream %s;\n", mirror.Spec.Upstream)}
	})
	if err != nil {
		return err
	}
	setTrue(mirror, v1.ConfigReady, "Ready")
	return nil
}

func (r *Reconciler) reconcileService(ctx context.Context, mirror *v1.Mirror) error {
	service := &corev1.Service{ObjectMeta: childMeta(mirror, mirror.Name)}
	err := r.apply(ctx, mirror, v1.ServiceReady, service, func() {
		service.Spec.ClusterIP = corev1.ClusterIPNone
		service.Spec.Selector = labels(mirror)
		service.Spec.Ports = []corev1.ServicePort{{
			Name: "http", Port: port, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(port),
		}}
	})
	if err != nil {
		return err
	}
	setTrue(mirror, v1.ServiceReady, "Ready")
	return nil
}

// reconcilePolicies lets each peer in.
func (r *Reconciler) reconcilePolicies(ctx context.Context, mirror *v1.Mirror) error {
	var failed error
	desired := map[string]bool{}
	for _, peer := range mirror.Spec.Peers {
		policy := &networkingv1.NetworkPolicy{ObjectMeta: childMeta(mirror, mirror.Name+"-"+peer)}
		desired[policy.Name] = true
		err := r.apply(ctx, mirror, v1.PoliciesReady, policy, func() {
			policy.Spec.PodSelector = metav1.LabelSelector{MatchLabels: labels(mirror)}
			policy.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{{
				PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": peer}},
			}}}}
		})
		// One that fails does not keep the others from their policies. The condition shows the first.
		if err != nil && failed == nil {
			failed = err
		}
	}
	var policies networkingv1.NetworkPolicyList
	if err := r.List(ctx, &policies, client.InNamespace(mirror.Namespace)); err != nil {
		return setFailed(mirror, v1.PoliciesReady, fmt.Errorf("unable to list the policies: %w", err))
	}
	for i := range policies.Items {
		if desired[policies.Items[i].Name] || !metav1.IsControlledBy(&policies.Items[i], mirror) {
			continue
		}
		if err := r.remove(ctx, mirror, v1.PoliciesReady, &policies.Items[i]); err != nil && failed == nil {
			failed = err
		}
	}
	if failed != nil {
		return setFailed(mirror, v1.PoliciesReady, failed)
	}
	setTrue(mirror, v1.PoliciesReady, "Ready")
	return nil
}

// reconcilePrune keeps no CronJob for a mirror that is never cleaned.
func (r *Reconciler) reconcilePrune(ctx context.Context, mirror *v1.Mirror) error {
	cronJob := &batchv1.CronJob{ObjectMeta: childMeta(mirror, mirror.Name+"-prune")}
	if mirror.Spec.Prune == "" {
		if err := r.remove(ctx, mirror, v1.PruneReady, cronJob); err != nil {
			return err
		}
		setTrue(mirror, v1.PruneReady, "NotDesired")
		return nil
	}
	err := r.apply(ctx, mirror, v1.PruneReady, cronJob, func() {
		cronJob.Spec.Schedule = mirror.Spec.Prune
		pod := &cronJob.Spec.JobTemplate.Spec.Template.Spec
		pod.RestartPolicy = corev1.RestartPolicyOnFailure
		mutateContainer(pod, "prune", mirror).Args = []string{"prune", mirror.Name}
	})
	if err != nil {
		return err
	}
	setTrue(mirror, v1.PruneReady, "Ready")
	return nil
}

// reconcileBudget keeps no budget for a mirror of one pod, which could never be moved.
func (r *Reconciler) reconcileBudget(ctx context.Context, mirror *v1.Mirror) error {
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: childMeta(mirror, mirror.Name)}
	if mirror.Spec.Replicas < 2 {
		if err := r.remove(ctx, mirror, v1.BudgetReady, budget); err != nil {
			return err
		}
		setTrue(mirror, v1.BudgetReady, "NotDesired")
		return nil
	}
	err := r.apply(ctx, mirror, v1.BudgetReady, budget, func() {
		budget.Spec.MaxUnavailable = new(intstr.FromInt32(1))
		budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels(mirror)}
	})
	if err != nil {
		return err
	}
	setTrue(mirror, v1.BudgetReady, "Ready")
	return nil
}

// reconcileStatefulSet replaces the pods when the credentials change.
func (r *Reconciler) reconcileStatefulSet(ctx context.Context, mirror *v1.Mirror, credentials *corev1.Secret) error {
	statefulSet := &appsv1.StatefulSet{ObjectMeta: childMeta(mirror, mirror.Name)}
	err := r.apply(ctx, mirror, v1.StatefulSetReady, statefulSet, func() {
		spec := &statefulSet.Spec
		spec.Replicas = new(mirror.Spec.Replicas)
		spec.ServiceName = mirror.Name
		spec.Selector = &metav1.LabelSelector{MatchLabels: labels(mirror)}
		merge(&spec.Template.Labels, labels(mirror))
		// A digest of the content could be guessed from.
		merge(&spec.Template.Annotations, map[string]string{
			"mirror.example.com/credentials": string(credentials.UID) + "." + credentials.ResourceVersion,
		})
		mutatePod(&spec.Template.Spec, mirror)
		if statefulSet.UID == "" {
			spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{
				ObjectMeta: metav1.ObjectMeta{Name: "cache"},
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources: corev1.VolumeResourceRequirements{
						Requests: corev1.ResourceList{corev1.ResourceStorage: mirror.Spec.Storage},
					},
				},
			}}
		}
	})
	if err != nil {
		return err
	}
	reflectStatefulSet(mirror, statefulSet)
	return nil
}

func mutatePod(pod *corev1.PodSpec, mirror *v1.Mirror) {
	container := mutateContainer(pod, "mirror", mirror)
	container.Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: port, Protocol: corev1.ProtocolTCP}}
	container.VolumeMounts = []corev1.VolumeMount{
		{Name: "cache", MountPath: "/cache"}, {Name: "config", MountPath: "/etc/mirror"},
	}
	container.EnvFrom = nil
	if mirror.Spec.Credentials != "" {
		container.EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: mirror.Spec.Credentials},
		}}}
	}
	// The mode of the files is what the API server has filled in.
	if len(pod.Volumes) != 1 || pod.Volumes[0].Name != "config" || pod.Volumes[0].ConfigMap == nil {
		pod.Volumes = []corev1.Volume{{
			Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}},
		}}
	}
	pod.Volumes[0].ConfigMap.Name = mirror.Name
}

// mutateContainer makes the container of that name run the image of the mirror, and returns it. Other containers, and
// what the API server has filled in, stay as they are.
func mutateContainer(pod *corev1.PodSpec, name string, mirror *v1.Mirror) *corev1.Container {
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
	container.Image = mirror.Spec.Image
	return container
}
