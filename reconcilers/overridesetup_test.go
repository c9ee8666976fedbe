package reconcilers_test

import (
	"context"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
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
