package feature_test

import (
	"context"
	"errors"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/feature"
	"github.com/espalier-dev/espalier/reconcilers"
)

type features = feature.Features[*Shop]

// result is a node that returns an error if the spec says so for its name.
type result struct {
	name string
	err  error
}

func (result) SetupWithManager(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
	return nil
}

func (r result) Reconcile(_ context.Context, s *Shop) (reconcilers.Result, error) {
	if s.Spec.Returns == r.name {
		return reconcilers.Result{}, r.err
	}
	return reconcilers.Result{}, nil
}

// market has two features, and sums them up.
func market(first, second node) *features {
	return &features{Condition: "Open", Features: []*featureOf{
		{Name: "Till", Reconciler: first, GracePeriod: grace},
		{Name: "Shelf", Reconciler: second, Prerequisites: []feature.Prerequisite[*Shop]{
			feature.DependsOn[*Shop]("TillReady"),
		}},
	}}
}

func TestFeatures(t *testing.T) {
	both := func(s *Shop) {
		recorded("Shelf", apis.FeatureHealthy, began, true)(s)
		was(apis.FeatureHealthy, true)(s)
		healthy(s)
		is("ShelfReady", isTrue, apis.StateHealthy, "")(s)
	}
	sorted := func(s *Shop) {
		// Conditions are kept sorted by type.
		order := []string{"CartReady", "Open", "Other", "ShelfReady", "TillReady"}
		sorted := s.Status.Conditions[:0:0]
		for _, name := range order {
			if c := s.Status.GetCondition(name); c != nil {
				sorted = append(sorted, *c)
			}
		}
		s.Status.Conditions = sorted
	}
	failing := bad("Deployment", "web", apis.StateFailing, "")
	tests{
		"one depends on the other": after(began, nil, both, is("Open", isTrue, apis.StateHealthy, "Till"), sorted),
		"one fails, the other waits": withRow(after(began, given(reports("Deployment web Failing")),
			recorded("Shelf", apis.FeatureWaiting, began, false), was(apis.FeatureProgressing, true, failing),
			ready(isFalse, apis.StateFailing, "Deployment default/web"),
			is("ShelfReady", isFalse, apis.StatePrerequisiteNotMet,
				"waiting for the condition TillReady, which is False: Deployment default/web"),
			is("Open", isFalse, apis.StateFailing, "Till: Deployment default/web"), sorted)).back(grace),
		"a halt of one does not stop the other": withRow(after(began, given(returns("halt"), both),
			was(apis.FeatureProgressing, true),
			ready(isUnknown, apis.StateUnknown, "a node halted, so not all objects are known"),
			is("Open", isUnknown, apis.StateUnknown, "Till: a node halted, so not all objects are known"), sorted)).
			fails(reconcilers.ErrHaltSubReconcilers.Error()),
		"an error of one does not stop the other": withRow(after(began, given(returns("boom"), both),
			was(apis.FeatureProgressing, true), ready(isFalse, apis.StateError, "boom"),
			is("Open", isFalse, apis.StateError, "Till: boom"), sorted)).fails("boom"),
		"a retired feature is forgotten": after(later, given(both, is("Open", isTrue, apis.StateHealthy, "Till"),
			recorded("Cart", apis.FeatureHealthy, began, true), is("CartReady", isTrue, apis.StateHealthy, ""),
			is("Other", isTrue, "Because", ""), sorted),
			func(s *Shop) {
				s.Status.Features, s.Status.Conditions = nil, nil
				both(s)
				is("Other", isTrue, "Because", "")(s)
				is("Open", isTrue, apis.StateHealthy, "Till")(s)
				sorted(s)
			}),
		"a terminating resource": after(later, given(terminating, recorded("Cart", apis.FeatureHealthy, began, true))),
	}.RunNode(t, scheme, func() node { return market(scripted{}, result{}) })
}

