package page_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/feature"
	"github.com/espalier-dev/espalier/metrics"
	"github.com/espalier-dev/espalier/page"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/testing/fake"
	rtime "github.com/espalier-dev/espalier/time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
)

// shop is a resource with features.
type shop struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Status shopStatus `json:"status,omitempty"`
}

type shopStatus struct {
	apis.Status          `json:",inline"`
	apis.LifecycleStatus `json:",inline"`
	apis.ItemsStatus     `json:",inline"`
}

func (s *shop) DeepCopyObject() runtime.Object {
	c := &shop{TypeMeta: s.TypeMeta}
	s.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	s.Status.Status.DeepCopyInto(&c.Status.Status)
	s.Status.LifecycleStatus.DeepCopyInto(&c.Status.LifecycleStatus)
	s.Status.ItemsStatus.DeepCopyInto(&c.Status.ItemsStatus)
	return c
}

func TestFeaturesShowTheirRecords(t *testing.T) {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: "test.espalier.dev", Version: "v1", Kind: "Shop"}, &shop{})
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&shop{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "corner", UID: "corner-uid", Generation: 1,
	}}).Build()
	p := page.New(page.Options{})
	p.At(later)
	root := &reconcilers.ResourceReconciler[*shop]{
		Name: "root", Config: reconcilers.Config{Client: c, APIReader: c}.WithObserver(p),
		Reconciler: &feature.Feature[*shop]{
			Name: "Till", GracePeriod: 10 * time.Minute,
			Reconciler: &reconcilers.SyncReconciler[*shop]{Name: "Deployment", Sync: func(ctx context.Context, _ *shop) error {
				reconcilers.SupervisorOf(ctx).Observe(reconcilers.ObservedObject{
					Kind: appsv1.SchemeGroupVersion.WithKind("Deployment"), Namespace: "default", Name: "till",
					Health: &apis.Health{State: apis.StateFailing, Grade: apis.StateDown, Reason: "NoPod", Message: "no pod runs"},
				})
				return nil
			}},
		},
	}
	ctx := rtime.StashNow(t.Context(), began)
	if _, err := root.Reconcile(ctx, ctrl.Request{NamespacedName: keyOf("corner")}); err != nil {
		t.Fatal(err)
	}
	want := []page.FeatureView{{
		Name: "Till", Phase: "Progressing", Since: minuteAgo, Needs: "met", Next: "in 9m",
		Condition: page.ConditionView{
			Type: "TillReady", Status: "False", Reason: "Failing", Message: "Deployment default/till: no pod runs",
			Since: minuteAgo, Node: page.Link{URL: "#node-1", Text: "Feature Till"},
		},
		Dependents: []page.DependentView{{
			Object: "Deployment default/till", State: "Failing", Reason: "NoPod", Message: "no pod runs", Since: minuteAgo,
		}},
	}}
	if diff := cmp.Diff(want, p.Resource("shop", keyOf("corner")).Features); diff != "" {
		t.Errorf("the features (-want, +shown)\n%s", diff)
	}
}

// A feature of an item that is gone is not shown any more, and does not count.
func TestTheFeatureOfAnItemThatIsGone(t *testing.T) {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: "test.espalier.dev", Version: "v1", Kind: "Shop"}, &shop{})
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&shop{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "corner", UID: "corner-uid", Generation: 1,
	}}).Build()
	p, registry := page.New(page.Options{Access: page.OnLoopback()}), prometheus.NewRegistry()
	p.At(later)
	counts, err := metrics.New(metrics.Options{Registerer: registry})
	if err != nil {
		t.Fatal(err)
	}
	removed := &removals{}
	items := []string{"a", "b"}
	root := &reconcilers.ResourceReconciler[*shop]{
		Name:   "root",
		Config: reconcilers.Config{Client: c, APIReader: c}.WithObserver(p, counts, removed),
		Reconciler: &reconcilers.ForEach[*shop, string]{
			Name: "Tills", Key: func(item string) string { return item },
			Items: func(context.Context, *shop) ([]string, error) { return items, nil },
			Reconciler: &feature.Feature[*shop]{
				Name:       "Till",
				Reconciler: &reconcilers.SyncReconciler[*shop]{Sync: func(context.Context, *shop) error { return nil }},
			},
		},
	}
	for _, test := range []struct {
		items, shown, removed []string
	}{
		{[]string{"a", "b"}, []string{"Till[a]", "Till[b]"}, nil},
		{[]string{"a"}, []string{"Till[a]"}, []string{"Till[b]"}},
		{nil, nil, []string{"Till[b]", "Till[a]"}},
	} {
		items = test.items
		for range 3 {
			ctx := rtime.StashNow(t.Context(), began)
			if _, err := root.Reconcile(ctx, ctrl.Request{NamespacedName: keyOf("corner")}); err != nil {
				t.Fatal(err)
			}
		}
		var shown []string
		for _, f := range p.Resource("shop", keyOf("corner")).Features {
			shown = append(shown, f.Name)
		}
		if !slices.Equal(shown, test.shown) || !slices.Equal(removed.names, test.removed) {
			t.Errorf("of the items %q the features %q are shown, and %q were removed; wanted %q and %q", test.items, shown,
				removed.names, test.shown, test.removed)
		}
		if n := featuresCounted(t, registry); n != len(test.items) {
			t.Errorf("of the items %q %d features count", test.items, n)
		}
	}
}

// removals has the features that are removed.
type removals struct{ names []string }

func (*removals) Start(ctx context.Context, _ *reconcilers.Node) context.Context { return ctx }
func (*removals) End(context.Context, *reconcilers.Node, reconcilers.Outcome)    {}
func (r *removals) Note(_ context.Context, _ *reconcilers.Node, fact any) {
	if phase, ok := fact.(feature.Phase); ok && phase.Removed && !slices.Contains(r.names, phase.Feature) {
		r.names = append(r.names, phase.Feature)
	}
}

// featuresCounted returns how many features count, in whatever state.
func featuresCounted(t *testing.T, registry *prometheus.Registry) int {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, family := range families {
		if family.GetName() == "espalier_features" {
			for _, metric := range family.GetMetric() {
				n += int(metric.GetGauge().GetValue())
			}
		}
	}
	return n
}
