package reconcilers_test

import (
	"context"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
	rtime "github.com/espalier-dev/espalier/time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// seenBefore is how a Widget looks that a root has seen before.
func seenBefore(w *resources.Widget) {
	w.Status.InitializeConditions(rtime.StashNow(context.Background(), time.UnixMilli(1000)))
	w.Status.ObservedGeneration = 1
	for i := range w.Status.Conditions {
		w.Status.Conditions[i].ObservedGeneration = 1
	}
}

// recordedRoot is a sequence of a Sync and a child that the resource does not own, with all calls recorded.
func recordedRoot(calls *trace) *widgetRoot {
	return &widgetRoot{
		SkipRequest: func(context.Context, reconcilers.Request) bool { calls.add("SkipRequest"); return false },
		BeforeReconcile: func(ctx context.Context, _ reconcilers.Request) (context.Context, reconcilers.Result, error) {
			calls.add("BeforeReconcile")
			return ctx, nothing, nil
		},
		SkipResource: func(_ context.Context, w *resources.Widget) bool {
			calls.add("SkipResource, initialized %t", len(w.Status.Conditions) > 0)
			return false
		},
		AfterReconcile: func(
			_ context.Context, _ reconcilers.Request, result reconcilers.Result, err error,
		) (reconcilers.Result, error) {
			calls.add("AfterReconcile %v %v", result.RequeueAfter, err)
			return result, err
		},
		Reconciler: widgetSequence{
			&widgetSync{
				SyncWithResult: func(_ context.Context, w *resources.Widget) (reconcilers.Result, error) {
					calls.add("Sync, initialized %t", len(w.Status.Conditions) > 0)
					return minute, nil
				},
				Finalize: func(context.Context, *resources.Widget) error { calls.add("Finalize"); return nil },
			},
			&configMapNode{
				DesiredChild: func(context.Context, *resources.Widget) (*corev1.ConfigMap, error) {
					calls.add("DesiredChild")
					return configMap.With(ownerless).Object(), nil
				},
				OurChild: func(_ *resources.Widget, child *corev1.ConfigMap) bool {
					calls.add("OurChild, owned %t", len(child.OwnerReferences) > 0)
					return true
				},
				ChildObjectManager: &configMaps{
					Finalizer:    "f.io/f",
					TrackDesired: true,
					MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) {
						calls.add("MergeBeforeUpdate")
						mergeConfigMap(current, desired)
					},
					HarmonizeImmutableFields: func(_, _ *corev1.ConfigMap) { calls.add("HarmonizeImmutableFields") },
				},
				ReflectChildStatusOnParent: func(
					_ context.Context, w *resources.Widget, child *corev1.ConfigMap, err error,
				) {
					calls.add("reflect %s, in the cluster %t, %v", child.Name, child.UID != "", err)
					w.Status.AddField("child", child.Name)
				},
			},
		},
	}
}

func TestARequestCreatesAChild(t *testing.T) {
	// What the manager learns from the answer to the create is not part of these calls.
	quietly := func(calls *trace) *widgetRoot {
		root := recordedRoot(calls)
		manager := root.Reconciler.(widgetSequence)[1].(*configMapNode).ChildObjectManager.(*configMaps)
		manager.MergeBeforeUpdate, manager.HarmonizeImmutableFields = mergeConfigMap, nil
		calls.reads = true
		return root
	}
	rootTests{"live": {
		ReconcilerTestCase: rtesting.ReconcilerTestCase{
			GivenObjects: []client.Object{widget},
			ExpectPatches: []rtesting.PatchRef{
				finalizersPatch(`{"metadata":{"finalizers":["f.io/f"],"resourceVersion":"999"}}`),
			},
			ExpectCreates: []client.Object{configMap},
			ExpectTracks:  []rtesting.TrackRequest{rtesting.NewTrackRequest(configMap, widget, widgetScheme)},
			ExpectStatusUpdates: []client.Object{
				widget.With(seenBefore, patchedBy("f.io/f"), statusField("child", "gadget")),
			},
			ExpectEvents: []rtesting.Event{
				normal(
					"FinalizerPatched", `Patched finalizer "f.io/f"`,
				), normal("Created", `Created ConfigMap "gadget"`),
				normal("StatusUpdated", "Updated status"),
			},
			ExpectOrder: []string{
				"patch Widget default/gadget", "event FinalizerPatched Widget default/gadget",
				"create ConfigMap default/gadget", "event Created Widget default/gadget",
				"update Widget/status default/gadget", "event StatusUpdated Widget default/gadget",
			},
		},
		root: quietly,
		calls: []string{
			"SkipRequest", "BeforeReconcile", "get Widget", "SkipResource, initialized false", "Sync, initialized true",
			"list ConfigMapList", "DesiredChild", "OurChild, owned true", "patch Widget", "create ConfigMap",
			"reflect gadget, in the cluster true, <nil>", "update Widget/status", "AfterReconcile 0s <nil>",
		},
	}}.run(t)
}

