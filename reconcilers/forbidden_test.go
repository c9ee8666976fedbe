package reconcilers_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
	rtime "github.com/espalier-dev/espalier/time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// forbids refuses all creates of ConfigMaps while it is true.
func forbids(refused *bool) rtesting.ReactionFunc {
	return func(action rtesting.Action) (bool, runtime.Object, error) {
		if *refused && action.GetVerb() == "create" && action.GetResource().Resource == "ConfigMap" {
			return true, nil, apierrs.NewForbidden(configMapResource, "gadget", errBoom)
		}
		return false, nil, nil
	}
}

// statusChild reflects its child, or its error, in the status.
func statusChild() *configMapNode {
	node := reflectingChild(&trace{})
	node.ReflectChildStatusOnParent = func(ctx context.Context, w *resources.Widget, _ *corev1.ConfigMap, err error) {
		if err != nil {
			w.Status.MarkChildNotReady(ctx, "Failed", err.Error())
			return
		}
		w.Status.MarkChildReady(ctx)
	}
	return node
}

func TestForbiddenChildIsTriedAgainWithBackoff(t *testing.T) {
	refused := true
	q, _ := newVirtualQueue(statusChild(), []client.Object{steadyWidget}, forbids(&refused))
	q.run(t, time.Hour)
	// From 5 ms on the delays double, up to 1,000 s.
	if n := q.count("create ConfigMap"); n < 18 || n > 24 {
		t.Errorf("there are %d attempts in an hour, want 18 to 24, at %v", n, q.at)
	}
	if n := q.count("update Widget/status"); n != 1 {
		t.Errorf("the status was written %d times, want once", n)
	}
	delays := make([]time.Duration, 0, len(q.at))
	for i := 1; i < len(q.at); i++ {
		delays = append(delays, q.at[i]-q.at[i-1])
	}
	if !slices.IsSorted(delays) {
		t.Errorf("the delays are %v, want them to grow", delays)
	}

	refused = false
	q.run(t, 1000*time.Second)
	if n := q.count("update Widget/status"); n != 2 {
		t.Errorf("the status was written %d times, want twice, once for the child", n)
	}
	requests := len(q.at)
	q.run(t, time.Hour)
	if len(q.at) != requests {
		t.Errorf("there are %d requests when there is nothing to be tried, want none", len(q.at)-requests)
	}
}

func TestWhatBecomesOfTheResultOfATreeWithAForbiddenChild(t *testing.T) {
	short, long := reconcilers.Result{RequeueAfter: time.Minute}, reconcilers.Result{RequeueAfter: time.Minute + 1}
	refused, granted := true, false
	for name, test := range map[string]struct {
		refused *bool
		given   reconcilers.Result
		skip    bool
		want    reconcilers.Result
	}{
		"nothing":          {refused: &refused, want: requeue},
		"a short delay":    {refused: &refused, given: short, want: short},
		"a long delay":     {refused: &refused, given: long, want: requeue},
		"switched off":     {refused: &refused, skip: true, want: nothing},
		"switched, delays": {refused: &refused, given: long, skip: true, want: long},
		"granted":          {refused: &granted, given: long, want: long},
	} {
		t.Run(name, func(t *testing.T) {
			expect := expectWidget(steadyWidget)
			expect.WithReactors = []rtesting.ReactionFunc{assignUID, forbids(test.refused)}
			node := reflectingChild(&trace{})
			node.ReflectChildStatusOnParent = func(context.Context, *resources.Widget, *corev1.ConfigMap, error) {}
			delays := &widgetSync{SyncWithResult: func(context.Context, *resources.Widget) (reconcilers.Result, error) {
				return test.given, nil
			}}
			root := &widgetRoot{Config: expect.Config(), Reconciler: widgetSequence{node, delays}, SkipForbiddenRetry: test.skip}
			result, err := root.Reconcile(rtime.StashNow(t.Context(), requestTime), widgetRequest)
			if err != nil || result != test.want {
				t.Errorf("returned %+v and %v, want %+v", result, err, test.want)
			}
		})
	}
}

// A forbidden child below an aggregate is tried again too.
func TestForbiddenChildOfAnAggregateIsTriedAgain(t *testing.T) {
	for _, skip := range []bool{false, true} {
		refused := true
		expect := expectWidget(steadyWidget)
		expect.WithReactors = []rtesting.ReactionFunc{assignUID, forbids(&refused)}
		root := &reconcilers.AggregateReconciler[*resources.Widget]{
			Request: widgetRequest, Config: expect.Config(), Reconciler: statusChild(), SkipForbiddenRetry: skip,
			MergeBeforeUpdate: func(_, _ *resources.Widget) {},
		}
		want := requeue
		if skip {
			want = nothing
		}
		result, err := root.Reconcile(rtime.StashNow(t.Context(), requestTime), widgetRequest)
		if err != nil || result != want {
			t.Errorf("skip is %t: returned %+v and %v, want %+v", skip, result, err, want)
		}
	}
}
