package feature_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/feature"
	"github.com/espalier-dev/espalier/health"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
	rtime "github.com/espalier-dev/espalier/time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

var shopRequest = reconcilers.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "corner"}}

// rootOf returns a root with a summary.
func rootOf(config reconcilers.Config, nodes ...node) *reconcilers.ResourceReconciler[*Shop] {
	return &reconcilers.ResourceReconciler[*Shop]{
		Name: "Market", SummaryCondition: "Ready", ErrorCondition: "Ready", KeepResultAfterStatusUpdate: true,
		SkipStatusEvents: true, Config: config, Reconciler: reconcilers.Sequence[*Shop](nodes),
	}
}

// nodeFunc is a node of a function, which says that it reports conditions.
type nodeFunc struct {
	reports []string
	run     func(ctx context.Context, s *Shop)
}

func (n nodeFunc) SetupWithManager(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
	return nil
}

func (n nodeFunc) Reconcile(ctx context.Context, s *Shop) (reconcilers.Result, error) {
	if n.run != nil {
		n.run(ctx, s)
	}
	return reconcilers.Result{}, nil
}

func (n nodeFunc) Describe() reconcilers.Description {
	return reconcilers.Description{Kind: "nodeFunc", Name: "Node", Conditions: n.reports}
}

// A text that is another one in each call is written three times at once, then once in a minute at most, and less often
// each time.
func TestTextsThatChange(t *testing.T) {
	calls := 0
	text := func() string {
		calls++
		return fmt.Sprintf("waiting for %d seconds", calls)
	}
	observe := func(h apis.Health) func(context.Context, *Shop) {
		return func(ctx context.Context, _ *Shop) {
			h.Message = text()
			reconcilers.SupervisorOf(ctx).Observe(reconcilers.ObservedObject{Node: "Node", Health: &h})
		}
	}
	for name, f := range map[string]*featureOf{
		"a prerequisite": {Name: "Till", Reconciler: nodeFunc{}, Prerequisites: []feature.Prerequisite[*Shop]{{
			Check: func(context.Context, *Shop) (string, error) { return text(), nil },
		}}},
		"an object that waits": {Name: "Till", Reconciler: nodeFunc{run: observe(apis.Health{State: apis.StateBlocked})}},
		"the health of an object": {Name: "Till",
			Reconciler: nodeFunc{run: observe(apis.Health{State: apis.StateFailing, Grade: apis.StateDown})}},
	} {
		t.Run(name, func(t *testing.T) {
			writes := 0
			expect := &rtesting.ExpectConfig{
				Scheme: scheme, GivenObjects: []client.Object{shop}, StatusSubResourceTypes: []client.Object{&Shop{}},
				WithReactors: []rtesting.ReactionFunc{func(action rtesting.Action) (bool, runtime.Object, error) {
					if action.GetVerb() == "update" && action.GetSubresource() == "status" {
						writes++
					}
					return false, nil, nil
				}},
			}
			root := rootOf(expect.Config(), f)
			var delays []time.Duration
			now := began
			for range 12 {
				result, err := root.Reconcile(rtime.StashNow(t.Context(), now), shopRequest)
				if err != nil {
					t.Fatal(err)
				}
				if result.RequeueAfter > 0 {
					delays = append(delays, result.RequeueAfter)
				}
				now = now.Add(result.RequeueAfter)
			}
			const want = "[1m0s 2m0s 4m0s 8m0s]"
			if got := fmt.Sprint(delays); got != want || writes != 8 {
				t.Errorf("12 requests wrote the status %d times and came back after %s, want 8 times, %s", writes, got, want)
			}
		})
	}
}

// observedNow says that conditions and the resource are about the current generation.
func observedNow(s *Shop) {
	for i := range s.Status.Conditions {
		s.Status.Conditions[i].ObservedGeneration = s.Generation
	}
	s.Status.ObservedGeneration = s.Generation
}

// withRecord gives the feature Till a record with other conditions than the code has.
func withRecord(condition string, nested ...string) edit {
	return func(s *Shop) {
		was(apis.FeatureHealthy, true)(s)
		s.Status.Features[0].Condition, s.Status.Features[0].Conditions = condition, nested
	}
}

