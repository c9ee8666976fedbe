package reconcilers_test

import (
	"context"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
)

func TestOverrideSetup(t *testing.T) {
	nodeTests{
		"a node": {
			node: func(calls *trace) widgetNode {
				return &widgetOverrideSetup{Reconciler: calls.step("node", minute, nil)}
			},
			calls:      []string{"node"},
			widgetCase: widgetCase{ExpectedResult: minute},
		},
		"a node, terminating": {
			node: func(calls *trace) widgetNode {
				return &widgetOverrideSetup{Reconciler: calls.step("node", minute, nil)}
			},
			calls:      []string{"node"},
			widgetCase: widgetCase{Resource: terminatingWidget.Object(), ExpectedResult: minute},
		},
		"a node that fails": {
			node: func(calls *trace) widgetNode {
				return &widgetOverrideSetup{Reconciler: calls.step("node", minute, errBoom)}
			},
			calls:      []string{"node"},
			widgetCase: widgetCase{ShouldErr: true, Verify: returnsBoth(errBoom, minute)},
		},
		"no node": {
			node:  func(calls *trace) widgetNode { return &widgetOverrideSetup{Setup: calls.setup("itself", nil)} },
			calls: []string{},
		},
	}.run(t)
}

func TestOverrideSetupValidate(t *testing.T) {
	setup := (&trace{}).setup("itself", nil)
	valid := &widgetSync{Sync: func(context.Context, *resources.Widget) error { return nil }}
	invalid := &widgetSync{}
	const missing = `SyncReconciler "SyncReconciler" must implement Sync or SyncWithResult`
	validationTests{
		"empty": {
			node:    &widgetOverrideSetup{},
			shallow: `OverrideSetup "SkipSetup" must implement at least one of Setup or Reconciler`,
		},
		"only a set-up": {node: &widgetOverrideSetup{Setup: setup}},
		"only a node":   {node: &widgetOverrideSetup{Reconciler: valid}},
		"both":          {node: &widgetOverrideSetup{Setup: setup, Reconciler: valid}},
		"bad node": {
			node:      &widgetOverrideSetup{Name: "mine", Setup: setup, Reconciler: invalid},
			recursive: `OverrideSetup "mine" must have a valid Reconciler: ` + missing,
		},
	}.run(t)
}

func TestOverrideSetupSetup(t *testing.T) {
	ctx := testContext(t, expectWidget().Config())
	calls := &trace{}
	nested := calls.step("nested", reconcilers.Result{}, errBoom)

	checkError(t, "no Setup", (&widgetOverrideSetup{Reconciler: nested}).SetupWithManager(ctx, nil, nil), "")
	calls.compare(t, []string{})

	node := func(err error) *widgetOverrideSetup {
		return &widgetOverrideSetup{Setup: calls.setup("itself", err), Reconciler: nested}
	}
	checkError(t, "Setup", node(nil).SetupWithManager(ctx, nil, nil), "")
	checkError(t, "failing Setup", node(errBoom).SetupWithManager(ctx, nil, nil), "boom")
	checkError(t, "empty", (&widgetOverrideSetup{}).SetupWithManager(ctx, nil, nil),
		`OverrideSetup "SkipSetup" must implement at least one of Setup or Reconciler`)
	calls.compare(t, []string{"set up itself", "set up itself"})
}

// Who reads the tree sees that there is nothing.
func TestOverrideSetupDescribesNoNode(t *testing.T) {
	node := &widgetOverrideSetup{Name: "Watches", Setup: (&trace{}).setup("itself", nil)}
	if expected, actual := "OverrideSetup \"Watches\"\n", reconcilers.Describe(node).String(); actual != expected {
		t.Errorf("described as %q, expected %q", actual, expected)
	}
}
