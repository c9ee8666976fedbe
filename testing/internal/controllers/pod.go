package controllers

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The pause before a container starts again, see "Pod Lifecycle: How Pods handle problems with containers" in the
// Kubernetes documentation.
const (
	firstPause, longestPause = 10 * time.Second, 5 * time.Minute
	// recovered is how long a container runs until the next pause is the first again.
	recovered = 10 * time.Minute
)

// kubelet runs the Pods of all nodes. See "Pod Lifecycle" in the Kubernetes documentation.
func kubelet(options Options) *controller {
	return &controller{
		name: "kubelet", kinds: []schema.GroupKind{podKind},
		decide: func(v *view, _ key, obj client.Object, now time.Time) decision {
			pod := obj.(*corev1.Pod)
			switch {
			case pod.Spec.NodeName == "":
				return decision{}
			case pod.DeletionTimestamp != nil:
				return stopPod(pod, options.behavior(pod), now)
			case isFinished(pod):
				return decision{}
			}
			return runPod(pod, options.behavior(pod), now)
		},
	}
}

// stopPod removes a Pod that is being deleted when its containers have ended.
func stopPod(pod *corev1.Pod, behavior Behavior, now time.Time) decision {
	grace := time.Duration(ptr.Deref(pod.DeletionGracePeriodSeconds, 0)) * time.Second
	if grace == 0 {
		return decision{}
	}
	end := pod.DeletionTimestamp.Add(-grace).Add(min(grace, behavior.StopAfter))
	if now.Before(end) {
		return decision{next: end}
	}
	return decision{writes: []write{{verb: remove, object: pod, grace: new(int64(0))}}}
}

// runPod sets the status of a Pod, see the Kubernetes API reference, PodStatus v1 core.
func runPod(pod *corev1.Pod, behavior Behavior, now time.Time) decision {
	var d decision
	next := pod.DeepCopy()
	status := &next.Status
	status.ObservedGeneration = pod.Generation
	if status.StartTime == nil {
		status.StartTime = new(metav1.NewTime(now))
	}
	status.HostIP, status.HostIPs = "192.0.2.1", []corev1.HostIP{{IP: "192.0.2.1"}}
	containers := make([]corev1.ContainerStatus, len(pod.Spec.Containers))
	for i, container := range pod.Spec.Containers {
		containers[i] = statusOf(pod.Status.ContainerStatuses, container)
		r := containerRun{&containers[i], pod.Spec.RestartPolicy, behavior}
		r.run(&d, now)
	}
	status.ContainerStatuses = containers
	status.InitContainerStatuses = initStatuses(pod, behavior, now)
	if behavior.Waiting == "" {
		status.PodIP = address(pod)
		status.PodIPs = []corev1.PodIP{{IP: status.PodIP}}
	}
	status.Phase = phaseOf(containers)
	setPodConditions(next, now)
	d.add(changed(updateStatus, next, pod)...)
	return d
}

// statusOf returns the status of a container, a new one if there is none.
func statusOf(statuses []corev1.ContainerStatus, container corev1.Container) corev1.ContainerStatus {
	for i := range statuses {
		if statuses[i].Name == container.Name {
			return *statuses[i].DeepCopy()
		}
	}
	return corev1.ContainerStatus{
		Name: container.Name, Image: container.Image,
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}},
	}
}

// containerRun is a container with what decides about it.
type containerRun struct {
	*corev1.ContainerStatus
	policy   corev1.RestartPolicy
	behavior Behavior
}

// run takes the container to the state that it is in now.
func (c containerRun) run(d *decision, now time.Time) {
	if waiting := c.State.Waiting; waiting != nil {
		at := c.restartsAt()
		switch {
		case c.behavior.Waiting != "":
			c.State.Waiting = &corev1.ContainerStateWaiting{Reason: c.behavior.Waiting}
			return
		case now.Before(at):
			d.by(at)
			return
		}
		c.start(now)
	}
	if running := c.State.Running; running != nil {
		c.advance(running.StartedAt.Time, d, now)
	}
}

func (c containerRun) start(now time.Time) {
	if c.LastTerminationState.Terminated != nil {
		c.RestartCount++
	}
	c.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now)}}
	c.Started, c.Ready = new(true), false
	c.ImageID = "sim://" + c.Image
	c.ContainerID = fmt.Sprintf("sim://%s-%d", c.Name, c.RestartCount)
}

// advance has a container that runs become ready, or end.
func (c containerRun) advance(started time.Time, d *decision, now time.Time) {
	if c.behavior.Exits {
		end := started.Add(c.behavior.RunFor)
		if !now.Before(end) {
			c.end(started, d, now)
			return
		}
		d.by(end)
	}
	at := started.Add(c.behavior.ReadyAfter)
	c.Ready = !c.behavior.NeverReady && (c.behavior.ReadyAfter == 0 || !now.Before(at))
	if !c.Ready && !c.behavior.NeverReady {
		d.by(at)
	}
}

