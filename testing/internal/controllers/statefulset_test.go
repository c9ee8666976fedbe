package controllers_test

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/espalier-dev/espalier/testing/internal/controllers"
)

func statefulSet(name string, replicas int32) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{ObjectMeta: meta(name), Spec: appsv1.StatefulSetSpec{
		Replicas: &replicas, Selector: selector(name), Template: podTemplate(name), ServiceName: name,
		VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
			ObjectMeta: metav1.ObjectMeta{Name: "data"},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:   corev1.VolumeResourceRequirements{Requests: gigabytes(1)},
			},
		}},
	}}
}

// story returns the names of the Pods with their images and whether they are ready.
func (c cluster) story() string {
	c.Helper()
	var parts []string
	for _, pod := range c.pods() {
		part := pod.Name + "=" + strings.TrimPrefix(pod.Spec.Containers[0].Image, "example.com/")
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
				part += "!"
			}
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, " ")
}

// tells fails the test if the story of the Pods is not that.
func (c cluster) tells(want string) {
	c.Helper()
	if got := c.story(); got != want {
		c.Errorf("the Pods are %q, not %q", got, want)
	}
}

// TestStatefulSet creates, updates, scales and deletes a StatefulSet whose Pods come one after the other.
func TestStatefulSet(t *testing.T) {
	run(t, controllers.Options{Behavior: slow}, func(c cluster) {
		set := statefulSet("a", 3)
		c.create(set)
		time.Sleep(5 * time.Second)
		c.tells("a-0=a:1")
		time.Sleep(10 * time.Second)
		c.tells("a-0=a:1! a-1=a:1")
		time.Sleep(20 * time.Second)
		c.tells("a-0=a:1! a-1=a:1! a-2=a:1!")
		c.get(set)
		first := set.Status.CurrentRevision
		if s := set.Status; s.Replicas != 3 || s.ReadyReplicas != 3 || s.AvailableReplicas != 3 ||
			s.CurrentReplicas != 3 || s.UpdatedReplicas != 3 ||
			s.UpdateRevision != first || s.ObservedGeneration != set.Generation {
			t.Errorf("the status is %+v", s)
		}
		c.idle()

		set.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To(int32(1))
		set.Spec.Template.Spec.Containers[0].Image = "example.com/a:2"
		c.must(c.Update(c.ctx, set))
		time.Sleep(5 * time.Second)
		c.tells("a-0=a:1! a-1=a:1! a-2=a:2")
		time.Sleep(time.Minute)
		c.tells("a-0=a:1! a-1=a:2! a-2=a:2!")
		c.must(c.Delete(c.ctx, &corev1.Pod{ObjectMeta: meta("a-0")}))
		time.Sleep(time.Minute)
		c.tells("a-0=a:1! a-1=a:2! a-2=a:2!")
		c.get(set)
		if s := set.Status; s.CurrentReplicas != 1 || s.UpdatedReplicas != 2 || s.CurrentRevision != first ||
			s.UpdateRevision == first {
			t.Errorf("the status is %+v", s)
		}
		set.Spec.UpdateStrategy.RollingUpdate.Partition = nil
		set.Spec.Replicas = ptr.To(int32(2))
		c.must(c.Update(c.ctx, set))
		time.Sleep(time.Minute)
		c.tells("a-0=a:2! a-1=a:2!")
		c.get(set)
		if s := set.Status; s.CurrentRevision != s.UpdateRevision || s.Replicas != 2 || s.CurrentReplicas != 2 {
			t.Errorf("the status is %+v", s)
		}
		claims := &corev1.PersistentVolumeClaimList{}
		c.must(c.List(c.ctx, claims))
		if len(claims.Items) != 3 {
			t.Errorf("there are %d claims", len(claims.Items))
		}
		c.must(c.Delete(c.ctx, set))
		time.Sleep(time.Minute)
		c.tells("")
		c.idle()
	})
}

// TestStatefulSetRevision has the same template have the same revision, whether the StatefulSet began with it or not.
func TestStatefulSetRevision(t *testing.T) {
	revision := func(images ...string) string {
		set := statefulSet("a", 1)
		run(t, controllers.Options{}, func(c cluster) {
			for i, image := range images {
				set.Spec.Template.Spec.Containers[0].Image = image
				if i == 0 {
					c.create(set)
				} else {
					c.must(c.Update(c.ctx, set))
				}
				time.Sleep(time.Minute)
				c.get(set)
			}
		})
		return set.Status.CurrentRevision
	}
	if changed, begun := revision("a:1", "a:2"), revision("a:2"); changed != begun {
		t.Errorf("the revision after a change is %q, want %q as that of a StatefulSet that began like that", changed, begun)
	}
}

// TestDaemonSet creates and updates a DaemonSet, and adds a node.
func TestDaemonSet(t *testing.T) {
	run(t, controllers.Options{Behavior: slow, Nodes: []string{"n1", "n2"}}, func(c cluster) {
		set := &appsv1.DaemonSet{
			ObjectMeta: meta("a"), Spec: appsv1.DaemonSetSpec{Selector: selector("a"), Template: podTemplate("a")},
		}
		c.create(set)
		time.Sleep(time.Minute)
		status := func(want int32) {
			c.Helper()
			c.get(set)
			if s := set.Status; s.DesiredNumberScheduled != want || s.CurrentNumberScheduled != want ||
				s.NumberReady != want || s.NumberAvailable != want ||
				s.UpdatedNumberScheduled != want || s.NumberMisscheduled != 0 ||
				s.NumberUnavailable != 0 || s.ObservedGeneration != set.Generation {
				c.Errorf("the status is %+v", s)
			}
		}
		status(2)
		c.create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n3"}})
		time.Sleep(time.Minute)
		status(3)
		set.Spec.Template.Spec.Containers[0].Image = "example.com/a:2"
		c.must(c.Update(c.ctx, set))
		time.Sleep(5 * time.Second)
		if n := strings.Count(c.story(), "!"); n != 2 {
			c.Errorf("%d Pods are ready", n)
		}
		time.Sleep(time.Minute)
		status(3)
		nodes := map[string]bool{}
		for _, pod := range c.pods() {
			nodes[pod.Spec.NodeName] = pod.Spec.Containers[0].Image == "example.com/a:2"
		}
		if len(nodes) != 3 || !nodes["n1"] || !nodes["n2"] || !nodes["n3"] {
			c.Errorf("the nodes are %v", nodes)
		}
		c.idle()
		c.must(c.Delete(c.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n3"}}))
		time.Sleep(time.Minute)
		status(2)
	})
}
