package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestDeploymentRollsOut(t *testing.T) {
	w := operate(t, espalier.Owns("Web", desiredDeployment).Reports("WebReady"))
	app := w.app(t, nil)

	if got := w.untilReason(t, app, "WebReady", "Ready"); got.Status != metav1.ConditionTrue {
		t.Errorf("the condition is %+v", got)
	}
	w.untilPods(t, "web", replicas)
	w.untilIdle(t, app)

	w.set(t, app, func(spec *AppSpec) { spec.Image = "shop:2" })
	w.untilReason(t, app, "WebReady", "Ready")
	until(t, w, deployment(), "the new image", rolledOut("shop:2", replicas))
	w.untilPods(t, "web", replicas)
	w.untilIdle(t, app)
}

func TestDeploymentDoesNotRollOut(t *testing.T) {
	w := operate(t, espalier.Owns("Web", desiredDeployment).Reports("WebReady"))
	app := w.app(t, func(app *App) { app.Spec.Pods = controlplane.PodCannotPullImage })

	until(t, w, deployment(), "its pods exist", func(d *appsv1.Deployment) string {
		if d.Status.UnavailableReplicas != replicas {
			return fmt.Sprintf("it is %+v", d.Status)
		}
		return ""
	})
	if got := w.untilReason(t, app, "WebReady", "InProgress"); got.Status != metav1.ConditionFalse {
		t.Errorf("the condition is %+v", got)
	}
	w.untilIdle(t, app)

	w.set(t, app, func(spec *AppSpec) { spec.Pods = "" })
	w.untilReason(t, app, "WebReady", "Ready")
	w.untilPods(t, "web", replicas)
}

func TestScaledDeploymentKeepsItsReplicas(t *testing.T) {
	w := operate(t, espalier.Owns("Web", desiredScaled).Reports("WebReady"))
	app := w.app(t, nil)
	w.untilReason(t, app, "WebReady", "Ready")
	w.untilIdle(t, app)

	// No write means that nobody scales it back, not even for a moment.
	w.requests.Reset()
	w.scale(t, 4)
	until(t, w, deployment(), "the replicas", rolledOut("shop:1", 4))
	w.untilPods(t, "web", 4)
	w.untilReason(t, app, "WebReady", "Ready")
	if writes := w.writesOf("deployments"); len(writes) > 0 {
		t.Errorf("the operator wrote: %s", strings.Join(writes, ", "))
	}
	w.untilIdle(t, app)

	w.set(t, app, func(spec *AppSpec) { spec.Image = "shop:2" })
	until(t, w, deployment(), "the new image", rolledOut("shop:2", 4))
	w.untilReason(t, app, "WebReady", "Ready")
}

func TestJobCompletes(t *testing.T) {
	w := operate(t, espalier.Owns("Migration", desiredJob).Reports("MigrationReady"))
	app := w.app(t, nil)

	if got := w.untilReason(t, app, "MigrationReady", "Ready"); got.Status != metav1.ConditionTrue {
		t.Errorf("the condition is %+v", got)
	}
	w.untilIdle(t, app)
}

// rolledOut returns a check that all replicas have the image and are ready.
func rolledOut(image string, count int32) func(*appsv1.Deployment) string {
	return func(d *appsv1.Deployment) string {
		s, has := d.Status, d.Spec.Template.Spec.Containers[0].Image
		if has != image || s.ObservedGeneration != d.Generation || *d.Spec.Replicas != count || s.Replicas != count ||
			s.UpdatedReplicas != count || s.ReadyReplicas != count {
			return fmt.Sprintf("image %s, %d replicas, %+v", has, *d.Spec.Replicas, s)
		}
		return ""
	}
}

// scale does what the controller of a HorizontalPodAutoscaler does.
func (w *world) scale(t *testing.T, count int32) {
	t.Helper()
	d := deployment()
	d.Namespace = w.namespace
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: count}}
	if err := w.SubResource("scale").Update(t.Context(), d, client.WithSubResourceBody(scale)); err != nil {
		t.Fatal(err)
	}
}

// writesOf returns the writes of the operator, since the last reset, to objects of a resource.
func (w *world) writesOf(resource string) []string {
	var writes []string
	for request := range w.requests.Counts() {
		switch request.Verb {
		case "get", "list", "watch":
			continue
		}
		if strings.Contains(request.Path, "/"+resource+"/") {
			writes = append(writes, request.String())
		}
	}
	return writes
}
