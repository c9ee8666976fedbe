package store_test

import (
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/store"
)

func TestPropagationPolicy(t *testing.T) {
	t.Parallel()
	orphan, foreground := []string{metav1.FinalizerOrphanDependents}, []string{metav1.FinalizerDeleteDependents}
	for _, test := range []struct {
		name    string
		obj     client.Object
		given   []string
		options []client.DeleteOption
		want    []string
		removed bool
	}{
		{name: "by default dependents of a Job stay", obj: &batchv1.Job{}, want: orphan},
		{name: "and of a ReplicationController", obj: &corev1.ReplicationController{}, want: orphan},
		{name: "but not of others", obj: &batchv1.CronJob{}, removed: true},
		{name: "a policy is asked for", obj: &batchv1.Job{}, removed: true,
			options: []client.DeleteOption{client.PropagationPolicy(metav1.DeletePropagationBackground)}},
		{name: "a finalizer says it", obj: &batchv1.Job{}, given: foreground, want: foreground},
		{name: "another finalizer does not", obj: &batchv1.Job{}, given: []string{hold},
			want: []string{hold, metav1.FinalizerOrphanDependents}},
		{name: "a namespace", obj: &corev1.Namespace{}},
		{name: "a namespace in the foreground", obj: &corev1.Namespace{}, want: foreground,
			options: []client.DeleteOption{client.PropagationPolicy(metav1.DeletePropagationForeground)}},
	} {
		test.obj.SetName("one")
		if _, ok := test.obj.(*corev1.Namespace); !ok {
			test.obj.SetNamespace("ns")
		}
		test.obj.SetFinalizers(test.given)
		c := newClient(t, test.obj)
		must(t, c.Delete(t.Context(), test.obj, test.options...))
		if exists(t, c, test.obj) == test.removed {
			t.Errorf("%s: the object is gone: %t, want %t", test.name, !exists(t, c, test.obj), test.removed)
		}
		if test.removed {
			continue
		}
		if got := read(t, c, test.obj); !slices.Equal(got.GetFinalizers(), test.want) {
			t.Errorf("%s: the finalizers are %v, want %v", test.name, got.GetFinalizers(), test.want)
		}
	}
}

func TestGracePeriods(t *testing.T) {
	t.Parallel()
	const none = int64(-100) // The delete does not say.
	for _, test := range []struct {
		name           string
		first, second  int64
		succeeds, hold bool
		// left is the period after both; -1 if the Pod is gone.
		left int64
	}{
		{name: "that of the Pod", first: none, second: none, left: 20},
		{name: "below zero", first: -5, second: none, left: 1},
		{name: "shorter", first: 40, second: 10, left: 10},
		{name: "shortened below zero", first: 40, second: -5, left: 1},
		{name: "longer", first: 10, second: 40, left: 10},
		{name: "at once", first: 10, second: 0, left: -1},
		{name: "at once with a finalizer", first: 10, second: 0, hold: true, left: 0},
		{name: "the Pod ended", first: 10, second: none, succeeds: true, left: 10},
		{name: "the Pod ended, at once", first: 10, second: 0, succeeds: true, left: -1},
	} {
		pod := &corev1.Pod{ObjectMeta: metadata("one")}
		pod.Spec.NodeName, pod.Spec.TerminationGracePeriodSeconds = "node", new(int64(20))
		if test.hold {
			held(pod)
		}
		at := now
		s := newStore(t, pod)
		s.SetNow(func() time.Time { return at })
		c := s.Client(store.ClientOptions{})
		for i, period := range []int64{test.first, test.second} {
			var options []client.DeleteOption
			if period != none {
				options = append(options, client.GracePeriodSeconds(period))
			}
			must(t, c.Delete(t.Context(), pod, options...))
			at = at.Add(5 * time.Second)
			if i == 0 && test.succeeds {
				ended := read(t, c, pod)
				ended.Status.Phase = corev1.PodSucceeded
				must(t, c.Status().Update(t.Context(), ended))
			}
		}
		if exists(t, c, pod) == (test.left < 0) {
			t.Errorf("%s: the pod is there: %t, want %t", test.name, exists(t, c, pod), test.left >= 0)
		}
		if test.left < 0 {
			continue
		}
		got := read(t, c, pod)
		if end := now.Add(time.Duration(test.left) * time.Second); *got.DeletionGracePeriodSeconds != test.left ||
			!got.DeletionTimestamp.Time.Equal(end) {
			t.Errorf("%s: there are %v s until %v, want %v until %v", test.name, *got.DeletionGracePeriodSeconds,
				got.DeletionTimestamp, test.left, end)
		}
	}
}
