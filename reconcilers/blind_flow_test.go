package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
)

// The tables in the files called blind_*_test.go were written from the description of the vocabulary, by somebody who had not seen
// its implementation: they are what a project brings along that moves here.

// hooks is a node made of functions.
type hooks struct {
	setup     func(context.Context, reconcilers.Manager, *reconcilers.Builder) error
	reconcile func(context.Context, *resources.Widget) (reconcilers.Result, error)
}

func (h *hooks) SetupWithManager(ctx context.Context, mgr reconcilers.Manager, bldr *reconcilers.Builder) error {
	if h.setup == nil {
		return nil
	}
	return h.setup(ctx, mgr, bldr)
}

func (h *hooks) Reconcile(ctx context.Context, widget *resources.Widget) (reconcilers.Result, error) {
	if h.reconcile == nil {
		return reconcilers.Result{}, nil
	}
	return h.reconcile(ctx, widget)
}

var (
	errQuiet   = fmt.Errorf("hush: %w", reconcilers.ErrQuiet)
	errOther   = errors.New("other")
	twoMinutes = reconcilers.Result{RequeueAfter: 2 * time.Minute}
	nothing    = reconcilers.Result{}
)

const invalidSync = `SyncReconciler "SyncReconciler" must implement Sync or SyncWithResult`

// listNodes are the two nodes that are listNodes of nodes.
var listNodes = map[string]func(nodes ...widgetNode) widgetNode{
	"Sequence": func(nodes ...widgetNode) widgetNode { return widgetSequence(nodes) },
	"Always":   func(nodes ...widgetNode) widgetNode { return reconcilers.Always[*resources.Widget](nodes) },
}

func TestListsAggregateResults(t *testing.T) {
	//lint:ignore SA1019 deprecated, not gone
	both := reconcilers.Result{Requeue: true, RequeueAfter: time.Minute}
	high, low := reconcilers.Result{Priority: new(7)}, reconcilers.Result{Priority: new(-7)}
	for name, test := range map[string]struct{ a, b, expected reconcilers.Result }{
		"nothing":            {nothing, nothing, nothing},
		"requeue":            {requeue, nothing, requeue},
		"a delay":            {minute, nothing, minute},
		"requeue, delay":     {requeue, minute, both},
		"two delays":         {minute, twoMinutes, minute},
		"one priority":       {high, nothing, high},
		"the higher of them": {high, low, high},
	} {
		for list, of := range listNodes {
			for order, results := range map[string][2]reconcilers.Result{"as is": {test.a, test.b}, "reversed": {test.b, test.a}} {
				t.Run(fmt.Sprint(name, "/", list, "/", order), func(t *testing.T) {
					calls := &trace{}
					node := of(calls.step("first", results[0], nil), calls.step("second", results[1], nil))
					result, err := node.Reconcile(testContext(t, expectWidget().Config()), widget.Object())
					if diff := cmp.Diff(test.expected, result); diff != "" || err != nil {
						t.Errorf("(-expected, +actual) error %v\n%s", err, diff)
					}
					calls.compare(t, []string{"first", "second"})
				})
			}
		}
	}
}

