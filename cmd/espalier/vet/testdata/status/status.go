// Package status has nodes that replace the status of their resource, and such that set their own fields.
package status

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/reconcilers"
)

type (
	result  = reconcilers.Result
	syncing = reconcilers.SyncReconciler[*corev1.Pod]
)

// Direct, in a literal.
var _ = &reconcilers.SyncReconciler[*corev1.Pod]{
	Sync: func(_ context.Context, pod *corev1.Pod) error {
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning} // want `given to Sync replaces the status as a whole`
		return nil
	},
}

// A function of the package, through helpers: one makes the status, one sets it.
var _ = espalier.Runs("Helpers", helped)

func helped(_ context.Context, pod *corev1.Pod) error {
	set(pod, computed("10.0.0.1"))
	return nil
}

func computed(ip string) corev1.PodStatus {
	status := corev1.PodStatus{}
	status.PodIP = ip
	return status
}

func set(pod *corev1.Pod, status corev1.PodStatus) {
	pod.Status = status // want `given to Runs replaces`
}

// A method value, in a field of an embedded alias.
type node struct {
	syncing
	ready bool
}

func (n *node) sync(_ context.Context, pod *corev1.Pod) (result, error) {
	status := &pod.Status
	*status = corev1.PodStatus{} // want `given to SyncWithResult replaces`
	return result{}, nil
}

func newNode() *node {
	n := &node{}
	n.SyncWithResult = n.sync
	return n
}

// A closure that a function returns, with a closure in it.
var _ = espalier.Owns("Deployment", desired).Observes(observe(3))

func desired(context.Context, *corev1.Pod) (*appsv1.Deployment, error) { return nil, nil }

func observe(n int) func(context.Context, *corev1.Pod, *appsv1.Deployment) error {
	return func(_ context.Context, pod *corev1.Pod, live *appsv1.Deployment) error {
		set := func(message string) {
			pod.Status = corev1.PodStatus{Message: message, Phase: corev1.PodPhase(live.Status.String())} // want `given to Observes replaces`
		}
		set("observed")
		return nil
	}
}

// A node of one's own.
type own struct{}

func (own) Reconcile(_ context.Context, pod *corev1.Pod) (reconcilers.Result, error) {
	var empty corev1.PodStatus
	pod.Status = empty // want `given to Reconcile replaces`
	return reconcilers.Result{}, nil
}

// A generic function of the package.
func reflects[C client.Object](
	reflect func(context.Context, *corev1.Pod, C, error),
) *reconcilers.ChildReconciler[*corev1.Pod, C, client.ObjectList] {
	return &reconcilers.ChildReconciler[*corev1.Pod, C, client.ObjectList]{ReflectChildStatusOnParent: reflect}
}

var _ = reflects(func(_ context.Context, pod *corev1.Pod, child *corev1.Secret, err error) {
	if child == nil {
		pod.Status = corev1.PodStatus{Phase: corev1.PodPending} // want `given to ReflectChildStatusOnParent replaces`
		return
	}
	pod.Status.Phase = corev1.PodRunning
})

// By the address of the status, and in a literal that is called at once.
var _ = espalier.When("When", func(_ context.Context, pod *corev1.Pod) bool {
	reset(&pod.Status)
	func(inner *corev1.Pod) {
		inner.Status = *new(corev1.PodStatus) // want `given to When replaces`
	}(pod)
	return true
})

func reset(status *corev1.PodStatus) {
	*status = corev1.PodStatus{} // want `given to When replaces`
}

// What follows is right.

var _ = espalier.Runs("Fields", func(_ context.Context, pod *corev1.Pod) error {
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: "Ready"}}
	return nil
})

var _ = espalier.Runs("Copies", func(_ context.Context, pod *corev1.Pod) error {
	status := pod.Status
	status.Phase = corev1.PodRunning
	pod.Status = status
	pod.Status = *pod.Status.DeepCopy()
	pod.Status = changed(pod.Status)
	return nil
})

func changed(status corev1.PodStatus) corev1.PodStatus {
	status.Message = "changed"
	return status
}

var _ = espalier.Runs("Keeps", func(_ context.Context, pod *corev1.Pod) error {
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: pod.Status.Conditions}
	return nil
})

var _ = espalier.Runs("Others", func(_ context.Context, pod *corev1.Pod) error {
	other := pod.DeepCopy()
	other.Status = corev1.PodStatus{}
	made := &corev1.Pod{}
	made.Status = corev1.PodStatus{Phase: pod.Status.Phase}
	return nil
})

func notANode(pod *corev1.Pod) { pod.Status = corev1.PodStatus{} }
