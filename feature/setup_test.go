package feature_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/feature"
	"github.com/espalier-dev/espalier/internal/resourcestate"
	"github.com/espalier-dev/espalier/reconcilers"
	rtime "github.com/espalier-dev/espalier/time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestValidate(t *testing.T) {
	for text, node := range map[string]interface {
		Validate(context.Context) error
	}{
		"Feature must not be nil":               (*featureOf)(nil),
		`Feature "" must define Name`:           &featureOf{Reconciler: scripted{}},
		`Feature "Till" must define Reconciler`: &featureOf{Name: "Till"},
		`Feature "Till" must define a GracePeriod`: &featureOf{Name: "Till", Reconciler: scripted{},
			GracePeriod: -1},
		`Feature "Till" must define a Condition`: &featureOf{Name: "Till", Condition: "not ready",
			Reconciler: scripted{}},
		`Feature "Till" must define Check of Prerequisites[0]`: &featureOf{Name: "Till", Reconciler: scripted{},
			Prerequisites: []feature.Prerequisite[*Shop]{{}}},
		"Features must define Features[0]": &features{Features: []*featureOf{nil}},
		`Features must have one Feature with the Name "Till"`: &features{Features: []*featureOf{
			{Name: "Till"}, {Name: "Till", Condition: "Other"}}},
		`Features must have one node that reports the Condition "TillReady"`: &features{Features: []*featureOf{
			{Name: "Till"}, {Name: "Other", Condition: "TillReady"}}},
		`Features must have one node that reports the Condition "ShelfReady"`: &features{
			Condition: "ShelfReady", Features: []*featureOf{{Name: "Shelf"}}},
	} {
		if err := node.Validate(t.Context()); err == nil || !strings.HasPrefix(err.Error(), text) {
			t.Errorf("expected %s, got %v", text, err)
		}
	}
}

func TestDescribe(t *testing.T) {
	const expected = `Features
├─ Feature "Till"
│  └─ scripted "Scripted"
└─ Feature "Shelf"
   └─ result
`
	d := market(scripted{}, result{}).Describe()
	if diff := cmp.Diff(expected, d.String()); diff != "" {
		t.Errorf("the tree differs (-expected, +actual):\n%s", diff)
	}
	var conditions []string
	d.Walk(func(_ string, d reconcilers.Description) { conditions = append(conditions, d.Conditions...) })
	if diff := cmp.Diff([]string{"Open", "TillReady", "CashReady", "ShelfReady"}, conditions); diff != "" {
		t.Errorf("the conditions differ (-expected, +actual):\n%s", diff)
	}
	pods := (&featureOf{Name: "Till", Pods: true, Reconciler: scripted{}}).Describe().Uses
	if len(pods) != 1 {
		t.Fatalf("the uses are %v, want one", pods)
	}
	if _, ok := pods[0].Object.(*corev1.Pod); !ok {
		t.Errorf("the uses are %v, want that of Pods", pods)
	}
}

// A type without a place for records is refused.
func TestSetupNeedsAStatus(t *testing.T) {
	type service = *corev1.Service
	done := &reconcilers.SyncReconciler[service]{Name: "Done", Sync: func(context.Context, service) error { return nil }}
	const text = `Feature "Till" finds no apis.LifecycleStatus in the status of *v1.Service: ` +
		`embed apis.LifecycleStatus in the type of its field Status, or define Status`
	node := &feature.Feature[service]{Name: "Till", Reconciler: done}
	if err := node.SetupWithManager(t.Context(), nil, nil); err == nil || err.Error() != text {
		t.Errorf("expected %s, got %v", text, err)
	}
	if _, err := node.Reconcile(t.Context(), &corev1.Service{}); err == nil || err.Error() != text {
		t.Errorf("expected %s, got %v", text, err)
	}
	kept := apis.LifecycleStatus{}
	node.Status = func(service) *apis.LifecycleStatus { return &kept }
	if err := node.SetupWithManager(t.Context(), nil, nil); err != nil {
		t.Error(err)
	}
}

