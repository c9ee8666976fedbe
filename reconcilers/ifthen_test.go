package reconcilers_test

import (
	"context"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
)

func TestIfThen(t *testing.T) {
	twoMinutes := reconcilers.Result{RequeueAfter: 2 * time.Minute}
	node := func(holds bool, thenErr, elseErr error) func(*trace) widgetNode {
		return func(calls *trace) widgetNode {
			return &widgetIfThen{
				If: func(context.Context, *resources.Widget) bool {
					calls.add("if")
					return holds
				},
				Then: calls.step("then", minute, thenErr),
				Else: calls.step("else", twoMinutes, elseErr),
			}
		}
	}
	nodeTests{
		"then": {
			node:       node(true, nil, errBoom),
			calls:      []string{"if", "then"},
			widgetCase: widgetCase{ExpectedResult: minute},
		},
		"then, terminating": {
			node:       node(true, nil, errBoom),
			calls:      []string{"if", "then"},
			widgetCase: widgetCase{Resource: terminatingWidget.Object(), ExpectedResult: minute},
		},
		"then fails": {
			node:       node(true, errBoom, nil),
			calls:      []string{"if", "then"},
			widgetCase: widgetCase{ShouldErr: true, Verify: returnsBoth(errBoom, minute)},
		},
		"else": {
			node:       node(false, errBoom, nil),
			calls:      []string{"if", "else"},
			widgetCase: widgetCase{ExpectedResult: twoMinutes},
		},
		"else fails": {
			node:       node(false, nil, errBoom),
			calls:      []string{"if", "else"},
			widgetCase: widgetCase{ShouldErr: true, Verify: returnsBoth(errBoom, twoMinutes)},
		},
		"no else": {
			node: func(calls *trace) widgetNode {
				return &widgetIfThen{
					If:   func(context.Context, *resources.Widget) bool { return false },
					Then: calls.step("then", minute, nil),
				}
			},
			calls: []string{},
		},
		"then changes what the condition looks at": {
			node: func(calls *trace) widgetNode {
				return &widgetIfThen{
					If: func(_ context.Context, w *resources.Widget) bool { return w.Status.Fields["done"] == "" },
					Then: &widgetSync{Sync: func(_ context.Context, w *resources.Widget) error {
						w.Status.AddField("done", "yes")
						return nil
					}},
					Else: calls.step("else", minute, nil),
				}
			},
			calls:      []string{},
			widgetCase: widgetCase{ExpectResource: widget.With(statusField("done", "yes")).Object()},
		},
	}.run(t)
}

func TestIfThenValidate(t *testing.T) {
	always := func(context.Context, *resources.Widget) bool { return true }
	valid := &widgetSync{Sync: func(context.Context, *resources.Widget) error { return nil }}
	invalid := &widgetSync{}
	const missing = `SyncReconciler "SyncReconciler" must implement Sync or SyncWithResult`
	validationTests{
		"empty":    {node: &widgetIfThen{}, shallow: `IfThen "IfThen" must implement If`},
		"no If":    {node: &widgetIfThen{Name: "mine", Then: valid, Else: valid}, shallow: `IfThen "mine" must implement If`},
		"no Then":  {node: &widgetIfThen{If: always, Else: valid}, shallow: `IfThen "IfThen" must implement Then`},
		"no Else":  {node: &widgetIfThen{If: always, Then: valid}},
		"all":      {node: &widgetIfThen{If: always, Then: valid, Else: widgetSequence{}}},
		"bad Then": {node: &widgetIfThen{If: always, Then: invalid}, recursive: `IfThen "IfThen" must have a valid Then: ` + missing},
		"bad Else": {node: &widgetIfThen{If: always, Then: valid, Else: invalid}, recursive: `IfThen "IfThen" must have a valid Else: ` + missing},
		"bad value": {
			node:      &widgetIfThen{If: always, Then: widgetSequence{invalid}},
			recursive: `IfThen "IfThen" must have a valid Then: Sequence must have a valid Sequence[0]: ` + missing,
		},
	}.run(t)
}
