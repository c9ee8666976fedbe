package e2e

import (
	"cmp"
	"context"
	"fmt"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestPodsAreAsTheAnnotationSays is about the cluster: the other tests rely on it.
func TestPodsAreAsTheAnnotationSays(t *testing.T) {
	for _, tc := range []struct {
		pods    string
		phase   corev1.PodPhase
		ready   corev1.ConditionStatus
		waiting string
	}{
		{pods: "", phase: corev1.PodRunning, ready: corev1.ConditionTrue},
		{pods: controlplane.PodRuns, phase: corev1.PodRunning, ready: corev1.ConditionTrue},
		{
			pods: controlplane.PodCannotPullImage, phase: corev1.PodPending, ready: corev1.ConditionFalse,
			waiting: "ImagePullBackOff",
		},
		{
			pods: controlplane.PodCrashes, phase: corev1.PodRunning, ready: corev1.ConditionFalse,
			waiting: "CrashLoopBackOff",
		},
	} {
		t.Run(cmp.Or(tc.pods, "without one"), func(t *testing.T) {
			w := enter(t)
			app := &App{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace}, Spec: AppSpec{Image: "web:1", Pods: tc.pods}}
			desired, _ := desiredDeployment(t.Context(), app)
			if err := w.Create(t.Context(), desired); err != nil {
				t.Fatal(err)
			}
			controlplanetest.Eventually(t, "the pods", func(ctx context.Context) error {
				pods, err := w.pods(ctx, "web")
				if err != nil {
					return err
				}
				if len(pods) != replicas {
					return fmt.Errorf("there are %d", len(pods))
				}
				for _, pod := range pods {
					phase, ready, waiting := stateOf(pod)
					if phase != tc.phase || ready != tc.ready || waiting != tc.waiting {
						return fmt.Errorf("%s on %q is %s, ready %s, waiting %s", pod.Name, pod.Spec.NodeName, phase,
							ready, waiting)
					}
				}
				return nil
			})
		})
	}
}

// TestJobsAreAsTheAnnotationSays is about the cluster, too.
func TestJobsAreAsTheAnnotationSays(t *testing.T) {
	for _, tc := range []struct {
		pods string
		want batchv1.JobStatus
	}{
		{pods: "", want: batchv1.JobStatus{Succeeded: 1}},
		{pods: controlplane.PodRuns, want: batchv1.JobStatus{Active: 1}},
		{pods: controlplane.PodFails, want: batchv1.JobStatus{Failed: 1}},
	} {
		t.Run(cmp.Or(tc.pods, "without one"), func(t *testing.T) {
			w := enter(t)
			app := &App{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace}, Spec: AppSpec{Image: "job:1", Pods: tc.pods}}
			desired, _ := desiredJob(t.Context(), app)
			if err := w.Create(t.Context(), desired); err != nil {
				t.Fatal(err)
			}
			until(t, w, job(), "the Job", func(job *batchv1.Job) string {
				s := job.Status
				running := tc.want.Active == 0 || s.Ready != nil && *s.Ready == tc.want.Active
				if s.Active != tc.want.Active || s.Succeeded != tc.want.Succeeded || s.Failed != tc.want.Failed || !running {
					return fmt.Sprintf("it is %+v", s)
				}
				return ""
			})
		})
	}
}

// pods returns the pods of a workload that are not being deleted.
func (w *world) pods(ctx context.Context, workload string) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := w.List(ctx, &list, client.InNamespace(w.namespace), client.MatchingLabels{"app": workload})
	var pods []corev1.Pod
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil {
			pods = append(pods, pod)
		}
	}
	return pods, err
}

// untilPods waits until a workload has so many pods that are ready, and no others.
func (w *world) untilPods(t *testing.T, workload string, count int) {
	t.Helper()
	controlplanetest.Eventually(t, "the pods of "+workload, func(ctx context.Context) error {
		pods, err := w.pods(ctx, workload)
		if err != nil {
			return err
		}
		ready := 0
		for _, pod := range pods {
			if _, status, _ := stateOf(pod); status == corev1.ConditionTrue {
				ready++
			}
		}
		if ready != count || len(pods) != count {
			return fmt.Errorf("%d of %d are ready, want %d", ready, len(pods), count)
		}
		return nil
	})
}

// stateOf returns what a pod's status says: whether it is ready, and the reason why its first container waits.
func stateOf(pod corev1.Pod) (phase corev1.PodPhase, ready corev1.ConditionStatus, waiting string) {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			ready = condition.Status
		}
	}
	if s := pod.Status.ContainerStatuses; len(s) > 0 && s[0].State.Waiting != nil {
		waiting = s[0].State.Waiting.Reason
	}
	return pod.Status.Phase, ready, waiting
}
