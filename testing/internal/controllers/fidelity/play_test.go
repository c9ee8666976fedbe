package fidelity_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// play is a scenario that is being played.
type play struct {
	*testing.T
	client.Client
	namespace string
	// settle returns when the controllers have nothing more to do.
	settle func()
	mask   *mask
	record []string
	// wanted is the record to wait for; nil if what is there is recorded at once, as it is once something did not come.
	wanted []string
}

func (p *play) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// create creates objects in the namespace of the play.
func (p *play) create(objects ...client.Object) {
	p.Helper()
	for _, obj := range objects {
		if obj.GetNamespace() == "" {
			obj.SetNamespace(p.namespace)
		}
		p.must(p.Create(p.Context(), obj))
	}
}

// patch merges a change into an object.
func (p *play) patch(obj client.Object, body string) {
	p.Helper()
	p.must(p.Patch(p.Context(), obj, client.RawPatch(types.StrategicMergePatchType, []byte(body))))
}

func (p *play) delete(obj client.Object, policy metav1.DeletionPropagation) {
	p.Helper()
	p.must(p.Delete(p.Context(), obj, client.PropagationPolicy(policy)))
}

// free removes the finalizers of an object.
func (p *play) free(obj client.Object) {
	p.Helper()
	p.must(p.Patch(p.Context(), obj, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
}

// pods returns the Pods with an image that have not ended and are not being deleted, the oldest first.
func (p *play) pods(image string) []corev1.Pod {
	p.Helper()
	list := &corev1.PodList{}
	p.must(p.List(p.Context(), list, client.InNamespace(p.namespace)))
	pods := slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool {
		return pod.Spec.Containers[0].Image != image || pod.DeletionTimestamp != nil ||
			pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	})
	slices.SortFunc(pods, func(a, b corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	return pods
}

// ready has n of the Pods with an image become ready that are not.
func (p *play) ready(image string, n int) {
	p.Helper()
	var pods []corev1.Pod
	if !p.comes(func() bool {
		pods = slices.DeleteFunc(p.pods(image), func(pod corev1.Pod) bool {
			return pod.Status.Phase == corev1.PodRunning
		})
		return len(pods) >= n
	}) {
		p.Fatalf("there are %d Pods with the image %s, but %d are to become ready", len(pods), image, n)
	}
	for _, pod := range pods[:n] {
		now := metav1.Now()
		pod.Status.Phase = corev1.PodRunning
		pod.Status.StartTime = &now
		for _, kind := range []corev1.PodConditionType{corev1.PodScheduled, corev1.ContainersReady, corev1.PodReady} {
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
				Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now,
			})
		}
		p.setStatus(&pod)
	}
}

// end has n of the Pods with an image end.
func (p *play) end(image string, n int, phase corev1.PodPhase) {
	p.Helper()
	var pods []corev1.Pod
	if !p.comes(func() bool { pods = p.pods(image); return len(pods) >= n }) {
		p.Fatalf("there are %d Pods with the image %s, but %d are to end", len(pods), image, n)
	}
	for _, pod := range pods[:n] {
		now := metav1.Now()
		ended := &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: now, FinishedAt: now}
		if phase == corev1.PodFailed {
			ended.ExitCode, ended.Reason = 1, "Error"
		}
		pod.Status.Phase, pod.Status.Conditions = phase, nil
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: pod.Spec.Containers[0].Name, State: corev1.ContainerState{Terminated: ended},
		}}
		p.setStatus(&pod)
	}
}

// setStatus sets the status of a Pod also if somebody else has changed it meanwhile.
func (p *play) setStatus(pod *corev1.Pod) {
	p.Helper()
	status := pod.Status
	err := p.Status().Update(p.Context(), pod)
	for apierrors.IsConflict(err) {
		p.must(p.Get(p.Context(), client.ObjectKeyFromObject(pod), pod))
		pod.Status = status
		err = p.Status().Update(p.Context(), pod)
	}
	p.must(err)
}

// step records all objects after what was done.
func (p *play) step(name string) {
	p.Helper()
	p.settle()
	before := p.record
	p.comes(func() bool {
		p.record = append(append(slices.Clone(before), "== "+name), p.state()...)
		return isStartOf(p.record, p.wanted)
	})
}

// comes reports whether something holds. If there is a record to wait for, it waits for some minutes: on a busy
// machine, a controller may do nothing for a while although it is not done.
func (p *play) comes(holds func() bool) bool {
	p.Helper()
	for until := time.Now().Add(3 * time.Minute); !holds(); p.settle() {
		if p.wanted == nil || time.Now().After(until) {
			p.wanted = nil
			return false
		}
	}
	return true
}

// isStartOf reports whether a record begins with these lines, and another step or nothing follows.
func isStartOf(lines, record []string) bool {
	if len(lines) > len(record) || !slices.Equal(lines, record[:len(lines)]) {
		return false
	}
	return len(lines) == len(record) || strings.HasPrefix(record[len(lines)], "== ")
}

// revision returns the highest revision of all objects that are recorded.
func (p *play) revision() string {
	var all []string
	for _, list := range p.lists() {
		for _, obj := range list.Items {
			all = append(all, obj.GetResourceVersion())
		}
		all = append(all, "/")
	}
	return strings.Join(all, " ")
}

// settled waits until no object has changed for a time, in real time.
func (p *play) settled(quiet time.Duration) {
	p.Helper()
	last, since := "", time.Now()
	for time.Since(since) < quiet {
		if now := p.revision(); now != last {
			last, since = now, time.Now()
		}
		time.Sleep(100 * time.Millisecond)
	}
}
