package health_test

import (
	"fmt"

	"github.com/espalier-dev/espalier/health"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func ExampleWithPods() {
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Generation: 1},
		Spec:       appsv1.DeploymentSpec{Selector: metav1.SetAsLabelSelector(map[string]string{"app": "web"})},
		Status:     appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1},
	}
	h := health.Of(deployment)
	fmt.Println(h.State, h.Grade, h.Message)

	pods := []corev1.Pod{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-1", Labels: map[string]string{"app": "web"}},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			Name: "server", Image: "web:latst",
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}},
		}}},
	}}
	h = health.WithPods(deployment, h, pods)
	fmt.Println(h.State, h.Reason, h.Message)
	fmt.Println(h.Attributes)
	// Output:
	// Creating Down 0 of 1 replica available
	// Failing ImagePullBackOff 0 of 1 replica available: container server cannot pull its image "web:latst"
	// map[container:server pod:web-1 reason:ImagePullBackOff]
}