func TestListsReturnErrors(t *testing.T) {
	for name, test := range map[string]struct {
		errs            [3]error
		sequence        error
		sequenceResult  reconcilers.Result
		always, without []error
	}{
		"loud in the middle":  {[3]error{nil, errBoom, nil}, errBoom, twoMinutes, []error{errBoom}, nil},
		"quiet in the middle": {[3]error{nil, errQuiet, nil}, errQuiet, twoMinutes, []error{errQuiet}, nil},
		"two loud":            {[3]error{errBoom, nil, errOther}, errBoom, requeue, []error{errBoom, errOther}, nil},
		"a loud one wins over quiet ones": {
			[3]error{reconcilers.ErrHaltSubReconcilers, errBoom, errQuiet}, reconcilers.ErrHaltSubReconcilers, requeue,
			[]error{errBoom}, []error{reconcilers.ErrQuiet, reconcilers.ErrHaltSubReconcilers},
		},
		"all quiet": {
			[3]error{errQuiet, nil, reconcilers.ErrHaltSubReconcilers}, errQuiet, requeue,
			[]error{errQuiet, reconcilers.ErrHaltSubReconcilers, reconcilers.ErrQuiet}, []error{reconcilers.ErrSkipStatusUpdate},
		},
		"skipping the status is loud": {
			[3]error{reconcilers.ErrSkipStatusUpdate, errQuiet, nil}, reconcilers.ErrSkipStatusUpdate, requeue,
			[]error{reconcilers.ErrSkipStatusUpdate}, []error{reconcilers.ErrQuiet},
		},
	} {
		t.Run(name, func(t *testing.T) {
			calls := &trace{}
			nodes := []widgetNode{
				calls.step("first", requeue, test.errs[0]),
				calls.step("second", twoMinutes, test.errs[1]),
				calls.step("third", minute, test.errs[2]),
			}
			ctx := testContext(t, expectWidget().Config())
			result, err := listNodes["Sequence"](nodes...).Reconcile(ctx, widget.Object())
			returnsBoth(test.sequence, test.sequenceResult)(t, result, err)

			calls.calls = nil
			result, err = listNodes["Always"](nodes...).Reconcile(ctx, widget.Object())
			calls.compare(t, []string{"first", "second", "third"})
			for _, expected := range test.always {
				//lint:ignore SA1019 deprecated, not gone
				returnsBoth(expected, reconcilers.Result{Requeue: true, RequeueAfter: time.Minute})(t, result, err)
			}
			for _, unexpected := range test.without {
				if errors.Is(err, unexpected) {
					t.Errorf("%v is also %v", err, unexpected)
				}
			}
		})
	}
}

func TestListsAreValidators(t *testing.T) {
	type always = reconcilers.Always[*resources.Widget]
	valid, invalid := &widgetSync{Sync: func(context.Context, *resources.Widget) error { return nil }}, &widgetSync{}
	const sequenceText, alwaysText = "Sequence must have a valid Sequence[1]: " + invalidSync, "Always must have a valid Always[1]: " + invalidSync
	validationTests{
		"empty sequence":      {node: widgetSequence{}},
		"empty always":        {node: always{}},
		"sequence":            {node: widgetSequence{valid, invalid}, recursive: sequenceText},
		"always":              {node: always{valid, invalid}, recursive: alwaysText},
		"pointer to sequence": {node: &widgetSequence{valid, invalid}, recursive: sequenceText},
		"pointer to always":   {node: &always{valid, invalid}, recursive: alwaysText},
		"always in sequence": {
			node:      widgetSequence{always{valid, invalid}},
			recursive: "Sequence must have a valid Sequence[0]: " + alwaysText,
		},
	}.run(t)
}

func TestListsSetUpInOrderWithLoggersOfTheirOwn(t *testing.T) {
	for list, of := range listNodes {
		t.Run(list, func(t *testing.T) {
			calls := &trace{}
			logger := funcr.New(func(prefix, _ string) { calls.add("%s", prefix) }, funcr.Options{})
			node := func(err error) widgetNode {
				return &hooks{setup: func(ctx context.Context, _ reconcilers.Manager, _ *reconcilers.Builder) error {
					logr.FromContextOrDiscard(ctx).Info("set up")
					return err
				}}
			}
			ctx := logr.NewContext(testContext(t, expectWidget().Config()), logger)
			err := of(node(nil), node(nil), node(errBoom), node(nil)).SetupWithManager(ctx, nil, nil)
			if !errors.Is(err, errBoom) {
				t.Errorf("returned %v", err)
			}
			calls.compare(t, []string{"0", "1", "2"})
		})
	}
}

// setUpTest sets up a node, and says in which order functions are called.
type setUpTest struct {
	node  func(calls *trace, setup func(context.Context, reconcilers.Manager, *reconcilers.Builder) error) widgetNode
	calls []string
	err   error
}

type setUpTests map[string]setUpTest

func (tests setUpTests) run(t *testing.T) {
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			calls := &trace{}
			node := test.node(calls, calls.step("own", nothing, nil).SetupWithManager)
			err := node.SetupWithManager(testContext(t, expectWidget().Config()), nil, nil)
			if !errors.Is(err, test.err) {
				t.Errorf("returned %v, expected %v", err, test.err)
			}
			calls.compare(t, test.calls)
		})
	}
}

