package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/feature"
	"github.com/espalier-dev/espalier/feature/gate"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/reconcilers"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// known is a gate that is known to be on or off.
type known bool

func (g known) Enabled() (bool, error) { return bool(g), nil }

// shop returns a feature of the nodes, whose condition is ShopReady. Its grace period does not end in a test.
func shop(tree ...reconcilers.SubReconciler[*App]) *feature.Feature[*App] {
	return &feature.Feature[*App]{
		Name:        "Shop",
		Gate:        func(_ context.Context, app *App) gate.Gate { return known(!app.Spec.Disabled) },
		Suspended:   func(_ context.Context, app *App) (bool, error) { return app.Spec.Suspended, nil },
		GracePeriod: time.Hour,
		Pods:        true,
		Reconciler:  espalier.Steps(tree...),
	}
}

func TestFeatureRollsOut(t *testing.T) {
	w := operate(t, shop(espalier.Owns("Web", desiredDeployment), espalier.Owns("Agent", desiredDaemonSet)))
	app := w.app(t, nil)

	w.untilShop(t, app, apis.StateHealthy, metav1.ConditionTrue)
	w.untilPods(t, "web", replicas)
	w.untilPods(t, "agent", nodes)
	w.untilIdle(t, app)

	w.set(t, app, func(spec *AppSpec) { spec.Image = "shop:2" })
	until(t, w, deployment(), "the new image", rolledOut("shop:2", replicas))
	w.untilShop(t, app, apis.StateHealthy, metav1.ConditionTrue)
	w.untilIdle(t, app)
}

// TestFeatureSaysWhyPodsFail also shows that nobody has to wait for the deadline of the Deployment, ten minutes.
func TestFeatureSaysWhyPodsFail(t *testing.T) {
	for pods, cause := range map[string]string{
		controlplane.PodCannotPullImage: `container web cannot pull its image "shop:broken"`,
		controlplane.PodCrashes:         "container web crashes again and again",
	} {
		t.Run(pods, func(t *testing.T) {
			w := operate(t, shop(espalier.Owns("Web", desiredDeployment)))
			app := w.app(t, nil)
			w.untilShop(t, app, apis.StateHealthy, metav1.ConditionTrue)

			w.set(t, app, func(spec *AppSpec) { spec.Image, spec.Pods = "shop:broken", pods })
			condition := w.untilShop(t, app, apis.StateFailing, metav1.ConditionFalse)
			if !strings.Contains(condition.Message, cause) {
				t.Errorf("the message does not say %q: %s", cause, condition.Message)
			}
			w.checkCulprit(t, app, pods)
			w.untilIdle(t, app)

			w.set(t, app, func(spec *AppSpec) { spec.Image, spec.Pods = "shop:mended", "" })
			w.untilShop(t, app, apis.StateHealthy, metav1.ConditionTrue)
			w.untilPods(t, "web", replicas)
			if left := app.Status.Features[0].Dependents; len(left) > 0 {
				t.Errorf("the record still names %+v", left)
			}
		})
	}
}

// checkCulprit checks that the record of the feature names a pod of the Deployment, and why it fails.
func (w *world) checkCulprit(t *testing.T, app *App, reason string) {
	t.Helper()
	if len(app.Status.Features) != 1 || len(app.Status.Features[0].Dependents) != 1 {
		t.Fatalf("the records are %+v, want one of one object", app.Status.Features)
	}
	d := app.Status.Features[0].Dependents[0]
	if d.Kind != "Deployment" || d.Name != "web" || d.State != apis.StateFailing || d.Reason != reason {
		t.Errorf("the record of the object is %+v", d)
	}
	if d.Attributes["container"] != "web" || !strings.HasPrefix(d.Attributes["pod"], "web-") {
		t.Errorf("to blame is %v", d.Attributes)
	}
}

func TestFeatureIsSuspendedAndResumed(t *testing.T) {
	w := operate(t, shop(
		espalier.Owns("Web", desiredDeployment),
		espalier.Owns("Agent", desiredDaemonSet),
		espalier.Owns("Backup", desiredCronJob),
	))
	app := w.app(t, nil)
	w.untilShop(t, app, apis.StateHealthy, metav1.ConditionTrue)
	created := deployment()
	until(t, w, created, "the Deployment", nil)

	for range 2 {
		w.set(t, app, func(spec *AppSpec) { spec.Suspended = true })
		w.untilReason(t, app, "ShopReady", string(apis.StateSuspended))
		// The condition must not say so before it is true.
		until(t, w, deployment(), "no replicas", rolledOut("shop:1", 0))
		until(t, w, cronJob(), "the CronJob is suspended", suspended(true))
		w.untilGone(t, daemonSet())
		for _, workload := range []string{"web", "agent"} {
			w.untilPods(t, workload, 0)
		}
		w.untilIdle(t, app)

		w.set(t, app, func(spec *AppSpec) { spec.Suspended = false })
		w.untilShop(t, app, apis.StateHealthy, metav1.ConditionTrue)
		resumed := deployment()
		until(t, w, resumed, "the replicas", rolledOut("shop:1", replicas))
		if resumed.UID != created.UID {
			t.Error("the Deployment is another one")
		}
		until(t, w, cronJob(), "the CronJob is not suspended", suspended(false))
		w.untilPods(t, "web", replicas)
		w.untilPods(t, "agent", nodes)
		w.untilIdle(t, app)
	}
}

