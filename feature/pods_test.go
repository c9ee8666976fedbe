package feature_test

import (
	"context"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reporting is a node that reports an object.
type reporting struct{ object client.Object }

func (reporting) SetupWithManager(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
	return nil
}

func (r reporting) Reconcile(ctx context.Context, _ *Shop) (reconcilers.Result, error) {
	reconcilers.SupervisorOf(ctx).Observe(reconcilers.ObservedObject{
		Kind:      appsv1.SchemeGroupVersion.WithKind("Deployment"),
		Namespace: r.object.GetNamespace(), Name: r.object.GetName(), Object: r.object,
	})
	return reconcilers.Result{}, nil
}

// A pod that shows why a workload is not healthy is named.
func TestFeatureLooksAtPods(t *testing.T) {
	web := map[string]string{"app": "web"}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Generation: 1},
		Spec:       appsv1.DeploymentSpec{Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: web}},
		Status:     appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1},
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-1", Labels: web},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
			Name: "web", State: corev1.ContainerState{
				Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"},
			},
		}}},
	}
	s := shop.Object()
	config := rtesting.ExpectConfig{Name: "pods", Scheme: scheme, GivenObjects: []client.Object{pod}}
	ctx := reconcilers.StashConfig(t.Context(), config.Config())
	ctx = reconcilers.StashResourceType(ctx, &Shop{})
	ctx = reconcilers.StashRequest(ctx, reconcilers.Request{NamespacedName: client.ObjectKeyFromObject(s)})
	node := till(reporting{deployment})
	for _, pods := range []bool{false, true} {
		node.Pods = pods
		if _, err := node.Reconcile(ctx, s); err != nil {
			t.Fatal(err)
		}
		dependent := s.Status.Features[0].Dependents[0]
		if named := dependent.Attributes["pod"] == "web-1" && dependent.Reason == "ImagePullBackOff"; named != pods {
			t.Errorf("with Pods %t the dependent is %+v, want web-1 named only with them", pods, dependent)
		}
		if failing := s.Status.GetCondition("TillReady").Reason == string(apis.StateFailing); failing != pods {
			t.Errorf("with Pods %t the condition is %v, want it failing only with them", pods,
				s.Status.GetCondition("TillReady"))
		}
	}
}
