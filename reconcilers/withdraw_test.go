package reconcilers_test

import (
	"context"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// withFinalizers puts finalizers on a widget.
func withFinalizers(w *resources.Widget, finalizers ...string) *resources.Widget {
	w.Finalizers = finalizers
	return w
}

// patched is a widget after a patch of its finalizers.
func patched(w *resources.Widget, finalizers ...string) *resources.Widget {
	patchedBy(finalizers...)(w)
	return w
}

func TestWithdrawFinalizes(t *testing.T) {
	withdraw, maintain, suspend := asked("supervision", "Withdraw"), asked(), asked("supervision", "Suspend")
	sync := func(calls *trace, name string, err error) widgetNode {
		record := func(function string, err error) func(context.Context, *resources.Widget) error {
			return func(context.Context, *resources.Widget) error {
				calls.add("%s %s", function, name)
				return err
			}
		}
		return &widgetSync{Name: name, Sync: record("sync", nil), Finalize: record("finalize", err)}
	}
	alone := func(calls *trace) widgetNode { return supervised{sync(calls, "alone", nil)} }
	guarded := func(err error, ready bool) func(*trace) widgetNode {
		return func(calls *trace) widgetNode {
			return supervised{&widgetFinalizer{
				Finalizer:             ours,
				ReadyToClearFinalizer: func(context.Context, *resources.Widget) bool { return ready },
				Reconciler:            sync(calls, "guarded", err),
			}}
		}
	}
	nested := func(calls *trace) widgetNode {
		return supervised{&widgetFinalizer{Finalizer: ours, Reconciler: widgetSequence{
			sync(calls, "outer", nil),
			&widgetFinalizer{Finalizer: theirs, Reconciler: sync(calls, "inner", nil)},
		}}}
	}
	outside := func(calls *trace) widgetNode {
		return &widgetFinalizer{Finalizer: ours, Reconciler: supervised{sync(calls, "supervised", nil)}}
	}
	event := []rtesting.Event{normal("FinalizerPatched", `Patched finalizer "`+ours+`"`)}

	nodeTests{
		"nothing guards it": {
			node: alone, calls: []string{}, widgetCase: widgetCase{Resource: withFinalizers(withdraw(), ours)},
		},
		"maintained": {
			node: alone, calls: []string{"sync alone"}, widgetCase: widgetCase{Resource: maintain()},
		},
		"suspended": {
			node: alone, calls: []string{"sync alone"}, widgetCase: widgetCase{Resource: suspend()},
		},
		"terminating": {
			node: alone, calls: []string{"finalize alone"}, widgetCase: widgetCase{Resource: terminatingWidget.Object()},
		},
		"the finalizer is there": {
			node: guarded(nil, true), calls: []string{"finalize guarded", "patch Widget"},
			widgetCase: widgetCase{
				Resource:       withFinalizers(withdraw(), ours),
				ExpectResource: patched(withdraw()),
				ExpectPatches:  finalizersPatches(), ExpectEvents: event,
			},
		},
		"the finalizer is not there": {
			node: guarded(nil, true), calls: []string{}, widgetCase: widgetCase{Resource: withdraw()},
		},
		"it fails": {
			node: guarded(errBoom, true), calls: []string{"finalize guarded"},
			widgetCase: widgetCase{Resource: withFinalizers(withdraw(), ours), ExpectedErr: errBoom},
		},
		"it is not ready": {
			node: guarded(nil, false), calls: []string{"finalize guarded"},
			widgetCase: widgetCase{Resource: withFinalizers(withdraw(), ours)},
		},
		"suspended, the finalizer is there": {
			node: guarded(nil, true), calls: []string{"sync guarded"},
			widgetCase: widgetCase{Resource: withFinalizers(suspend(), ours)},
		},
		"only the outer finalizer is there": {
			node: nested, calls: []string{"finalize outer", "patch Widget"},
			widgetCase: widgetCase{
				Resource:       withFinalizers(withdraw(), ours),
				ExpectResource: patched(withdraw()),
				ExpectPatches:  finalizersPatches(), ExpectEvents: event,
			},
		},
		"the finalizer guards more than what is withdrawn": {
			node: outside, calls: []string{}, widgetCase: widgetCase{Resource: withFinalizers(withdraw(), ours)},
		},
	}.run(t)
}

func TestWithdrawReverses(t *testing.T) {
	withdraw := asked("supervision", "Withdraw")
	nodeTests{
		"in reverse order": {
			node: func(calls *trace) widgetNode {
				return supervised{widgetReverse{calls.step("a", nothing, nil), calls.step("b", nothing, nil)}}
			},
			calls: []string{"b", "a"}, widgetCase: widgetCase{Resource: withdraw()},
		},
		"one that has not finished": {
			node: func(calls *trace) widgetNode {
				return supervised{widgetReverse{calls.step("a", nothing, nil), calls.step("b", minute, nil)}}
			},
			calls: []string{"b"}, widgetCase: widgetCase{Resource: withdraw(), ExpectedResult: minute},
		},
	}.run(t)
}

// Children go, whether the finalizer around them is there or not, and their own finalizer goes with the last.
func TestWithdrawChildrenWithFinalizer(t *testing.T) {
	withdraw := asked("supervision", "Withdraw")
	given := givenConfigMap.With(labelled)
	deletes := []rtesting.DeleteRef{rtesting.NewDeleteRefFromObject(given, widgetScheme)}
	deleted := normal("Deleted", `Deleted ConfigMap "gadget"`)
	cleared := normal("FinalizerPatched", `Patched finalizer "`+ours+`"`)
	tracks := []rtesting.TrackRequest{rtesting.NewTrackRequest(given, widget, widgetScheme)}

	widgetRows{
		"the finalizer is there": {
			Resource:       withFinalizers(withdraw(), ours),
			ExpectResource: withdraw("WithFinalizer/Child: ConfigMap default/gadget: terminating"),
			GivenObjects:   []client.Object{givenConfigMap},
			ExpectDeletes:  deletes, ExpectPatches: finalizersPatches(),
			ExpectEvents: []rtesting.Event{deleted, cleared},
		},
		"the finalizer is not there": {
			Resource:       withdraw(),
			ExpectResource: withdraw("WithFinalizer/Child: ConfigMap default/gadget: terminating"),
			GivenObjects:   []client.Object{givenConfigMap},
			ExpectDeletes:  deletes, ExpectEvents: []rtesting.Event{deleted},
		},
		"nothing is there": {Resource: withdraw()},
	}.RunNode(t, widgetScheme, func() widgetNode {
		child := supervisedChild().(supervised)
		return supervised{&widgetFinalizer{Finalizer: ours, Reconciler: child.widgetNode}}
	})

	guarded := map[string]func() widgetNode{
		"Child": func() widgetNode {
			node := guardedShortForm()(&trace{}).(*configMapNode)
			node.Name = "Child"
			return supervised{node}
		},
		"Set/": func() widgetNode {
			node := supervisedSet().(supervised).widgetNode.(*configMapSet)
			node.Finalizer = ours
			node.ListOptions = func(_ context.Context, w *resources.Widget) []client.ListOption {
				return []client.ListOption{client.MatchingLabels{"widget": w.Name}}
			}
			node.OurChild = func(w *resources.Widget, child *corev1.ConfigMap) bool {
				return child.Labels["widget"] == w.Name
			}
			return supervised{node}
		},
	}
	for path, node := range guarded {
		reflects := func(w *resources.Widget) *resources.Widget {
			if path == "Child" {
				w.Status.AddField("child", "nothing")
			}
			return w
		}
		t.Run(path, func(t *testing.T) {
			widgetRows{
				"the child is there": {
					Resource: withFinalizers(withdraw(), ours),
					ExpectResource: reflects(withFinalizers(
						withdraw(path+": ConfigMap default/gadget: terminating"), ours)),
					GivenObjects:  []client.Object{given},
					ExpectDeletes: deletes, ExpectEvents: []rtesting.Event{deleted},
					ExpectTracks: tracks,
				},
				"the child is gone": {
					Resource:       withFinalizers(withdraw(), ours),
					ExpectResource: reflects(withdraw()),
					ExpectPatches:  finalizersPatches(), ExpectEvents: []rtesting.Event{cleared},
				},
				// The finalizer stays while the cache alone shows that the child is gone.
				"the cache does not show the child": {
					Resource: withFinalizers(withdraw(), ours),
					ExpectResource: reflects(withFinalizers(
						withdraw(path+": ConfigMap default/gadget: terminating"), ours)),
					APIGivenObjects: []client.Object{given},
					ExpectDeletes:   deletes, ExpectEvents: []rtesting.Event{deleted},
					ExpectTracks: tracks,
				},
				"nothing is there": {Resource: withdraw(), ExpectResource: reflects(withdraw())},
			}.RunNode(t, widgetScheme, node)
		})
	}
}

// A node that is written for another type obeys the supervisor too.
func TestWithdrawBelowCastResource(t *testing.T) {
	withdraw := asked("supervision", "Withdraw")
	beingDeleted := withdraw()
	terminating(theirs)(beingDeleted)
	said := func(says string) func(*resources.Widget) *resources.Widget {
		return func(w *resources.Widget) *resources.Widget {
			w.Annotations = map[string]string{"supervision": says, "cleans up": "true"}
			return w
		}
	}
	widgetRows{
		"living":      {Resource: withdraw(), ExpectResource: said("Withdraw")(withdraw())},
		"terminating": {Resource: beingDeleted, ExpectResource: said("")(beingDeleted.DeepCopy())},
	}.RunNode(t, widgetScheme, func() widgetNode {
		return supervised{&asDeployment{Reconciler: reconcilers.Always[*appsv1.Deployment]{asks{}}}}
	})
}

// asks notes what the node has to do.
type asks struct{}

func (asks) SetupWithManager(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
	return nil
}

func (asks) Reconcile(ctx context.Context, d *appsv1.Deployment) (reconcilers.Result, error) {
	cleansUp := "false"
	if reconcilers.CleansUp(ctx, d) {
		cleansUp = "true"
	}
	d.Annotations = map[string]string{
		"supervision": string(reconcilers.SupervisionOf(ctx, d)), "cleans up": cleansUp,
	}
	return reconcilers.Result{}, nil
}