// end ends a container, which starts again if the restart policy of the Pod says so.
func (c containerRun) end(started time.Time, d *decision, now time.Time) {
	reason := "Completed"
	if c.behavior.ExitCode != 0 {
		reason = "Error"
	}
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: c.behavior.ExitCode, Reason: reason, ContainerID: c.ContainerID,
		StartedAt: metav1.NewTime(started), FinishedAt: metav1.NewTime(now),
	}}
	c.Ready, c.Started = false, new(false)
	if c.policy == corev1.RestartPolicyNever || c.policy == corev1.RestartPolicyOnFailure && c.behavior.ExitCode == 0 {
		c.State = ended
		return
	}
	c.LastTerminationState = ended
	c.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
		Reason:  "CrashLoopBackOff",
		Message: fmt.Sprintf("back-off %s restarting failed container=%s", c.pause(), c.Name),
	}}
	d.by(c.restartsAt())
}

// restartsAt is when a container that waits starts again.
func (c containerRun) restartsAt() time.Time {
	last := c.LastTerminationState.Terminated
	if last == nil {
		return time.Time{}
	}
	return last.FinishedAt.Add(c.pause())
}

// pause is the time that a container waits before it starts again.
func (c containerRun) pause() time.Duration {
	last := c.LastTerminationState.Terminated
	if last.FinishedAt.Sub(last.StartedAt.Time) >= recovered || c.RestartCount < 0 {
		return firstPause
	}
	return min(firstPause<<min(c.RestartCount, 10), longestPause)
}

// initStatuses are those of init containers, which end with success at once. Those that are restarted always run on.
func initStatuses(pod *corev1.Pod, behavior Behavior, now time.Time) []corev1.ContainerStatus {
	var statuses []corev1.ContainerStatus
	for _, container := range pod.Spec.InitContainers {
		s := statusOf(pod.Status.InitContainerStatuses, container)
		if s.State.Waiting != nil && behavior.Waiting == "" {
			at := metav1.NewTime(now)
			s.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				Reason: "Completed", StartedAt: at, FinishedAt: at,
			}}
			if ptr.Deref(container.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways {
				s.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}}
				s.Started = new(true)
			}
			s.Ready = true
		}
		statuses = append(statuses, s)
	}
	return statuses
}

// phaseOf returns the phase of a Pod by its containers, see the Kubernetes API reference, PodStatus v1 core.
func phaseOf(containers []corev1.ContainerStatus) corev1.PodPhase {
	ended, failed, begun := 0, false, false
	for _, c := range containers {
		if c.State.Terminated != nil {
			ended++
			failed = failed || c.State.Terminated.ExitCode != 0
		}
		begun = begun || c.State.Running != nil || c.LastTerminationState.Terminated != nil
	}
	switch {
	case ended == len(containers) && failed:
		return corev1.PodFailed
	case ended == len(containers):
		return corev1.PodSucceeded
	case begun || ended > 0:
		return corev1.PodRunning
	}
	return corev1.PodPending
}

// setPodConditions sets the conditions that follow from the containers.
func setPodConditions(pod *corev1.Pod, now time.Time) {
	status := &pod.Status
	set := func(kind corev1.PodConditionType, is bool, reason, message string) {
		if is {
			reason, message = "", ""
		}
		setPodCondition(status, kind, truth(is), reason, message, now)
	}
	var unready []string
	for _, c := range status.ContainerStatuses {
		if !c.Ready {
			unready = append(unready, c.Name)
		}
	}
	reason := "ContainersNotReady"
	message := fmt.Sprintf("containers with unready status: [%s]", strings.Join(unready, " "))
	if status.Phase == corev1.PodSucceeded {
		reason, message = "PodCompleted", ""
	}
	ready := len(unready) == 0
	set(corev1.PodReadyToStartContainers, status.PodIP != "" && !isFinished(pod), "", "")
	initialized := !slices.ContainsFunc(status.InitContainerStatuses, func(c corev1.ContainerStatus) bool {
		return !c.Ready
	})
	set(corev1.PodInitialized, initialized, "ContainersNotInitialized", "")
	set(corev1.ContainersReady, ready, reason, message)
	gates := slices.ContainsFunc(pod.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool {
		return !slices.ContainsFunc(status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == g.ConditionType && c.Status == corev1.ConditionTrue
		})
	})
	if ready && gates {
		reason, message = "ReadinessGatesNotReady", ""
	}
	set(corev1.PodReady, ready && !gates, reason, message)
	set(corev1.PodScheduled, true, "", "")
}

// setPodCondition sets a condition.
func setPodCondition(
	s *corev1.PodStatus, kind corev1.PodConditionType, status corev1.ConditionStatus, reason, message string,
	now time.Time,
) {
	c := corev1.PodCondition{
		Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(now),
	}
	i := slices.IndexFunc(s.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
	if i < 0 {
		s.Conditions = append(s.Conditions, c)
		return
	}
	if was := s.Conditions[i]; was.Status == status {
		c.LastTransitionTime = was.LastTransitionTime
	}
	c.ObservedGeneration = s.Conditions[i].ObservedGeneration
	s.Conditions[i] = c
}

// address is that of a Pod, by its UID.
func address(pod *corev1.Pod) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(pod.UID))
	n := h.Sum32()
	return fmt.Sprintf("10.%d.%d.%d", n>>16&0xff, n>>8&0xff, 1+n%254)
}
