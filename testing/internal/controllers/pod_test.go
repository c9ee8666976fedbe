package controllers_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/controllers"
)

// podStory tells a status in short: phase, state of the container, restarts, and the conditions that are false.
func podStory(pod *corev1.Pod) string {
	story := string(pod.Status.Phase)
	for _, s := range pod.Status.ContainerStatuses {
		switch {
		case s.State.Waiting != nil:
			story += " waiting " + s.State.Waiting.Reason
		case s.State.Running != nil:
			story += " running"
		case s.State.Terminated != nil:
			story += fmt.Sprintf(" %s %d", s.State.Terminated.Reason, s.State.Terminated.ExitCode)
		}
		story += fmt.Sprintf(" restarts %d", s.RestartCount)
	}
	for _, c := range pod.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			story += fmt.Sprintf(" !%s %s", c.Type, c.Reason)
		}
	}
	return story
}

func TestPod(t *testing.T) {
	type moment struct {
		after time.Duration
		story string
	}
	const unready = " !ContainersReady ContainersNotReady !Ready ContainersNotReady"
	tests := []struct {
		name     string
		policy   corev1.RestartPolicy
		behavior controllers.Behavior
		moments  []moment
	}{
		{"ready at once", "", controllers.Behavior{}, []moment{{time.Second, "Running running restarts 0"}}},
		{"ready after a time", "", controllers.Behavior{ReadyAfter: time.Hour}, []moment{
			{time.Minute, "Running running restarts 0" + unready},
			{time.Hour, "Running running restarts 0"},
		}},
		{"never ready", "", controllers.Behavior{NeverReady: true}, []moment{
			{100 * time.Hour, "Running running restarts 0" + unready},
		}},
		{"no image", "", controllers.Behavior{Waiting: "ImagePullBackOff"}, []moment{
			{time.Hour, "Pending waiting ImagePullBackOff restarts 0 !PodReadyToStartContainers " + unready},
		}},
		{"no node", "", controllers.Behavior{Unschedulable: "too large"}, []moment{
			{time.Hour, "Pending !PodScheduled Unschedulable"},
		}},
		// It runs for 30 seconds, and pauses for 10, 20, 40, 80, 160 and then always 300.
		{"crashes", "", controllers.Behavior{Exits: true, ExitCode: 1, RunFor: 30 * time.Second}, []moment{
			{20 * time.Second, "Running running restarts 0"},
			{15 * time.Second, "Running waiting CrashLoopBackOff restarts 0" + unready},
			{15 * time.Second, "Running running restarts 1"},
			{30 * time.Second, "Running waiting CrashLoopBackOff restarts 1" + unready},
			{15 * time.Second, "Running running restarts 2"},
			{10*time.Minute + 25*time.Second, "Running waiting CrashLoopBackOff restarts 5" + unready},
			{75 * time.Second, "Running running restarts 6"},
			{time.Hour, "Running waiting CrashLoopBackOff restarts 16" + unready},
		}},
		{"fails", corev1.RestartPolicyNever, controllers.Behavior{Exits: true, ExitCode: 3, RunFor: time.Minute},
			[]moment{
				{30 * time.Second, "Running running restarts 0"},
				{time.Hour, "Failed Error 3 restarts 0 !PodReadyToStartContainers " + unready},
			}},
		{"succeeds", corev1.RestartPolicyOnFailure, controllers.Behavior{}, []moment{
			{time.Second, "Succeeded Completed 0 restarts 0 !PodReadyToStartContainers " +
				" !ContainersReady PodCompleted !Ready PodCompleted"},
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			behavior := func(*corev1.Pod) controllers.Behavior { return test.behavior }
			run(t, controllers.Options{Behavior: behavior}, func(c cluster) {
				pod := &corev1.Pod{ObjectMeta: meta("a"), Spec: podTemplate("a").Spec}
				pod.Spec.RestartPolicy = test.policy
				c.create(pod)
				for i, m := range test.moments {
					time.Sleep(m.after)
					c.get(pod)
					if got := podStory(pod); got != m.story {
						c.Errorf("moment %d: %q, not %q", i, got, m.story)
					}
				}
			})
		})
	}
}

// TestPodChanges has the behavior of a Pod change while it runs.
func TestPodChanges(t *testing.T) {
	var healthy atomic.Bool
	behavior := func(*corev1.Pod) controllers.Behavior { return controllers.Behavior{NeverReady: !healthy.Load()} }
	run(t, controllers.Options{Behavior: behavior}, func(c cluster) {
		d := deployment("a", 1)
		c.create(d)
		time.Sleep(time.Minute)
		c.get(d)
		if d.Status.ReadyReplicas != 0 {
			c.Errorf("the status is %+v", d.Status)
		}
		for _, next := range []bool{true, false, true} {
			healthy.Store(next)
			c.Refresh()
			time.Sleep(time.Minute)
			c.get(d)
			if ready := d.Status.ReadyReplicas == 1; ready != next {
				c.Errorf("the status is %+v", d.Status)
			}
		}
	})
}

// TestPodStops deletes Pods, one of which takes a time to end.
func TestPodStops(t *testing.T) {
	behavior := func(pod *corev1.Pod) controllers.Behavior {
		if pod.Name == "slow" {
			return controllers.Behavior{StopAfter: time.Hour}
		}
		return controllers.Behavior{}
	}
	run(t, controllers.Options{Behavior: behavior}, func(c cluster) {
		fast := &corev1.Pod{ObjectMeta: meta("fast"), Spec: podTemplate("a").Spec}
		slow := &corev1.Pod{ObjectMeta: meta("slow"), Spec: podTemplate("a").Spec}
		for _, pod := range []*corev1.Pod{fast, slow} {
			c.create(pod)
			time.Sleep(time.Second)
			c.must(c.Delete(c.ctx, pod))
		}
		time.Sleep(25 * time.Second)
		c.gone(fast)
		c.get(slow)
		time.Sleep(10 * time.Second)
		c.gone(slow)
		c.idle()
	})
}

// TestAdoption orphans the Pods of a Deployment, which then belong to another one with the same selector.
func TestAdoption(t *testing.T) {
	run(t, controllers.Options{}, func(c cluster) {
		d := deployment("a", 2)
		c.create(d)
		time.Sleep(time.Second)
		before := c.pods()
		c.must(c.Delete(c.ctx, d, client.PropagationPolicy(metav1.DeletePropagationOrphan)))
		time.Sleep(time.Second)
		c.gone(d)
		d = deployment("a", 2)
		c.create(d)
		time.Sleep(time.Second)
		if sets := c.replicaSets(); len(sets) != 1 || !metav1.IsControlledBy(&sets[0], d) {
			c.Errorf("the sets are %v", sets)
		}
		if after := c.pods(); len(after) != 2 || after[0].UID != before[0].UID || after[1].UID != before[1].UID {
			c.Errorf("the Pods are %v", after)
		}
	})
}
