package e2e

import (
	"context"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// replicas is how many the desired Deployment has.
const replicas = 2

// template returns the template of pods that run a container, named like a workload.
func template(name string, spec AppSpec) corev1.PodTemplateSpec {
	t := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: name, Image: spec.Image}}},
	}
	if spec.Pods != "" {
		t.Annotations = map[string]string{controlplane.PodAnnotation: spec.Pods}
	}
	return t
}

func desiredDeployment(_ context.Context, app *App) (*appsv1.Deployment, error) {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: app.Namespace, Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(replicas)),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: template("web", app.Spec),
		},
	}, nil
}

// desiredScaled is a Deployment whose replicas somebody else decides about.
func desiredScaled(ctx context.Context, app *App) (*appsv1.Deployment, error) {
	deployment, err := desiredDeployment(ctx, app)
	deployment.Spec.Replicas = nil
	return deployment, err
}

func desiredDaemonSet(_ context.Context, app *App) (*appsv1.DaemonSet, error) {
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: app.Namespace, Name: "agent"},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "agent"}},
			Template: template("agent", app.Spec),
		},
	}, nil
}

func jobSpec(name string, spec AppSpec) batchv1.JobSpec {
	pods := template(name, spec)
	pods.Spec.RestartPolicy = corev1.RestartPolicyNever
	return batchv1.JobSpec{BackoffLimit: new(int32(0)), Template: pods}
}

func desiredJob(_ context.Context, app *App) (*batchv1.Job, error) {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: app.Namespace, Name: "migration"},
		Spec:       jobSpec("migration", app.Spec),
	}, nil
}

func desiredCronJob(_ context.Context, app *App) (*batchv1.CronJob, error) {
	return &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: app.Namespace, Name: "backup"},
		Spec: batchv1.CronJobSpec{
			Schedule:    "0 0 1 1 *",
			JobTemplate: batchv1.JobTemplateSpec{Spec: jobSpec("backup", app.Spec)},
		},
	}, nil
}

func deployment() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
}

func daemonSet() *appsv1.DaemonSet {
	return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "agent"}}
}

func job() *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "migration"}}
}

func cronJob() *batchv1.CronJob {
	return &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "backup"}}
}
