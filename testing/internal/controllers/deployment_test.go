package controllers_test

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/controllers"
)

// slow has Pods become ready after ten seconds, and those of the image "bad" never.
func slow(pod *corev1.Pod) controllers.Behavior {
	return controllers.Behavior{ReadyAfter: 10 * time.Second, NeverReady: pod.Spec.Containers[0].Image == "bad"}
}

// pods returns the Pods of the namespace default.
func (c cluster) pods() []corev1.Pod {
	c.Helper()
	list := &corev1.PodList{}
	c.must(c.List(c.ctx, list, client.InNamespace("default")))
	return list.Items
}

// condition returns status and reason of a condition of a Deployment.
func condition(d *appsv1.Deployment, kind appsv1.DeploymentConditionType) string {
	for _, c := range d.Status.Conditions {
		if c.Type == kind {
			return string(c.Status) + " " + c.Reason
		}
	}
	return ""
}

// expect compares a status without its conditions and generation.
func (c cluster) expect(d *appsv1.Deployment, want appsv1.DeploymentStatus, available, progressing string) {
	c.Helper()
	c.get(d)
	got := d.Status
	if got.ObservedGeneration != d.Generation || got.Replicas != want.Replicas ||
		got.UpdatedReplicas != want.UpdatedReplicas || got.ReadyReplicas != want.ReadyReplicas ||
		got.AvailableReplicas != want.AvailableReplicas ||
		got.UnavailableReplicas != want.UnavailableReplicas {
		c.Errorf("the status is %+v, not %+v", got, want)
	}
	if is := condition(d, appsv1.DeploymentAvailable); is != available {
		c.Errorf("Available is %q, not %q", is, available)
	}
	if is := condition(d, appsv1.DeploymentProgressing); is != progressing {
		c.Errorf("Progressing is %q, not %q", is, progressing)
	}
}

const (
	isAvailable   = "True MinimumReplicasAvailable"
	isUnavailable = "False MinimumReplicasUnavailable"
	isProgressed  = "True NewReplicaSetAvailable"
	isProgressing = "True ReplicaSetUpdated"
)

// TestDeployment creates, updates, rolls back, scales and deletes a Deployment.
func TestDeployment(t *testing.T) {
	run(t, controllers.Options{Behavior: slow}, func(c cluster) {
		d := deployment("a", 4)
		c.create(d)
		time.Sleep(time.Second)
		c.expect(d, appsv1.DeploymentStatus{Replicas: 4, UpdatedReplicas: 4, UnavailableReplicas: 4},
			isUnavailable, isProgressing)
		time.Sleep(10 * time.Second)
		done := appsv1.DeploymentStatus{Replicas: 4, UpdatedReplicas: 4, ReadyReplicas: 4, AvailableReplicas: 4}
		c.expect(d, done, isAvailable, isProgressed)
		if d.Annotations["deployment.kubernetes.io/revision"] != "1" {
			c.Errorf("the annotations are %v", d.Annotations)
		}
		c.idle()

		d.Spec.Template.Spec.Containers[0].Image = "example.com/a:2"
		c.must(c.Update(c.ctx, d))
		c.watchLimits(d, 5, 3, 50*time.Second)
		c.expect(d, done, isAvailable, isProgressed)
		if d.Annotations["deployment.kubernetes.io/revision"] != "2" {
			c.Errorf("the annotations are %v", d.Annotations)
		}

		d.Spec.Template.Spec.Containers[0].Image = "example.com/a:1"
		c.must(c.Update(c.ctx, d))
		time.Sleep(time.Minute)
		c.expect(d, done, isAvailable, isProgressed)
		sets := c.replicaSets()
		if d.Annotations["deployment.kubernetes.io/revision"] != "3" || len(sets) != 2 {
			c.Errorf("the annotations are %v, the sets %v", d.Annotations, sets)
		}

		d.Spec.Replicas = ptr.To(int32(2))
		c.must(c.Update(c.ctx, d))
		time.Sleep(time.Second)
		c.expect(d, appsv1.DeploymentStatus{Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2},
			isAvailable, isProgressed)
		c.must(c.Delete(c.ctx, d))
		time.Sleep(time.Minute)
		if pods, sets := c.pods(), c.replicaSets(); len(pods)+len(sets) > 0 {
			c.Errorf("there are %v and %v", pods, sets)
		}
		c.idle()
	})
}