type setUpFunc = func(context.Context, reconcilers.Manager, *reconcilers.Builder) error

func TestNodesSetUpWhatIsNested(t *testing.T) {
	own, nested := "set up own", "set up nested"
	setUpTests{
		"Advice": {calls: []string{own, nested}, node: func(calls *trace, setup setUpFunc) widgetNode {
			return &reconcilers.Advice[*resources.Widget]{Setup: setup, Reconciler: calls.step("nested", nothing, nil)}
		}},
		"Advice without Setup": {calls: []string{nested}, node: func(calls *trace, _ setUpFunc) widgetNode {
			return &reconcilers.Advice[*resources.Widget]{Reconciler: calls.step("nested", nothing, nil)}
		}},
		"While": {calls: []string{own, nested}, node: func(calls *trace, setup setUpFunc) widgetNode {
			return &reconcilers.While[*resources.Widget]{
				Setup: setup, Condition: never, Reconciler: calls.step("nested", nothing, nil),
			}
		}},
		"ForEach, the nested one first": {calls: []string{nested, own}, node: func(calls *trace, setup setUpFunc) widgetNode {
			return &reconcilers.ForEach[*resources.Widget, int]{
				Setup: setup, Items: items[int](), Reconciler: calls.step("nested", nothing, nil),
			}
		}},
		"TryCatch": {calls: []string{own, nested, "set up finally"}, node: func(calls *trace, setup setUpFunc) widgetNode {
			return &reconcilers.TryCatch[*resources.Widget]{
				Setup: setup, Try: calls.step("nested", nothing, nil), Finally: calls.step("finally", nothing, nil),
			}
		}},
		"TryCatch, at an error": {calls: []string{own, nested}, err: errBoom, node: func(calls *trace, setup setUpFunc) widgetNode {
			return &reconcilers.TryCatch[*resources.Widget]{
				Setup: setup, Try: calls.step("nested", nothing, errBoom), Finally: calls.step("finally", nothing, nil),
			}
		}},
		"OverrideSetup, its own only": {calls: []string{own}, node: func(calls *trace, setup setUpFunc) widgetNode {
			return &reconcilers.OverrideSetup[*resources.Widget]{Setup: setup, Reconciler: calls.step("nested", nothing, nil)}
		}},
		"OverrideSetup, none": {calls: []string{}, node: func(calls *trace, _ setUpFunc) widgetNode {
			return &reconcilers.OverrideSetup[*resources.Widget]{Reconciler: calls.step("nested", nothing, nil)}
		}},
		"SuppressTransientErrors, the nested one first": {calls: []string{nested, own}, node: func(calls *trace, setup setUpFunc) widgetNode {
			return &suppress{Setup: setup, Reconciler: calls.step("nested", nothing, nil)}
		}},
		"WithConfig": {calls: []string{nested}, node: func(calls *trace, _ setUpFunc) widgetNode {
			return &reconcilers.WithConfig[*resources.Widget]{Config: unchangedConfig, Reconciler: calls.step("nested", nothing, nil)}
		}},
		"WithConfig, at an error": {calls: []string{}, err: errBoom, node: func(calls *trace, _ setUpFunc) widgetNode {
			return &reconcilers.WithConfig[*resources.Widget]{
				Config: func(context.Context, reconcilers.Config) (reconcilers.Config, error) {
					return reconcilers.Config{}, errBoom
				},
				Reconciler: calls.step("nested", nothing, nil),
			}
		}},
	}.run(t)
}

type suppress = reconcilers.SuppressTransientErrors[*resources.Widget, *resources.WidgetList]

func never(context.Context, *resources.Widget) bool { return false }

func items[I any](of ...I) func(context.Context, *resources.Widget) ([]I, error) {
	return func(context.Context, *resources.Widget) ([]I, error) { return of, nil }
}

func unchangedConfig(_ context.Context, c reconcilers.Config) (reconcilers.Config, error) {
	return c, nil
}