func TestConditionsOfEarlierReleases(t *testing.T) {
	summary := is("Ready", isTrue, "Ready", "")
	now := shop.With(healthy, summary, withRecord("TillReady"), observedNow)
	plain := nodeFunc{}
	row := func(given *Shop, expected client.Object) rtesting.ReconcilerTestCase {
		r := rtesting.ReconcilerTestCase{Request: shopRequest, Now: began, GivenObjects: []client.Object{given}}
		if expected != nil {
			r.ExpectStatusUpdates = []client.Object{expected}
		}
		return r
	}
	others := is("Others", isTrue, "Because", "")
	run := func(rows rtesting.RootTests, nodes ...node) {
		t.Helper()
		rows.RunRoot(t, scheme, func(config reconcilers.Config) reconcile.Reconciler { return rootOf(config, nodes...) })
	}
	run(rtesting.RootTests{
		"the condition of a feature was renamed": row(
			shop.With(is("BReady", isTrue, "Healthy", ""), others, withRecord("BReady"), observedNow).Object(),
			shop.With(is("Others", isTrue, "Because", ""), summary, healthy, withRecord("TillReady"), observedNow)),
		"a nested condition was dropped": row(
			shop.With(is("BReady", isTrue, "Healthy", ""), healthy, summary, withRecord("TillReady", "BReady"), observedNow).Object(),
			now),
		"nothing of it is recorded": row(now.With(others, observedNow).Object(), nil),
	}, &featureOf{Name: "Till", Reconciler: plain})
	run(rtesting.RootTests{
		"another node has the condition now": row(
			shop.With(is("BReady", isTrue, "Because", ""), summary, healthy, withRecord("BReady", "BReady"), observedNow).Object(),
			shop.With(is("BReady", isTrue, "Because", ""), summary, healthy, withRecord("TillReady"), observedNow)),
	}, nodeFunc{reports: []string{"BReady"}}, &featureOf{Name: "Till", Reconciler: plain})
	run(rtesting.RootTests{
		"a feature was removed": row(
			shop.With(healthy, is("BReady", isTrue, "Because", ""), summary, withRecord("TillReady", "BReady"), observedNow).Object(),
			shop.With(summary, observedNow)),
	}, &feature.Features[*Shop]{})
}

// A feature that is suspended is, whatever its nodes say.
func TestSummaryOfASuspendedResource(t *testing.T) {
	for _, status := range []metav1.ConditionStatus{isTrue, isFalse, isUnknown} {
		says := nodeFunc{reports: []string{"SetReady"}, run: func(ctx context.Context, s *Shop) {
			reconcilers.SetCondition(ctx, s, metav1.Condition{Type: "SetReady", Status: status, Reason: "Blocked", Message: "no data"})
		}}
		set := is("SetReady", isTrue, apis.StateSuspended, "")
		if status == isTrue {
			set = is("SetReady", isTrue, "Blocked", "no data")
		}
		record := func(s *Shop) {
			was(apis.FeatureSuspended, true)(s)
			s.Status.Features[0].Conditions = []string{"SetReady"}
		}
		asleep := shop.With(is("Ready", isTrue, apis.StateSuspended, "TillReady"), set,
			is("TillReady", isTrue, apis.StateSuspended, ""), record, paused, observedNow)
		rtesting.RootTests{
			string(status): {
				Request: shopRequest, Now: began, GivenObjects: []client.Object{shop.With(paused)},
				ExpectStatusUpdates: []client.Object{asleep},
			},
			string(status) + " for long": {Request: shopRequest, Now: later, GivenObjects: []client.Object{asleep}},
		}.RunRoot(t, scheme, func(config reconcilers.Config) reconcile.Reconciler {
			return rootOf(config, &featureOf{
				Name: "Till", Reconciler: says,
				Suspended: func(_ context.Context, s *Shop) (bool, error) { return s.Spec.Suspended, nil },
			})
		})
	}
}

// An object that waits is no outage as long as what is there works.
func TestBlockedObjectsThatRun(t *testing.T) {
	for name, test := range map[string]struct {
		ready int32
		want  apis.State
	}{
		"it runs":  {ready: 1, want: apis.StateDegraded},
		"it fails": {ready: 0, want: apis.StateDown},
	} {
		t.Run(name, func(t *testing.T) {
			object := &appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Generation: 1},
				Spec:       appsv1.DeploymentSpec{Replicas: new(int32(1))},
				Status: appsv1.DeploymentStatus{
					ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: test.ready,
					AvailableReplicas: test.ready, Conditions: []appsv1.DeploymentCondition{
						{Type: appsv1.DeploymentProgressing, Status: "True", Reason: "NewReplicaSetAvailable"},
						{Type: appsv1.DeploymentAvailable, Status: "True"},
					},
				},
			}
			if h := health.Of(object); health.Healthy(h.State) != (test.ready == 1) {
				t.Fatalf("the health is %v", h)
			}
			blocked := apis.Health{State: apis.StateBlocked, Message: "waiting for Secret default/password"}
			f := till(nodeFunc{run: func(ctx context.Context, _ *Shop) {
				reconcilers.SupervisorOf(ctx).Observe(reconcilers.ObservedObject{
					Node: "Node", Kind: appsv1.SchemeGroupVersion.WithKind("Deployment"), Namespace: "default", Name: "web",
					Object: object, Health: &blocked,
				})
			}})
			s := shop.With(was(apis.FeatureProgressing, true)).Object()
			for now, want := range map[time.Time]apis.State{later: apis.StateBlocked, expired: test.want} {
				s := s.DeepCopyObject().(*Shop)
				if _, err := f.Reconcile(rtime.StashNow(t.Context(), now), s); err != nil {
					t.Fatal(err)
				}
				if c := s.Status.GetCondition("TillReady"); c.Reason != string(want) {
					t.Errorf("at %v the condition is %s, want %s", now, c.Reason, want)
				}
			}
		})
	}
}