func suspended(want bool) func(*batchv1.CronJob) string {
	return func(c *batchv1.CronJob) string {
		if c.Spec.Suspend == nil || *c.Spec.Suspend != want {
			return fmt.Sprintf("suspend is not %t", want)
		}
		return ""
	}
}

// TestFeatureDoesNotScale is about a Deployment that a HorizontalPodAutoscaler scales: its replicas are not desired.
func TestFeatureDoesNotScale(t *testing.T) {
	w := operate(t, shop(espalier.Owns("Web", desiredScaled)))
	app := w.app(t, nil)
	w.untilShop(t, app, apis.StateHealthy, metav1.ConditionTrue)
	w.untilIdle(t, app)

	w.requests.Reset()
	w.scale(t, 4)
	until(t, w, deployment(), "the replicas", rolledOut("shop:1", 4))
	w.untilShop(t, app, apis.StateHealthy, metav1.ConditionTrue)
	if writes := w.writesOf("deployments"); len(writes) > 0 {
		t.Errorf("the operator wrote: %s", strings.Join(writes, ", "))
	}
	w.untilIdle(t, app)

	w.set(t, app, func(spec *AppSpec) { spec.Suspended = true })
	w.untilReason(t, app, "ShopReady", string(apis.StateSuspended))
	w.untilPods(t, "web", 0)
	w.untilIdle(t, app)

	// Who scales does not scale what has no replicas, so there has to be one again.
	w.set(t, app, func(spec *AppSpec) { spec.Suspended = false })
	w.untilShop(t, app, apis.StateHealthy, metav1.ConditionTrue)
	until(t, w, deployment(), "a replica", func(d *appsv1.Deployment) string {
		if d.Status.ReadyReplicas == 0 {
			return fmt.Sprintf("it is %+v", d.Status)
		}
		return ""
	})
	w.requests.Reset()
	w.scale(t, 3)
	until(t, w, deployment(), "the replicas", rolledOut("shop:1", 3))
	w.untilShop(t, app, apis.StateHealthy, metav1.ConditionTrue)
	if writes := w.writesOf("deployments"); len(writes) > 0 {
		t.Errorf("after it was resumed, the operator wrote: %s", strings.Join(writes, ", "))
	}
}

func TestFeatureOfJob(t *testing.T) {
	t.Run("completes", func(t *testing.T) {
		w := operate(t, shop(espalier.Owns("Migration", desiredJob)))
		app := w.app(t, nil)
		w.untilShop(t, app, apis.StateHealthy, metav1.ConditionTrue)
		until(t, w, job(), "the Job has succeeded", func(job *batchv1.Job) string {
			if job.Status.Succeeded != 1 {
				return fmt.Sprintf("it is %+v", job.Status)
			}
			return ""
		})
		w.untilIdle(t, app)
	})
	t.Run("fails", func(t *testing.T) {
		w := operate(t, shop(espalier.Owns("Migration", desiredJob)))
		app := w.app(t, func(app *App) { app.Spec.Pods = controlplane.PodFails })
		w.untilShop(t, app, apis.StateTaskFailing, metav1.ConditionFalse)
		w.untilIdle(t, app)
	})
	t.Run("is suspended while it runs", func(t *testing.T) {
		w := operate(t, shop(espalier.Owns("Migration", desiredJob)))
		app := w.app(t, func(app *App) { app.Spec.Pods = controlplane.PodRuns })
		w.untilShop(t, app, apis.StateTaskRunning, metav1.ConditionFalse)
		w.untilPods(t, "migration", 1)

		w.set(t, app, func(spec *AppSpec) { spec.Suspended = true })
		w.untilReason(t, app, "ShopReady", string(apis.StateSuspended))
		w.untilPods(t, "migration", 0)
		w.untilIdle(t, app)

		w.set(t, app, func(spec *AppSpec) { spec.Suspended = false })
		w.untilShop(t, app, apis.StateTaskRunning, metav1.ConditionFalse)
		w.untilPods(t, "migration", 1)
	})
}

func TestFeatureIsDisabled(t *testing.T) {
	w := operate(t, shop(espalier.Owns("Web", desiredDeployment), espalier.Owns("Agent", desiredDaemonSet)))
	app := w.app(t, nil)
	w.untilShop(t, app, apis.StateHealthy, metav1.ConditionTrue)

	w.set(t, app, func(spec *AppSpec) { spec.Disabled = true })
	w.untilShop(t, app, apis.StateDisabled, metav1.ConditionTrue)
	w.untilGone(t, deployment())
	w.untilGone(t, daemonSet())
	w.untilPods(t, "web", 0)
	w.untilIdle(t, app)

	w.set(t, app, func(spec *AppSpec) { spec.Disabled = false })
	w.untilShop(t, app, apis.StateHealthy, metav1.ConditionTrue)
	w.untilPods(t, "web", replicas)
}

// untilShop waits until the condition of the feature has a reason, checks its status, and returns it.
func (w *world) untilShop(t *testing.T, app *App, reason apis.State, status metav1.ConditionStatus) metav1.Condition {
	t.Helper()
	condition := w.untilReason(t, app, "ShopReady", string(reason))
	if condition.Status != status {
		t.Errorf("the condition is %+v, want the status %s", condition, status)
	}
	return condition
}