func TestNodesValidate(t *testing.T) {
	valid, invalid := &widgetSync{Sync: func(context.Context, *resources.Widget) error { return nil }}, &widgetSync{}
	type (
		advice   = reconcilers.Advice[*resources.Widget]
		while    = reconcilers.While[*resources.Widget]
		forEach  = reconcilers.ForEach[*resources.Widget, int]
		tryCatch = reconcilers.TryCatch[*resources.Widget]
		override = reconcilers.OverrideSetup[*resources.Widget]
		config   = reconcilers.WithConfig[*resources.Widget]
	)
	validationTests{
		"Advice":                  {node: &advice{}, shallow: `Advice "Advice" must implement Reconciler`},
		"Advice, reconciler only": {node: &advice{Reconciler: valid}},
		"Advice, named":           {node: &advice{Name: "my"}, shallow: `Advice "my" must implement Reconciler`},
		"Advice, invalid": {
			node:      &advice{Reconciler: invalid},
			recursive: `Advice "Advice" must have a valid Reconciler: ` + invalidSync,
		},
		"While, empty":         {node: &while{}, shallow: `While "While" must implement Condition`},
		"While, no reconciler": {node: &while{Condition: never}, shallow: `While "While" must implement Reconciler`},
		"While":                {node: &while{Condition: never, Reconciler: valid}},
		"While, invalid": {
			node:      &while{Condition: never, Reconciler: invalid},
			recursive: `While "While" must have a valid Reconciler: ` + invalidSync,
		},
		"ForEach, empty":    {node: &forEach{}, shallow: `ForEach "ForEach" must implement Reconciler`},
		"ForEach, no items": {node: &forEach{Reconciler: valid}, shallow: `ForEach "ForEach" must implement Items`},
		"ForEach":           {node: &forEach{Reconciler: valid, Items: items[int]()}},
		"ForEach, invalid": {
			node:      &forEach{Reconciler: invalid, Items: items[int]()},
			recursive: `ForEach "ForEach" must have a valid Reconciler: ` + invalidSync,
		},
		"TryCatch, empty":   {node: &tryCatch{}, shallow: `TryCatch "TryCatch" must implement Try`},
		"TryCatch":          {node: &tryCatch{Try: valid}},
		"TryCatch, invalid": {node: &tryCatch{Try: invalid}, recursive: `TryCatch "TryCatch" must have a valid Try: ` + invalidSync},
		"TryCatch, invalid finally": {
			node:      &tryCatch{Try: valid, Finally: invalid},
			recursive: `TryCatch "TryCatch" must have a valid Finally: ` + invalidSync,
		},
		"OverrideSetup, empty": {
			node:    &override{},
			shallow: `OverrideSetup "SkipSetup" must implement at least one of Setup or Reconciler`,
		},
		"OverrideSetup":             {node: &override{Reconciler: valid}},
		"OverrideSetup, setup only": {node: &override{Setup: (&hooks{}).SetupWithManager}},
		"OverrideSetup, invalid": {
			node:      &override{Reconciler: invalid},
			recursive: `OverrideSetup "SkipSetup" must have a valid Reconciler: ` + invalidSync,
		},
		"WithConfig, empty":         {node: &config{}, shallow: `WithConfig "WithConfig" must define Config`},
		"WithConfig, no reconciler": {node: &config{Config: unchangedConfig}, shallow: `WithConfig "WithConfig" must define Reconciler`},
		"WithConfig":                {node: &config{Config: unchangedConfig, Reconciler: valid}},
		"WithConfig, invalid": {
			node:      &config{Config: unchangedConfig, Reconciler: invalid},
			recursive: `WithConfig "WithConfig" must have a valid Reconciler: ` + invalidSync,
		},
		"Suppress, empty": {
			node:    &suppress{},
			shallow: `SuppressTransientErrors "SuppressTransientErrors" must implement Reconciler`,
		},
		"Suppress": {node: &suppress{Reconciler: valid}},
		"Suppress, invalid": {
			node:      &suppress{Reconciler: invalid},
			recursive: `SuppressTransientErrors "SuppressTransientErrors" must have a valid Reconciler: ` + invalidSync,
		},
		"an empty list is valid here": {node: &advice{Reconciler: widgetSequence{}}},
	}.run(t)
}
