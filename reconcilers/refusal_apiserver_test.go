package reconcilers_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type jobNode = reconcilers.ChildReconciler[*resources.Widget, *batchv1.Job, *batchv1.JobList]

// jobChild runs the image of the spec in a Job, whose template cannot be changed.
func jobChild(manager reconcilers.ObjectManager[*batchv1.Job]) *jobNode {
	return &jobNode{
		DesiredChild: func(_ context.Context, w *resources.Widget) (*batchv1.Job, error) {
			return &batchv1.Job{
				ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name},
				Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever,
					Containers:    []corev1.Container{{Name: "main", Image: w.Spec.Fields["image"]}},
				}}},
			}, nil
		},
		ChildObjectManager: manager,
		ReflectChildStatusOnParent: func(ctx context.Context, w *resources.Widget, _ *batchv1.Job, err error) {
			if err != nil {
				w.Status.MarkChildNotReady(ctx, "Failed", err.Error())
				return
			}
			w.Status.MarkChildReady(ctx)
		},
	}
}

// jobManagers are the two ways to write a Job.
func jobManagers() map[string]reconcilers.ObjectManager[*batchv1.Job] {
	return map[string]reconcilers.ObjectManager[*batchv1.Job]{
		"updated": &reconcilers.UpdatingObjectManager[*batchv1.Job]{
			MergeBeforeUpdate: func(current, desired *batchv1.Job) {
				// The server adds labels to the template, which an update has to keep.
				current.Spec.Template.Spec = desired.Spec.Template.Spec
			},
		},
		"applied": &reconcilers.ApplyingObjectManager[*batchv1.Job]{FieldManager: "widgets"},
	}
}

// setImage changes the resource.
func setImage(t *testing.T, c client.Client, w *resources.Widget, image string) {
	t.Helper()
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"fields":{"image":%q}}}`, image))
	if err := c.Patch(t.Context(), w, patch); err != nil {
		t.Fatal(err)
	}
}

// childMessage returns an error unless the message of the child's condition is there.
func childMessage(ctx context.Context, c client.Client, w *resources.Widget, contains string) error {
	if err := c.Get(ctx, client.ObjectKeyFromObject(w), w); err != nil {
		return err
	}
	condition := w.Status.GetCondition(resources.WidgetChildReady)
	if condition == nil || !strings.Contains(condition.Message, contains) {
		return fmt.Errorf("the condition is %v", condition)
	}
	return nil
}

// reconcileAgain changes an annotation of the resource some times, each time when the last change was reconciled.
func reconcileAgain(t *testing.T, c client.Client, w *resources.Widget, requests *atomic.Int64, times int) {
	t.Helper()
	for i := range times {
		before := requests.Load()
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"again":"%d"}}}`, i)
		if err := c.Patch(t.Context(), w, client.RawPatch("application/merge-patch+json", patch)); err != nil {
			t.Fatal(err)
		}
		eventually(t, "not reconciled", func(context.Context) error {
			if requests.Load() == before {
				return fmt.Errorf("%d requests", before)
			}
			return nil
		})
	}
}

// counted counts the requests for a Job.
func counted(node *jobNode) (_ *jobNode, requests *atomic.Int64) {
	requests = &atomic.Int64{}
	desired := node.DesiredChild
	node.DesiredChild = func(ctx context.Context, w *resources.Widget) (*batchv1.Job, error) {
		requests.Add(1)
		return desired(ctx, w)
	}
	return node, requests
}

// A Job whose template cannot be changed is refused once, however often its resource is reconciled.
func TestImmutableJobIsRefusedOnce(t *testing.T) {
	for name, manager := range jobManagers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := live(t)
			node, requests := counted(jobChild(manager))
			op, roots := startOperator(t, treeOf(node))
			w := op.createWidget(t, c)
			eventually(t, "not ready", func(ctx context.Context) error { return isReady(ctx, c, w) })
			reconcileSteadily(t, op, roots[0], w)

			op.requests.Reset()
			setImage(t, c, w, "example.com/app:2")
			eventually(t, "not refused", func(ctx context.Context) error { return childMessage(ctx, c, w, "field is immutable") })
			reconcileAgain(t, c, w, requests, 10)
			op.flushEvents(t, w)
			writes := 0
			for request, n := range op.requests.Counts() {
				if strings.Contains(request.Path, "/jobs/") && (request.Verb == "update" || request.Verb == "patch") {
					writes += n
				}
			}
			// The first apply takes two requests, of which the second is refused.
			if most := map[string]int{"updated": 1, "applied": 2}[name]; writes != most {
				t.Errorf("the Job was written %d times, want %d:\n%s", writes, most, op.requests)
			}
			var events corev1.EventList
			if err := c.List(t.Context(), &events, client.InNamespace(w.Namespace)); err != nil {
				t.Fatal(err)
			}
			for _, event := range events.Items {
				if event.Reason == "UpdateFailed" && event.Count > 1 {
					t.Errorf("the event was recorded %d times, want once: %s", event.Count, event.Message)
				}
			}
		})
	}
}

// A create that is refused as invalid is not sent again either.
func TestInvalidChildIsRefusedOnce(t *testing.T) {
	t.Parallel()
	c := live(t)
	node := jobChild(jobManagers()["applied"])
	node.DesiredChild = func(_ context.Context, w *resources.Widget) (*batchv1.Job, error) {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name}}, nil
	}
	node, requests := counted(node)
	op, _ := startOperator(t, treeOf(node))
	w := op.createWidget(t, c)
	eventually(t, "not refused", func(ctx context.Context) error {
		return childMessage(ctx, c, w, "spec.template.spec.containers: Required value")
	})
	reconcileAgain(t, c, w, requests, 10)
	create := controlplane.Request{Verb: "create", Path: "/apis/batch/v1/namespaces/" + w.Namespace + "/jobs"}
	if n := op.requests.Counts()[create]; n != 1 {
		t.Errorf("the Job was sent %d times, want once:\n%s", n, op.requests)
	}
}