// What is to be retried must not get lost beside a quiet error of another feature.
func TestL6ErrorsOfFeatures(t *testing.T) {
	retry, durable := errors.New("retry"), errors.Join(errors.New("given up"), reconcilers.ErrDurable)
	halt := reconcilers.ErrHaltSubReconcilers
	skip := errors.Join(reconcilers.ErrQuiet, reconcilers.ErrSkipStatusUpdate)
	for name, tc := range map[string]struct {
		errs      [2]error
		is, isNot error
	}{
		"both":              {[2]error{errBoom, retry}, errBoom, reconcilers.ErrQuiet},
		"second of both":    {[2]error{errBoom, retry}, retry, reconcilers.ErrQuiet},
		"beside a durable":  {[2]error{durable, retry}, retry, reconcilers.ErrQuiet},
		"beside a halt":     {[2]error{retry, halt}, retry, reconcilers.ErrQuiet},
		"two halts":         {[2]error{halt, halt}, halt, reconcilers.ErrDurable},
		"no status":         {[2]error{retry, skip}, reconcilers.ErrSkipStatusUpdate, reconcilers.ErrQuiet},
		"no status, quiet":  {[2]error{nil, skip}, reconcilers.ErrSkipStatusUpdate, retry},
		"durable and halts": {[2]error{durable, halt}, reconcilers.ErrDurable, retry},
	} {
		t.Run(name, func(t *testing.T) {
			node := &features{Features: []*featureOf{
				{Name: "Till", Reconciler: result{"both", tc.errs[0]}},
				{Name: "Shelf", Reconciler: result{"both", tc.errs[1]}},
			}}
			_, err := node.Reconcile(t.Context(), shop.With(returns("both")).Object())
			if !errors.Is(err, tc.is) || errors.Is(err, tc.isNot) {
				t.Errorf("the error is %v, want %v, and not %v", err, tc.is, tc.isNot)
			}
		})
	}
}

// A feature below another one is withdrawn and suspended with it, and counts as one of its objects.
func TestFeatureBelowAFeature(t *testing.T) {
	run := func(edits ...edit) *Shop {
		t.Helper()
		s := shop.With(edits...).Object()
		outer := till(&featureOf{Name: "Drawer", Reconciler: scripted{}})
		_, _ = outer.Reconcile(t.Context(), s)
		return s
	}
	for name, tc := range map[string]struct {
		given        []edit
		outer, inner apis.State
	}{
		"healthy":      {nil, apis.StateHealthy, apis.StateHealthy},
		"failing":      {given(reports("Deployment web Failing")), apis.StateFailing, apis.StateFailing},
		"an error":     {given(returns("boom")), apis.StateError, apis.StateError},
		"off":          {given(off, reports("Deployment web absent")), apis.StateDisabled, ""},
		"not gone yet": {given(off, reports("Deployment web Healthy")), apis.StateDisabling, apis.StateDisabling},
		"suspended":    {given(paused), apis.StateSuspended, apis.StateSuspended},
		"suspending": {given(paused, reports("Deployment web Suspending")),
			apis.StateSuspending, apis.StateSuspending},
	} {
		t.Run(name, func(t *testing.T) {
			s := run(tc.given...)
			for conditionType, want := range map[string]apis.State{"TillReady": tc.outer, "DrawerReady": tc.inner} {
				c := s.Status.GetCondition(conditionType)
				if c == nil && want != "" || c != nil && c.Reason != string(want) {
					t.Errorf("%s is %v, expected %s", conditionType, c, want)
				}
			}
		})
	}
}

// A feature that waits for a prerequisite has nothing to suspend.
func TestSuspensionOfAFeatureThatWaits(t *testing.T) {
	inner := &featureOf{Name: "Drawer", Reconciler: scripted{}, Prerequisites: []feature.Prerequisite[*Shop]{{
		Check: func(context.Context, *Shop) (string, error) { return "no key", nil },
	}}}
	for edited, want := range map[bool]apis.State{true: apis.StateSuspended, false: apis.StatePrerequisiteNotMet} {
		s := shop.Object()
		s.Spec.Suspended = edited
		if _, err := till(inner).Reconcile(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if c := s.Status.GetCondition("TillReady"); c.Reason != string(want) {
			t.Errorf("suspended %t: the condition is %v, want the reason %s", edited, c, want)
		}
	}
}
