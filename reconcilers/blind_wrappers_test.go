package reconcilers_test

import (
	"context"
	"errors"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type (
	advice   = reconcilers.Advice[*resources.Widget]
	tryCatch = reconcilers.TryCatch[*resources.Widget]
)

type (
	adviceKey    struct{}
	adviceBefore = func(context.Context, *resources.Widget) (context.Context, reconcilers.Result, error)
	// adviceAfter is that of an Advice, and the Catch of a TryCatch.
	adviceAfter = func(context.Context, *resources.Widget, reconcilers.Result, error) (reconcilers.Result, error)
)

func TestAdviceOrder(t *testing.T) {
	before := func(calls *trace, result reconcilers.Result, err error) adviceBefore {
		return func(ctx context.Context, _ *resources.Widget) (context.Context, reconcilers.Result, error) {
			calls.add("before")
			return context.WithValue(ctx, adviceKey{}, "replaced"), result, err
		}
	}
	around := func(calls *trace, times int) func(context.Context, *resources.Widget, widgetNode) (reconcilers.Result, error) {
		return func(ctx context.Context, w *resources.Widget, node widgetNode) (result reconcilers.Result, err error) {
			calls.add("around, context %v", ctx.Value(adviceKey{}))
			for range times {
				if result, err = node.Reconcile(ctx, w); err != nil {
					break
				}
			}
			return result, err
		}
	}
	after := func(calls *trace, result reconcilers.Result, err error) adviceAfter {
		return func(ctx context.Context, _ *resources.Widget, r reconcilers.Result, e error) (reconcilers.Result, error) {
			calls.add("after %v, %v, context %v", r.RequeueAfter, e, ctx.Value(adviceKey{}))
			return result, err
		}
	}
	nodeTests{
		"nothing but the node": {
			widgetCase: widgetCase{ExpectedResult: minute},
			node:       func(calls *trace) widgetNode { return &advice{Reconciler: calls.step("node", minute, nil)} },
			calls:      []string{"node"},
		},
		"all, with the shorter delay": {
			widgetCase: widgetCase{ExpectedResult: requeue},
			node: func(calls *trace) widgetNode {
				return &advice{
					Reconciler: calls.step("node", twoMinutes, nil),
					Before:     before(calls, minute, nil), Around: around(calls, 1), After: after(calls, requeue, nil),
				}
			},
			calls: []string{"before", "around, context replaced", "node", "after 1m0s, <nil>, context replaced"},
		},
		"results are aggregated": {
			widgetCase: widgetCase{ExpectedResult: minute},
			node: func(calls *trace) widgetNode {
				return &advice{Reconciler: calls.step("node", twoMinutes, nil), Before: before(calls, minute, nil)}
			},
			calls: []string{"before", "node"},
		},
		"no context keeps the current one": {
			node: func(calls *trace) widgetNode {
				return &advice{
					Reconciler: calls.step("node", nothing, nil),
					Before: func(context.Context, *resources.Widget) (context.Context, reconcilers.Result, error) {
						return nil, nothing, nil
					},
				}
			},
			calls: []string{"node"},
		},
		"an error before": {
			widgetCase: widgetCase{ShouldErr: true, Verify: returnsBoth(errBoom, minute)},
			node: func(calls *trace) widgetNode {
				return &advice{
					Reconciler: calls.step("node", nothing, nil),
					Before:     before(calls, minute, errBoom), Around: around(calls, 1), After: after(calls, nothing, nil),
				}
			},
			calls: []string{"before"},
		},
		"around may skip": {
			node: func(calls *trace) widgetNode {
				return &advice{Reconciler: calls.step("node", minute, nil), Around: around(calls, 0)}
			},
			calls: []string{"around, context <nil>"},
		},
		"around may repeat": {
			widgetCase: widgetCase{ExpectedResult: minute},
			node: func(calls *trace) widgetNode {
				return &advice{Reconciler: calls.step("node", minute, nil), Around: around(calls, 3)}
			},
			calls: []string{"around, context <nil>", "node", "node", "node"},
		},
		"after may drop an error": {
			widgetCase: widgetCase{ExpectedResult: twoMinutes},
			node: func(calls *trace) widgetNode {
				return &advice{Reconciler: calls.step("node", minute, errBoom), After: after(calls, twoMinutes, nil)}
			},
			calls: []string{"node", "after 1m0s, boom, context <nil>"},
		},
		"after may make one": {
			widgetCase: widgetCase{ShouldErr: true, Verify: returnsBoth(errOther, nothing)},
			node: func(calls *trace) widgetNode {
				return &advice{Reconciler: calls.step("node", minute, nil), After: after(calls, nothing, errOther)}
			},
			calls: []string{"node", "after 1m0s, <nil>, context <nil>"},
		},
	}.run(t)
}

// loud checks that an error is returned, and that nothing silences it.
func loud(expected error) rtesting.VerifyFunc {
	return func(t *testing.T, result reconcilers.Result, err error) {
		t.Helper()
		returns(expected)(t, result, err)
		if errors.Is(err, reconcilers.ErrQuiet) {
			t.Errorf("%v is silenced", err)
		}
	}
}

func TestTryCatchOutcomes(t *testing.T) {
	catch := func(calls *trace, result reconcilers.Result, err error) adviceAfter {
		return func(_ context.Context, _ *resources.Widget, r reconcilers.Result, e error) (reconcilers.Result, error) {
			calls.add("catch %v, %v", r.RequeueAfter, e)
			return result, err
		}
	}
	nodeTests{
		"success": {
			widgetCase: widgetCase{ExpectedResult: minute},
			node:       func(calls *trace) widgetNode { return &tryCatch{Try: calls.step("try", minute, nil)} },
			calls:      []string{"try"},
		},
		"an error": {
			widgetCase: widgetCase{ShouldErr: true, Verify: returnsBoth(errBoom, minute)},
			node:       func(calls *trace) widgetNode { return &tryCatch{Try: calls.step("try", minute, errBoom)} },
		},
		"caught": {
			widgetCase: widgetCase{ExpectedResult: twoMinutes},
			node: func(calls *trace) widgetNode {
				return &tryCatch{Try: calls.step("try", minute, errBoom), Catch: catch(calls, twoMinutes, nil)}
			},
			calls: []string{"try", "catch 1m0s, boom"},
		},
		"catch sees success too, and makes an error": {
			widgetCase: widgetCase{ShouldErr: true, Verify: returnsBoth(errOther, nothing)},
			node: func(calls *trace) widgetNode {
				return &tryCatch{Try: calls.step("try", minute, nil), Catch: catch(calls, nothing, errOther)}
			},
			calls: []string{"try", "catch 1m0s, <nil>"},
		},
		"finally, after success": {
			widgetCase: widgetCase{ExpectedResult: minute},
			node: func(calls *trace) widgetNode {
				return &tryCatch{Try: calls.step("try", twoMinutes, nil), Finally: calls.step("finally", minute, nil)}
			},
			calls: []string{"try", "finally"},
		},
		"finally keeps the error": {
			widgetCase: widgetCase{ShouldErr: true, Verify: returnsBoth(errBoom, minute)},
			node: func(calls *trace) widgetNode {
				return &tryCatch{Try: calls.step("try", twoMinutes, errBoom), Finally: calls.step("finally", minute, nil)}
			},
			calls: []string{"try", "finally"},
		},
		"an error of finally stands beside the other": {
			widgetCase: widgetCase{ShouldErr: true, Verify: func(t *testing.T, result reconcilers.Result, err error) {
				returnsBoth(errOther, minute)(t, result, err)
				returns(errBoom)(t, result, err)
			}},
			node: func(calls *trace) widgetNode {
				return &tryCatch{
					Try:     calls.step("try", nothing, errBoom),
					Catch:   catch(calls, twoMinutes, errBoom),
					Finally: calls.step("finally", minute, errOther),
				}
			},
			calls: []string{"try", "catch 0s, boom", "finally"},
		},
		"a halt does not silence finally": {
			widgetCase: widgetCase{ShouldErr: true, Verify: loud(errOther)},
			node: func(calls *trace) widgetNode {
				return &tryCatch{
					Try:     calls.step("try", nothing, reconcilers.ErrHaltSubReconcilers),
					Finally: calls.step("finally", nothing, errOther),
				}
			},
		},
		"a halt of finally does not silence an error": {
			widgetCase: widgetCase{ShouldErr: true, Verify: loud(errBoom)},
			node: func(calls *trace) widgetNode {
				return &tryCatch{
					Try:     calls.step("try", nothing, errBoom),
					Finally: calls.step("finally", nothing, reconcilers.ErrHaltSubReconcilers),
				}
			},
		},
		"a panic is not caught": {
			widgetCase: widgetCase{ShouldPanic: true},
			node: func(calls *trace) widgetNode {
				return &tryCatch{
					Try:   &hooks{reconcile: func(context.Context, *resources.Widget) (reconcilers.Result, error) { panic("boom") }},
					Catch: catch(calls, nothing, nil), Finally: calls.step("finally", nothing, nil),
				}
			},
			calls: []string{},
		},
	}.run(t)
}

func TestOverrideSetupDelegates(t *testing.T) {
	nodeTests{
		"result and error": {
			widgetCase: widgetCase{ShouldErr: true, Verify: returnsBoth(errBoom, minute)},
			node: func(calls *trace) widgetNode {
				return &reconcilers.OverrideSetup[*resources.Widget]{Reconciler: calls.step("node", minute, errBoom)}
			},
			calls: []string{"node"},
		},
		"no reconciler": {
			node: func(*trace) widgetNode {
				return &reconcilers.OverrideSetup[*resources.Widget]{Setup: (&hooks{}).SetupWithManager}
			},
			calls: []string{},
		},
	}.run(t)
}

func TestWithConfigReplacesTheCurrentConfigOnly(t *testing.T) {
	other := func(ctx context.Context, _ reconcilers.Config) (reconcilers.Config, error) {
		return reconcilers.RetrieveAdditionalConfigs(ctx)["other"], nil
	}
	nodeTests{
		"a child is created there, its event recorded here, its track kept there": {
			widgetCase: widgetCase{
				WithReactors: []rtesting.ReactionFunc{born},
				AdditionalConfigs: map[string]rtesting.ExpectConfig{"other": {
					ExpectCreates: []client.Object{configMap},
					ExpectTracks:  []rtesting.TrackRequest{rtesting.NewTrackRequest(configMap, widget, widgetScheme)},
				}},
				ExpectEvents:   []rtesting.Event{normal("FinalizerPatched", `Patched finalizer "f.io/f"`), normal("Created", `Created ConfigMap "gadget"`)},
				ExpectPatches:  []rtesting.PatchRef{finalizersPatch(`{"metadata":{"finalizers":["f.io/f"],"resourceVersion":"999"}}`)},
				ExpectResource: widget.With(patchedBy("f.io/f")).Object(),
			},
			node: func(*trace) widgetNode {
				return &reconcilers.WithConfig[*resources.Widget]{Config: other, Reconciler: &configMapNode{
					DesiredChild: func(context.Context, *resources.Widget) (*corev1.ConfigMap, error) { return configMap.Object(), nil },
					ChildObjectManager: &configMaps{
						Finalizer: "f.io/f", TrackDesired: true, MergeBeforeUpdate: mergeConfigMap,
					},
					ReflectChildStatusOnParent: func(context.Context, *resources.Widget, *corev1.ConfigMap, error) {},
				}}
			},
		},
		"is asked in each request, for the current config": {
			node: func(calls *trace) widgetNode {
				return &reconcilers.WithConfig[*resources.Widget]{
					Config: func(ctx context.Context, c reconcilers.Config) (reconcilers.Config, error) {
						calls.add("asked, current %t", c == reconcilers.RetrieveConfigOrDie(ctx))
						return reconcilers.RetrieveAdditionalConfigs(ctx)["other"], nil
					},
					Reconciler: &hooks{reconcile: func(ctx context.Context, _ *resources.Widget) (reconcilers.Result, error) {
						current, original := reconcilers.RetrieveConfigOrDie(ctx), reconcilers.RetrieveOriginalConfigOrDie(ctx)
						calls.add("replaced %t", current != original)
						return nothing, nil
					}},
				}
			},
			calls: []string{"asked, current true", "replaced true"},
		},
		"an error": {
			widgetCase: widgetCase{ShouldErr: true, Verify: returnsBoth(errBoom, nothing)},
			node: func(calls *trace) widgetNode {
				return &reconcilers.WithConfig[*resources.Widget]{
					Config:     func(_ context.Context, c reconcilers.Config) (reconcilers.Config, error) { return c, errBoom },
					Reconciler: calls.step("node", minute, nil),
				}
			},
			calls: []string{},
		},
	}.run(t)
}
