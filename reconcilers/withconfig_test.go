package reconcilers_test

import (
	"context"
	"errors"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// elsewhere is the Config of a WithConfig that returns an additional config of the case.
func elsewhere(ctx context.Context, _ reconcilers.Config) (reconcilers.Config, error) {
	return reconcilers.RetrieveAdditionalConfigs(ctx)["elsewhere"], nil
}

func TestWithConfig(t *testing.T) {
	unable := func(calls *trace, err error) func(context.Context, reconcilers.Config) (reconcilers.Config, error) {
		return func(context.Context, reconcilers.Config) (reconcilers.Config, error) {
			calls.add("config")
			return reconcilers.Config{}, err
		}
	}
	// sees returns a node that checks which configs it is given.
	sees := func(calls *trace, where string, current func(context.Context) reconcilers.Config) widgetNode {
		return &widgetSync{
			Sync: func(ctx context.Context, _ *resources.Widget) error {
				calls.add("%s: current %v, original %v", where,
					reconcilers.RetrieveConfigOrDie(ctx) == current(ctx),
					reconcilers.RetrieveOriginalConfigOrDie(ctx) != reconcilers.RetrieveAdditionalConfigs(ctx)["elsewhere"])
				return nil
			},
		}
	}
	other := func(ctx context.Context) reconcilers.Config {
		return reconcilers.RetrieveAdditionalConfigs(ctx)["elsewhere"]
	}
	created := normal("Created", `Created ConfigMap "gadget"`)
	patched := normal("FinalizerPatched", `Patched finalizer "`+ours+`"`)
	child := configMap.With(labelled)

	nodeTests{
		"the current config is replaced below the node, the original one stays": {
			node: func(calls *trace) widgetNode {
				return widgetSequence{
					sees(calls, "before", reconcilers.RetrieveOriginalConfigOrDie),
					&widgetWithConfig{Config: elsewhere, Reconciler: widgetSequence{
						sees(calls, "below", other),
						&widgetWithConfig{
							Config: func(ctx context.Context, current reconcilers.Config) (reconcilers.Config, error) {
								calls.add("given the current one: %v", current == other(ctx))
								return reconcilers.RetrieveOriginalConfig(ctx)
							},
							Reconciler: sees(calls, "and back", reconcilers.RetrieveOriginalConfigOrDie),
						},
						sees(calls, "still below", other),
					}},
					sees(calls, "after", reconcilers.RetrieveOriginalConfigOrDie),
				}
			},
			calls: []string{
				"before: current true, original true",
				"below: current true, original true",
				"given the current one: true",
				"and back: current true, original true",
				"still below: current true, original true",
				"after: current true, original true",
			},
			widgetCase: widgetCase{AdditionalConfigs: map[string]rtesting.ExpectConfig{"elsewhere": {}}},
		},
		"result": {
			node: func(calls *trace) widgetNode {
				return &widgetWithConfig{Config: sameConfig, Reconciler: calls.step("node", minute, nil)}
			},
			calls:      []string{"node"},
			widgetCase: widgetCase{ExpectedResult: minute},
		},
		"result, terminating": {
			node: func(calls *trace) widgetNode {
				return &widgetWithConfig{Config: sameConfig, Reconciler: calls.step("node", minute, nil)}
			},
			calls:      []string{"node"},
			widgetCase: widgetCase{Resource: terminatingWidget.Object(), ExpectedResult: minute},
		},
		"error": {
			node: func(calls *trace) widgetNode {
				return &widgetWithConfig{Config: sameConfig, Reconciler: calls.step("node", minute, errBoom)}
			},
			calls:      []string{"node"},
			widgetCase: widgetCase{ShouldErr: true, Verify: returnsBoth(errBoom, minute)},
		},
		"no config": {
			node: func(calls *trace) widgetNode {
				return &widgetWithConfig{Config: unable(calls, errBoom), Reconciler: calls.step("node", minute, nil)}
			},
			calls:      []string{"config"},
			widgetCase: widgetCase{ShouldErr: true, Verify: returnsBoth(errBoom, reconcilers.Result{})},
		},
		"a child is elsewhere, while finalizers and events are where the resource is": {
			node: func(calls *trace) widgetNode {
				return &widgetWithConfig{Config: elsewhere, Reconciler: guardedShortForm()(calls)}
			},
			calls: []string{"desired child", "patch Widget", "reflect gadget, <nil>"},
			widgetCase: widgetCase{
				AdditionalConfigs: map[string]rtesting.ExpectConfig{"elsewhere": {
					ExpectCreates: []client.Object{child},
					ExpectTracks:  []rtesting.TrackRequest{rtesting.NewTrackRequest(child, widget, widgetScheme)},
				}},
				ExpectResource: widget.With(patchedBy(ours), statusField("child", "gadget")).Object(),
				ExpectPatches:  finalizersPatches(ours),
				ExpectEvents:   []rtesting.Event{patched, created},
			},
		},
	}.run(t)
}

// The config is asked for anew in each request, and in set-up.
func TestWithConfigAsksEachTime(t *testing.T) {
	calls := &trace{}
	node := &widgetWithConfig{
		Config: func(ctx context.Context, config reconcilers.Config) (reconcilers.Config, error) {
			calls.add("config at %s", reconcilers.RetrievePath(ctx))
			return config, nil
		},
		Reconciler: calls.step("node", reconcilers.Result{}, nil),
	}
	ctx := testContext(t, expectWidget().Config())
	if err := node.SetupWithManager(ctx, nil, nil); err != nil {
		t.Error(err)
	}
	for range 2 {
		if _, err := node.Reconcile(ctx, widget.Object()); err != nil {
			t.Error(err)
		}
	}
	calls.compare(t, []string{
		"config at WithConfig", "set up node", "config at WithConfig", "node", "config at WithConfig", "node",
	})
}

// A node that is called by hand, without what a root puts on the context, fails and does not panic.
func TestWithConfigOutsideOfATree(t *testing.T) {
	node := &widgetWithConfig{Config: sameConfig, Reconciler: widgetSequence{}}
	const missing = "config must exist on the context. Check that the context is from a ResourceReconciler or WithConfig"
	_, err := node.Reconcile(t.Context(), widget.Object())
	checkError(t, "in a request", err, missing)
	checkError(t, "in set-up", node.SetupWithManager(t.Context(), nil, nil), missing)
}

func TestWithConfigValidate(t *testing.T) {
	valid := &widgetSync{Sync: func(context.Context, *resources.Widget) error { return nil }}
	invalid := &widgetSync{}
	unused := func(context.Context, reconcilers.Config) (reconcilers.Config, error) {
		return reconcilers.Config{}, errors.New("not for validation")
	}
	const missing = `SyncReconciler "SyncReconciler" must implement Sync or SyncWithResult`
	validationTests{
		"empty":         {node: &widgetWithConfig{}, shallow: `WithConfig "WithConfig" must define Config`},
		"no Config":     {node: &widgetWithConfig{Name: "mine", Reconciler: valid}, shallow: `WithConfig "mine" must define Config`},
		"no Reconciler": {node: &widgetWithConfig{Config: unused}, shallow: `WithConfig "WithConfig" must define Reconciler`},
		"valid":         {node: &widgetWithConfig{Config: unused, Reconciler: valid}},
		"bad node": {
			node:      &widgetWithConfig{Config: unused, Reconciler: invalid},
			recursive: `WithConfig "WithConfig" must have a valid Reconciler: ` + missing,
		},
	}.run(t)
}

func TestWithConfigSetup(t *testing.T) {
	here, there := expectWidget().Config(), expectWidget().Config()
	ctx := testContext(t, here)
	calls := &trace{}
	node := &widgetWithConfig{
		Config: func(_ context.Context, current reconcilers.Config) (reconcilers.Config, error) {
			calls.add("given the current one: %v", current == here)
			return there, nil
		},
		Reconciler: &widgetSync{
			Setup: func(ctx context.Context, _ reconcilers.Manager, _ *reconcilers.Builder) error {
				original, err := reconcilers.RetrieveOriginalConfig(ctx)
				calls.add("current %v, original %v", reconcilers.RetrieveConfigOrDie(ctx) == there, original == here)
				return err
			},
			Sync: func(context.Context, *resources.Widget) error { return nil },
		},
	}
	checkError(t, "all", node.SetupWithManager(ctx, nil, nil), "")
	calls.compare(t, []string{"given the current one: true", "current true, original true"})

	calls.calls = nil
	nested := calls.step("nested", reconcilers.Result{}, errBoom)
	checkError(t, "failing node", (&widgetWithConfig{Config: sameConfig, Reconciler: nested}).SetupWithManager(ctx, nil, nil), "boom")
	unable := func(context.Context, reconcilers.Config) (reconcilers.Config, error) {
		return reconcilers.Config{}, errors.New("no such cluster")
	}
	checkError(t, "failing Config", (&widgetWithConfig{Config: unable, Reconciler: nested}).SetupWithManager(ctx, nil, nil), "no such cluster")
	checkError(t, "empty", (&widgetWithConfig{}).SetupWithManager(ctx, nil, nil), `WithConfig "WithConfig" must define Config`)
	calls.compare(t, []string{"set up nested"})
}

// What a root writes of the resource is written with its own config, even if the node below has replaced it.
func TestWithConfigLeavesTheStatusToTheRoot(t *testing.T) {
	statuses := 0
	here := expectWidget(widget)
	here.WithReactors = []rtesting.ReactionFunc{func(action rtesting.Action) (bool, runtime.Object, error) {
		if action.GetVerb() == "update" && action.GetSubresource() == "status" {
			statuses++
		}
		return false, nil, nil
	}}
	there := expectWidget().Config()
	root := &widgetRoot{
		Config: here.Config(),
		Reconciler: &widgetWithConfig{
			Config:     func(context.Context, reconcilers.Config) (reconcilers.Config, error) { return there, nil },
			Reconciler: syncing(func(_ context.Context, w *resources.Widget) { w.Status.AddField("done", "yes") }),
		},
	}
	if _, err := root.Reconcile(t.Context(), widgetRequest); err != nil {
		t.Fatal(err)
	}
	if statuses != 1 {
		t.Errorf("the status is written %d times where the resource is, want once", statuses)
	}
}