func TestARequestUpdatesAChild(t *testing.T) {
	known := widget.With(
		seenBefore, func(w *resources.Widget) { w.Finalizers = []string{"f.io/f"} }, statusField("child", "gadget"),
	)
	rootTests{"drifted": {
		ReconcilerTestCase: rtesting.ReconcilerTestCase{
			GivenObjects:  []client.Object{known, givenConfigMap.With(coloured("red"))},
			ExpectUpdates: []client.Object{givenConfigMap},
			ExpectTracks:  []rtesting.TrackRequest{rtesting.NewTrackRequest(configMap, widget, widgetScheme)},
			ExpectEvents:  []rtesting.Event{normal("Updated", `Updated ConfigMap "gadget"`)},
			ExpectOrder: []string{
				"track ConfigMap default/gadget",
				"update ConfigMap default/gadget",
				"event Updated Widget default/gadget",
			},
			ExpectedResult: minute,
		},
		root: recordedRoot,
		calls: []string{
			"SkipRequest", "BeforeReconcile", "SkipResource, initialized true", "Sync, initialized true",
			"OurChild, owned true", "DesiredChild", "OurChild, owned true", "HarmonizeImmutableFields",
			"MergeBeforeUpdate",
			"update ConfigMap", "MergeBeforeUpdate", "reflect gadget, in the cluster true, <nil>", "AfterReconcile 1m0s <nil>",
		},
	}}.run(t)
}

func TestARequestFinalizes(t *testing.T) {
	gone := widget.With(seenBefore, terminating("f.io/f"))
	rootTests{
		"under WithFinalizer, at once": {
			ReconcilerTestCase: rtesting.ReconcilerTestCase{
				GivenObjects:  []client.Object{gone, givenConfigMap},
				ExpectDeletes: []rtesting.DeleteRef{rtesting.NewDeleteRefFromObject(configMap, widgetScheme)},
				ExpectPatches: []rtesting.PatchRef{
					finalizersPatch(`{"metadata":{"finalizers":null,"resourceVersion":"999"}}`),
				},
				ExpectEvents: []rtesting.Event{
					normal("Deleted", `Deleted ConfigMap "gadget"`),
					normal("FinalizerPatched", `Patched finalizer "f.io/f"`),
				},
			},
			root: func(calls *trace) *widgetRoot {
				root := recordedRoot(calls)
				child := root.Reconciler.(widgetSequence)[1].(*configMapNode)
				child.ChildObjectManager = &configMaps{MergeBeforeUpdate: mergeConfigMap}
				root.Reconciler = &widgetFinalizer{
					Finalizer:  "f.io/f",
					Reconciler: root.Reconciler,
					ReadyToClearFinalizer: func(context.Context, *resources.Widget) bool {
						calls.add("ReadyToClearFinalizer")
						return true
					},
				}
				return root
			},
			calls: []string{
				"SkipRequest", "BeforeReconcile", "SkipResource, initialized true", "Finalize",
				"OurChild, owned true", "delete ConfigMap", "ReadyToClearFinalizer", "patch Widget",
				"AfterReconcile 0s <nil>",
			},
		},
		"under the finalizer of the manager, first the child": {
			ReconcilerTestCase: rtesting.ReconcilerTestCase{
				GivenObjects:  []client.Object{gone, givenConfigMap},
				ExpectTracks:  []rtesting.TrackRequest{rtesting.NewTrackRequest(configMap, widget, widgetScheme)},
				ExpectDeletes: []rtesting.DeleteRef{rtesting.NewDeleteRefFromObject(configMap, widgetScheme)},
				ExpectEvents:  []rtesting.Event{normal("Deleted", `Deleted ConfigMap "gadget"`)},
			},
			root: recordedRoot,
		},
		"then the finalizer": {
			ReconcilerTestCase: rtesting.ReconcilerTestCase{
				GivenObjects: []client.Object{gone},
				ExpectPatches: []rtesting.PatchRef{
					finalizersPatch(`{"metadata":{"finalizers":null,"resourceVersion":"999"}}`),
				},
				ExpectEvents: []rtesting.Event{normal("FinalizerPatched", `Patched finalizer "f.io/f"`)},
			},
			root: recordedRoot,
		},
	}.run(t)
}

// TestSetUpValidates: what is missing is told when the manager is set up, and not at the first request.
func TestSetUpValidates(t *testing.T) {
	for name, node := range map[string]widgetNode{
		"a Sync":        &widgetSync{},
		"in a sequence": widgetSequence{&widgetSync{}},
		"in a cast": &reconcilers.CastResource[*resources.Widget, *corev1.Pod]{
			Reconciler: &reconcilers.SyncReconciler[*corev1.Pod]{},
		},
		"under a suppression": &reconcilers.SuppressTransientErrors[*resources.Widget, *resources.WidgetList]{
			Reconciler: &widgetSync{},
		},
	} {
		rtesting.SetupTests{name: {ShouldErr: true}}.Run(t, widgetScheme,
			func(_ *testing.T, _ *rtesting.SetupTestCase, c reconcilers.Config) rtesting.Setup {
				return rtesting.SubReconcilerSetup(c, node)
			})
	}
}
