package page_test

import (
	"context"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/feature"
	"github.com/espalier-dev/espalier/page"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/testing/fake"
	rtime "github.com/espalier-dev/espalier/time"

	"github.com/google/go-cmp/cmp"
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
}

func (s *shop) DeepCopyObject() runtime.Object {
	c := &shop{TypeMeta: s.TypeMeta}
	s.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	s.Status.Status.DeepCopyInto(&c.Status.Status)
	s.Status.LifecycleStatus.DeepCopyInto(&c.Status.LifecycleStatus)
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
