package server

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// TestColumns compares what columns say with what kubectl shows of the same object on a cluster.
func TestColumns(t *testing.T) {
	waiting := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}
	pod := func(state corev1.ContainerState, meta metav1.ObjectMeta) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: meta,
			Spec:       corev1.PodSpec{Containers: make([]corev1.Container, 2)},
			Status: corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{
				{Ready: true, RestartCount: 1}, {State: state, RestartCount: 2},
			}},
		}
	}
	ports := []corev1.ServicePort{{Port: 80, NodePort: 30080, Protocol: "TCP"}, {Port: 53, Protocol: "UDP"}}
	loadBalancer := corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, ClusterIP: "10.0.0.1", Ports: ports}
	complete := []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	rules := []networkingv1.IngressRule{{Host: "a.example.com"}, {Host: "b.example.com"}}
	for _, c := range []struct {
		object runtime.Object
		want   string
	}{
		{pod(waiting, metav1.ObjectMeta{}), "[{Ready 1/2} {Status ImagePullBackOff} {Restarts 3}]"},
		{pod(waiting, metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{}}),
			"[{Ready 1/2} {Status Terminating} {Restarts 3}]"},
		{pod(corev1.ContainerState{}, metav1.ObjectMeta{}), "[{Ready 1/2} {Status Pending} {Restarts 3}]"},
		{&corev1.Service{Spec: loadBalancer},
			"[{Type LoadBalancer} {Cluster-IP 10.0.0.1} {External-IP <pending>} {Port(s) 80:30080/TCP,53/UDP}]"},
		{&appsv1.Deployment{Status: appsv1.DeploymentStatus{ReadyReplicas: 1, UpdatedReplicas: 2}},
			"[{Ready 1/1} {Up-to-date 2} {Available 0}]"},
		{&batchv1.Job{Status: batchv1.JobStatus{Succeeded: 1, Conditions: complete}},
			"[{Status Complete} {Completions 1/1}]"},
		{&batchv1.Job{Spec: batchv1.JobSpec{Suspend: ptr.To(true)}}, "[{Status Suspended} {Completions 0/1}]"},
		{&corev1.Node{Spec: corev1.NodeSpec{Unschedulable: true}}, "[{Status NotReady,SchedulingDisabled}]"},
		{&networkingv1.Ingress{Spec: networkingv1.IngressSpec{Rules: rules}},
			"[{Class <none>} {Hosts a.example.com,b.example.com}]"},
	} {
		if got := fmt.Sprint(columnsOf(c.object)); got != c.want {
			t.Errorf("the columns of %T are %s, want %s", c.object, got, c.want)
		}
	}
}

// TestHeaders has an object of each kind without values.
func TestHeaders(t *testing.T) {
	for _, k := range kinds() {
		headers := tables{k.object()}.headers()
		if first, last := headers[0].Name, headers[len(headers)-1].Name; first != "Name" || last != "Age" {
			t.Errorf("the columns of %s are from %s to %s, want from Name to Age", k.Kind, first, last)
		}
	}
}