// A CustomResourceDefinition without the field drops the records, and keeps the conditions.
func TestRecordsThatAreNotKept(t *testing.T) {
	const text = "the status of *feature_test.Shop does not keep the records of features: " +
		"its CustomResourceDefinition must define status.features"
	node, s := till(scripted{}), shop.Object()
	ctx := resourcestate.NewContext(rtime.StashNow(t.Context(), began), &resourcestate.State{})
	for request := range 6 {
		_, err := node.Reconcile(ctx, s)
		if lost := request >= 3; lost != (err != nil && err.Error() == text) {
			t.Errorf("request %d: the error is %v, want %q from the fourth on", request, err, text)
		}
		s.Status.Features = nil
	}
	if c := s.Status.GetCondition("TillReady"); c == nil || c.Message != text || c.Reason != "Error" {
		t.Errorf("the condition is %v, want the error %q", c, text)
	}
	// Once the field is there, all is well again.
	was(apis.FeatureHealthy, true)(s)
	if _, err := node.Reconcile(ctx, s); err != nil {
		t.Error(err)
	}
	// A status that was wiped is none that is not kept.
	for range 6 {
		s.Status = ShopStatus{}
		if _, err := node.Reconcile(ctx, s); err != nil {
			t.Error(err)
		}
	}
}

// A CustomResourceDefinition of an earlier release drops the conditions of a record. They are not written for ever.
func TestRecordedConditionsThatAreNotKept(t *testing.T) {
	node := &feature.Feature[*Shop]{Name: "Till", Reconciler: nodeFunc{reports: []string{"CashReady"}}}
	s := shop.Object()
	ctx := resourcestate.NewContext(rtime.StashNow(t.Context(), began), &resourcestate.State{})
	for request := range 6 {
		if _, err := node.Reconcile(ctx, s); err != nil {
			t.Fatal(err)
		}
		if got, want := len(s.Status.Features[0].Conditions), 1; request < 3 && got != want {
			t.Errorf("request %d records %d conditions, want %d", request, got, want)
		} else if request > 3 && got != 0 {
			t.Errorf("request %d records %d conditions, want none, since they are not kept", request, got)
		}
		s.Status.Features[0].Conditions = nil
	}
}

func TestL1AnIdleFeatureChangesNothing(t *testing.T) {
	node, s := market(scripted{}, result{}), shop.With(reports("auxiliary Job load Failing - it failed")).Object()
	reconcile := func(at time.Time) {
		t.Helper()
		if _, err := node.Reconcile(rtime.StashNow(t.Context(), at), s); err != nil {
			t.Fatal(err)
		}
	}
	reconcile(began)
	before := s.DeepCopyObject()
	for i := range 5 {
		reconcile(began.Add(time.Duration(i) * time.Hour))
	}
	if diff := cmp.Diff(before, s); diff != "" {
		t.Errorf("an idle request changed something (-before +after), want nothing:\n%s", diff)
	}
}

// A text that changes all the time does not change the condition all the time.
func TestErrorsThatChange(t *testing.T) {
	node, s := till(scripted{}), shop.With(spec(func(s *ShopSpec) { s.GateError = "try 1" })).Object()
	known := resourcestate.NewContext(t.Context(), &resourcestate.State{})
	for i := range 7 {
		s.Spec.GateError = fmt.Sprintf("try %d", i+1)
		ctx := rtime.StashNow(known, began.Add(time.Duration(i)*20*time.Second))
		_, _ = node.Reconcile(apis.StashGeneration(ctx, s.Generation), s)
		want := s.Spec.GateError
		if i == 4 || i == 5 { // the first three changes are shown at once
			want = "try 4"
		}
		if c := s.Status.GetCondition("TillReady"); c.Message != want {
			t.Errorf("the message is %s, expected %s", c.Message, want)
		}
	}
}
