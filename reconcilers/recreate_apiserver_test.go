package reconcilers_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A Job is created again for another template, but not for one that no Job may have.
func TestImmutableJobIsRecreated(t *testing.T) {
	for name, manager := range jobManagers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := live(t)
			node := jobChild(manager)
			node.RecreateImmutable = true
			desired := node.DesiredChild
			node.DesiredChild = func(ctx context.Context, w *resources.Widget) (*batchv1.Job, error) {
				job, err := desired(ctx, w)
				if w.Spec.Fields["image"] == "example.com/app:3" {
					// No Job may have that.
					job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyAlways
				}
				return job, err
			}
			op, roots := startOperator(t, treeOf(node))
			w := op.createWidget(t, c)
			key := client.ObjectKeyFromObject(w)
			eventually(t, "not ready", func(ctx context.Context) error { return isReady(ctx, c, w) })
			job := &batchv1.Job{}
			if err := c.Get(t.Context(), key, job); err != nil {
				t.Fatal(err)
			}
			first := job.UID

			setImage(t, c, w, "example.com/app:2")
			eventually(t, "not created again", func(ctx context.Context) error {
				job = &batchv1.Job{}
				if err := c.Get(ctx, key, job); err != nil {
					return err
				}
				if image := job.Spec.Template.Spec.Containers[0].Image; image != "example.com/app:2" {
					return fmt.Errorf("image is %s", image)
				}
				return isReady(ctx, c, w)
			})
			if job.UID == first {
				t.Errorf("the Job has its old UID %s, want another", job.UID)
			}
			reconcileSteadily(t, op, roots[0], w)

			setImage(t, c, w, "example.com/app:3")
			eventually(t, "not refused", func(ctx context.Context) error {
				return childMessage(ctx, c, w, "spec.template.spec.restartPolicy")
			})
			invalid := &batchv1.Job{}
			if err := c.Get(t.Context(), key, invalid); err != nil || invalid.UID != job.UID || invalid.DeletionTimestamp != nil {
				t.Errorf("the Job is %v (%v), want it as it was, with the UID %s", invalid.ObjectMeta, err, job.UID)
			}
		})
	}
}

// A Deployment is created again for another selector.
func TestImmutableDeploymentIsRecreated(t *testing.T) {
	t.Parallel()
	c := live(t)
	node := deploymentChild()
	node.RecreateImmutable = true
	desired := node.DesiredChild
	node.DesiredChild = func(ctx context.Context, w *resources.Widget) (*appsv1.Deployment, error) {
		child, err := desired(ctx, w)
		labels := map[string]string{"version": w.Spec.Fields["version"]}
		child.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		child.Spec.Template.Labels = labels
		return child, err
	}
	op, roots := startOperator(t, func(config reconcilers.Config) *widgetRoot { return &widgetRoot{Config: config, Reconciler: node} })
	w := op.createWidget(t, c)
	eventually(t, "not ready", func(ctx context.Context) error { return isReady(ctx, c, w) })
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"fields":{"version":"2"}}}`))
	if err := c.Patch(t.Context(), w, patch); err != nil {
		t.Fatal(err)
	}
	eventually(t, "not created again", func(ctx context.Context) error {
		child := &appsv1.Deployment{}
		if err := c.Get(ctx, client.ObjectKeyFromObject(w), child); err != nil {
			return err
		}
		if version := child.Spec.Selector.MatchLabels["version"]; version != "2" {
			return fmt.Errorf("version is %s", version)
		}
		return isReady(ctx, c, w)
	})
	reconcileSteadily(t, op, roots[0], w)
}
