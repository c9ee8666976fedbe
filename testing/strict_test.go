package testing_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
	rtime "github.com/espalier-dev/espalier/time"
)

func readySince(at time.Time) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, LastTransitionTime: metav1.NewTime(at)}}
	}
}

func TestStrictDifferComparesTransitionTimes(t *testing.T) {
	since := func(at string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"lastTransitionTime": at}}}
	}
	now := time.Unix(1000, 0)
	for _, tc := range []struct {
		expected, actual client.Object
		differ           bool
	}{
		{pod.With(readySince(now)).Object(), pod.With(readySince(now.UTC())).Object(), false},
		{pod.With(readySince(now)).Object(), pod.With(readySince(now.Add(time.Second))).Object(), true},
		{since("a"), since("a"), false},
		{since("a"), since("b"), true},
	} {
		d := rtesting.StrictDiffer
		for method, diff := range map[string]string{
			"Resource":             d.Resource(tc.expected, tc.actual),
			"ResourceCreate":       d.ResourceCreate(tc.expected, tc.actual),
			"ResourceUpdate":       d.ResourceUpdate(tc.expected, tc.actual),
			"ResourceStatusUpdate": d.ResourceStatusUpdate(tc.expected, tc.actual),
			"StashedValue":         d.StashedValue(tc.expected, tc.actual, "key"),
		} {
			if (diff != "") != tc.differ {
				t.Errorf("%s: difference wanted %v, got %q", method, tc.differ, diff)
			}
		}
	}
}

// The Now of a case pins the times that it compares.
func TestNowPinsTransitionTimes(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	ready := pod.With(readySince(now))
	rtesting.SubReconcilerTestSuite[*corev1.Pod]{{
		Name:                "pinned",
		Resource:            pod.Object(),
		Now:                 now,
		Differ:              rtesting.StrictDiffer,
		ExpectResource:      ready.Object(),
		ExpectStatusUpdates: []client.Object{ready},
	}}.Run(t, scheme, func(
		*testing.T, *rtesting.SubReconcilerTestCase[*corev1.Pod], reconcilers.Config,
	) reconcilers.SubReconciler[*corev1.Pod] {
		return node[*corev1.Pod]{reconcile: func(ctx context.Context, p *corev1.Pod) (reconcilers.Result, error) {
			readySince(rtime.RetrieveNow(ctx))(p)
			return reconcilers.Result{}, reconcilers.RetrieveConfigOrDie(ctx).Status().Update(ctx, p.DeepCopy())
		}}
	})
}
