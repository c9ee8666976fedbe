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
)

func TestSyncReconciler(t *testing.T) {
	twoMinutes := reconcilers.Result{RequeueAfter: 2 * time.Minute}
	does := func(calls *trace, call string, result reconcilers.Result, err error) func(context.Context, *resources.Widget) (reconcilers.Result, error) {
		return func(context.Context, *resources.Widget) (reconcilers.Result, error) {
			calls.add("%s", call)
			return result, err
		}
	}
	both := func(during bool, sync, finalize reconcilers.Result, syncErr, finalizeErr error) func(*trace) widgetNode {
		return func(calls *trace) widgetNode {
			return &widgetSync{
				SyncDuringFinalization: during,
				SyncWithResult:         does(calls, "sync", sync, syncErr),
				FinalizeWithResult:     does(calls, "finalize", finalize, finalizeErr),
			}
		}
	}
	beingDeleted := terminatingWidget.Object()
	nodeTests{
		"Sync": {
			node: func(*trace) widgetNode {
				return &widgetSync{Sync: func(_ context.Context, w *resources.Widget) error {
					w.Status.AddField("sync", "ran")
					return nil
				}}
			},
			widgetCase: widgetCase{ExpectResource: widget.With(statusField("sync", "ran")).Object()},
		},
		"Sync with an error": {
			node: func(*trace) widgetNode {
				return &widgetSync{Sync: func(context.Context, *resources.Widget) error { return errBoom }}
			},
			widgetCase: widgetCase{ShouldErr: true, Verify: returnsBoth(errBoom, reconcilers.Result{})},
		},
		"SyncWithResult": {
			node:       both(false, minute, twoMinutes, nil, nil),
			calls:      []string{"sync"},
			widgetCase: widgetCase{ExpectedResult: minute},
		},
		"SyncWithResult with an error": {
			node:       both(false, minute, twoMinutes, errBoom, nil),
			calls:      []string{"sync"},
			widgetCase: widgetCase{ShouldErr: true, Verify: returnsBoth(errBoom, minute)},
		},
		"living, with SyncDuringFinalization": {
			node:       both(true, minute, twoMinutes, nil, nil),
			calls:      []string{"sync"},
			widgetCase: widgetCase{ExpectedResult: minute},
		},
		"terminating, nothing to finalize": {
			node: func(calls *trace) widgetNode {
				return &widgetSync{SyncWithResult: does(calls, "sync", minute, errBoom)}
			},
			calls:      []string{},
			widgetCase: widgetCase{Resource: beingDeleted},
		},
		"Finalize": {
			node: func(*trace) widgetNode {
				return &widgetSync{
					Sync: func(context.Context, *resources.Widget) error { return errBoom },
					Finalize: func(_ context.Context, w *resources.Widget) error {
						w.Status.AddField("finalize", "ran")
						return nil
					},
				}
			},
			widgetCase: widgetCase{
				Resource:       beingDeleted,
				ExpectResource: terminatingWidget.With(statusField("finalize", "ran")).Object(),
			},
		},
		"Finalize with an error": {
			node: func(*trace) widgetNode {
				return &widgetSync{
					Sync:     func(context.Context, *resources.Widget) error { return nil },
					Finalize: func(context.Context, *resources.Widget) error { return errBoom },
				}
			},
			widgetCase: widgetCase{Resource: beingDeleted, ShouldErr: true, Verify: returnsBoth(errBoom, reconcilers.Result{})},
		},
		"FinalizeWithResult": {
			node:       both(false, minute, twoMinutes, nil, nil),
			calls:      []string{"finalize"},
			widgetCase: widgetCase{Resource: beingDeleted, ExpectedResult: twoMinutes},
		},
		"FinalizeWithResult with an error": {
			node:       both(false, minute, twoMinutes, nil, errBoom),
			calls:      []string{"finalize"},
			widgetCase: widgetCase{Resource: beingDeleted, ShouldErr: true, Verify: returnsBoth(errBoom, twoMinutes)},
		},
		"both, finalize is due first": {
			node:       both(true, twoMinutes, minute, nil, nil),
			calls:      []string{"sync", "finalize"},
			widgetCase: widgetCase{Resource: beingDeleted, ExpectedResult: minute},
		},
		"both, sync is due first": {
			node:       both(true, minute, twoMinutes, nil, nil),
			calls:      []string{"sync", "finalize"},
			widgetCase: widgetCase{Resource: beingDeleted, ExpectedResult: minute},
		},
		"both, only sync is due": {
			node:       both(true, minute, reconcilers.Result{}, nil, nil),
			calls:      []string{"sync", "finalize"},
			widgetCase: widgetCase{Resource: beingDeleted, ExpectedResult: minute},
		},
		"both, an error of sync keeps finalize from running": {
			node:       both(true, minute, twoMinutes, errBoom, nil),
			calls:      []string{"sync"},
			widgetCase: widgetCase{Resource: beingDeleted, ShouldErr: true, Verify: returnsBoth(errBoom, minute)},
		},
		"both, an error of finalize comes with the result so far": {
			node:       both(true, minute, twoMinutes, nil, errBoom),
			calls:      []string{"sync", "finalize"},
			widgetCase: widgetCase{Resource: beingDeleted, ShouldErr: true, Verify: returnsBoth(errBoom, minute)},
		},
	}.run(t)
}