func (c cluster) replicaSets() []appsv1.ReplicaSet {
	c.Helper()
	list := &appsv1.ReplicaSetList{}
	c.must(c.List(c.ctx, list, client.InNamespace("default")))
	return list.Items
}

// watchLimits looks at the Pods of a Deployment each tenth of a second: there are no more than a maximum, and no less
// are ready than a minimum.
func (c cluster) watchLimits(d *appsv1.Deployment, maximum, minimum int, period time.Duration) {
	c.Helper()
	most := 0
	for end := time.Now().Add(period); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		pods := slices.DeleteFunc(c.pods(), func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
		ready := 0
		for _, pod := range pods {
			if slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
			}) {
				ready++
			}
		}
		most = max(most, len(pods))
		if len(pods) > maximum || ready < minimum {
			c.Fatalf("%d Pods, %d of them ready", len(pods), ready)
		}
	}
	if most != maximum {
		c.Errorf("there were at most %d Pods", most)
	}
}

// TestDeploymentFails updates a Deployment to an image that never becomes ready.
func TestDeploymentFails(t *testing.T) {
	run(t, controllers.Options{Behavior: slow}, func(c cluster) {
		d := deployment("a", 4)
		d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{
			MaxSurge: ptr.To(intstr.FromInt32(1)), MaxUnavailable: ptr.To(intstr.FromInt32(0)),
		}
		c.create(d)
		time.Sleep(time.Minute)
		d.Spec.Template.Spec.Containers[0].Image = "bad"
		c.get(d)
		d.Spec.Template.Spec.Containers[0].Image = "bad"
		c.must(c.Update(c.ctx, d))
		time.Sleep(time.Minute)
		stuck := appsv1.DeploymentStatus{
			Replicas: 5, UpdatedReplicas: 1, ReadyReplicas: 4, AvailableReplicas: 4, UnavailableReplicas: 1,
		}
		c.expect(d, stuck, isAvailable, isProgressing)
		time.Sleep(10 * time.Minute)
		c.expect(d, stuck, isAvailable, "False ProgressDeadlineExceeded")
		c.idle()
		d.Spec.Template.Spec.Containers[0].Image = "good"
		c.must(c.Update(c.ctx, d))
		time.Sleep(time.Minute)
		c.expect(d, appsv1.DeploymentStatus{Replicas: 4, UpdatedReplicas: 4, ReadyReplicas: 4, AvailableReplicas: 4},
			isAvailable, isProgressed)
	})
}

// TestDeploymentRecreate updates a Deployment that ends all old Pods before it starts new ones.
func TestDeploymentRecreate(t *testing.T) {
	run(t, controllers.Options{Behavior: func(*corev1.Pod) controllers.Behavior {
		return controllers.Behavior{StopAfter: 5 * time.Second, ReadyAfter: 5 * time.Second}
	}}, func(c cluster) {
		d := deployment("a", 2)
		d.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
		d.Spec.MinReadySeconds = 10
		c.create(d)
		time.Sleep(10 * time.Second)
		c.expect(d, appsv1.DeploymentStatus{Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2, UnavailableReplicas: 2},
			isUnavailable, isProgressing)
		time.Sleep(10 * time.Second)
		done := appsv1.DeploymentStatus{Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2}
		c.expect(d, done, isAvailable, isProgressed)
		d.Spec.Template.Spec.Containers[0].Image = "new"
		c.must(c.Update(c.ctx, d))
		time.Sleep(4 * time.Second)
		for _, pod := range c.pods() {
			if pod.Spec.Containers[0].Image == "new" || pod.DeletionTimestamp == nil {
				c.Errorf("Pod %s is there before the old ones have ended", pod.Name)
			}
		}
		time.Sleep(time.Minute)
		c.expect(d, done, isAvailable, isProgressed)
	})
}