func TestSyncReconcilerValidate(t *testing.T) {
	sync := func(context.Context, *resources.Widget) error { return nil }
	withResult := func(context.Context, *resources.Widget) (reconcilers.Result, error) { return reconcilers.Result{}, nil }
	validationTests{
		"empty":              {node: &widgetSync{}, shallow: `SyncReconciler "SyncReconciler" must implement Sync or SyncWithResult`},
		"named":              {node: &widgetSync{Name: "mine"}, shallow: `SyncReconciler "mine" must implement Sync or SyncWithResult`},
		"Sync":               {node: &widgetSync{Sync: sync}},
		"SyncWithResult":     {node: &widgetSync{SyncWithResult: withResult}},
		"Finalize":           {node: &widgetSync{Sync: sync, Finalize: sync}},
		"FinalizeWithResult": {node: &widgetSync{Sync: sync, FinalizeWithResult: withResult}},
		"only Finalize": {
			node:    &widgetSync{Finalize: sync},
			shallow: `SyncReconciler "SyncReconciler" must implement Sync or SyncWithResult`,
		},
		"both syncs": {
			node:    &widgetSync{Sync: sync, SyncWithResult: withResult},
			shallow: `SyncReconciler "SyncReconciler" may not implement both Sync and SyncWithResult`,
		},
		"both finalizes": {
			node:    &widgetSync{Sync: sync, Finalize: sync, FinalizeWithResult: withResult},
			shallow: `SyncReconciler "SyncReconciler" may not implement both Finalize and FinalizeWithResult`,
		},
	}.run(t)
}

// Without a Setup function, validation at set-up must not be skipped.
func TestSyncReconcilerSetup(t *testing.T) {
	ctx := testContext(t, expectWidget().Config())
	checkError(t, "invalid", (&widgetSync{}).SetupWithManager(ctx, nil, nil), `SyncReconciler "SyncReconciler" must implement Sync or SyncWithResult`)
	calls := &trace{}
	node := &widgetSync{
		Sync: func(context.Context, *resources.Widget) error { return nil },
		Setup: func(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
			calls.add("set up")
			return errBoom
		},
	}
	checkError(t, "Setup", node.SetupWithManager(ctx, nil, nil), "boom")
	node.Sync = nil
	if err := node.SetupWithManager(ctx, nil, nil); err == nil {
		t.Error("an invalid node was set up, want an error")
	}
	calls.compare(t, []string{"set up"})
}

// The controller logs the error that a root returns, so a node must not log it too.
func TestSyncReconcilerLogsNoErrors(t *testing.T) {
	for name, err := range map[string]error{
		"none":   nil,
		"error":  errBoom,
		"quiet":  fmt.Errorf("later: %w", reconcilers.ErrQuiet),
		"joined": errors.Join(errBoom, reconcilers.ErrQuiet),
		"halt":   reconcilers.ErrHaltSubReconcilers,
		"skip":   reconcilers.ErrSkipStatusUpdate,
	} {
		t.Run(name, func(t *testing.T) {
			heard := &listener{}
			ctx := logr.NewContext(testContext(t, expectWidget().Config()), heard.logger())
			node := &widgetSync{
				Sync:     func(context.Context, *resources.Widget) error { return err },
				Finalize: func(context.Context, *resources.Widget) error { return err },
			}
			for _, w := range []*resources.Widget{widget.Object(), terminatingWidget.Object()} {
				if _, returned := node.Reconcile(ctx, w); !errors.Is(returned, err) {
					t.Errorf("the error is %v, want %v", returned, err)
				}
			}
			if len(heard.heard) > 0 {
				t.Errorf("the log has %q, want no line", heard.heard)
			}
		})
	}
}
