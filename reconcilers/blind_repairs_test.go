package reconcilers_test

import (
	"context"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func onItsWay(child *corev1.ConfigMap) {
	child.DeletionTimestamp, child.Finalizers = &child.CreationTimestamp, []string{"slow.io/slow"}
}

// TestDeletesMeanTheObjectThatWasSeen: a delete of something that was replaced, or changed, in the meantime is refused.
func TestDeletesMeanTheObjectThatWasSeen(t *testing.T) {
	ref := func(obj client.Object, uid types.UID) []rtesting.DeleteRef {
		ref := rtesting.NewDeleteRefFromObject(obj, widgetScheme)
		ref.Preconditions = &metav1.Preconditions{UID: &uid, ResourceVersion: new("999")}
		ref.PropagationPolicy = new(metav1.DeletePropagationBackground)
		return []rtesting.DeleteRef{ref}
	}
	nodeTests{
		"of a child": {
			widgetCase: widgetCase{
				GivenObjects:  []client.Object{givenConfigMap},
				ExpectDeletes: ref(configMap, "child-uid"), ExpectEvents: []rtesting.Event{memberEvent("Deleted", "gadget")},
			},
			node: func(*trace) widgetNode {
				return &configMapNode{
					DesiredChild:               func(context.Context, *resources.Widget) (*corev1.ConfigMap, error) { return nil, nil },
					MergeBeforeUpdate:          mergeConfigMap,
					ReflectChildStatusOnParent: func(context.Context, *resources.Widget, *corev1.ConfigMap, error) {},
				}
			},
		},
		"of one in a set": {
			widgetCase: widgetCase{
				GivenObjects:  []client.Object{givenMember("a")},
				ExpectDeletes: ref(member("a"), "part-a-uid"), ExpectEvents: []rtesting.Event{memberEvent("Deleted", "part-a")},
			},
			node: func(calls *trace) widgetNode { return set(calls) },
		},
	}.run(t)
	summaryTests{"of an aggregate": {
		rtesting.ReconcilerTestCase{
			GivenObjects:  []client.Object{givenSummary},
			ExpectDeletes: ref(blueSummary, "summary-uid"), ExpectEvents: []rtesting.Event{summaryEvent("Deleted", `Deleted ConfigMap "summary"`)},
		},
		&summary{DesiredResource: func(context.Context, *corev1.ConfigMap) (*corev1.ConfigMap, error) { return nil, nil }},
	}}.run(t)
}

func TestTerminatingChildrenAreLeftToGo(t *testing.T) {
	child := func(calls *trace, desired *corev1.ConfigMap) widgetNode {
		return &configMapNode{
			DesiredChild:      func(context.Context, *resources.Widget) (*corev1.ConfigMap, error) { return desired, nil },
			MergeBeforeUpdate: mergeConfigMap,
			ReflectChildStatusOnParent: func(_ context.Context, _ *resources.Widget, child *corev1.ConfigMap, _ error) {
				if child == nil {
					calls.add("reflect none")
					return
				}
				calls.add("reflect %s", child.Data["color"])
			},
		}
	}
	nodeTests{
		"a child, desired": {
			widgetCase: widgetCase{GivenObjects: []client.Object{givenConfigMap.With(redden, onItsWay)}},
			node:       func(calls *trace) widgetNode { return child(calls, configMap.Object()) },
			calls:      []string{"reflect red"},
		},
		"a child, not desired": {
			widgetCase: widgetCase{GivenObjects: []client.Object{givenConfigMap.With(redden, onItsWay)}},
			node:       func(calls *trace) widgetNode { return child(calls, nil) },
			calls:      []string{"reflect red"},
		},
		"desired": {
			widgetCase: widgetCase{GivenObjects: []client.Object{givenMember("a").With(redden, onItsWay)}},
			node:       func(calls *trace) widgetNode { return set(calls, member("a")) },
			calls:      []string{"desired", "reflect a=part-a red"},
		},
		"not desired": {
			widgetCase: widgetCase{GivenObjects: []client.Object{givenMember("a").With(redden, onItsWay)}},
			node:       func(calls *trace) widgetNode { return set(calls) },
			calls:      []string{"desired", "reflect a=part-a red"},
		},
		"beside one that stays": {
			widgetCase: widgetCase{GivenObjects: []client.Object{givenMember("a", "old").With(onItsWay), givenMember("a")}},
			node:       func(calls *trace) widgetNode { return set(calls, member("a")) },
			calls:      []string{"desired", "reflect a=part-a blue"},
		},
	}.run(t)
}

func TestChildrenMayAskForADelay(t *testing.T) {
	nodeTests{
		"a child": {
			widgetCase: widgetCase{GivenObjects: []client.Object{givenConfigMap}, ExpectedResult: minute},
			node: func(*trace) widgetNode {
				return &configMapNode{
					DesiredChild:      func(context.Context, *resources.Widget) (*corev1.ConfigMap, error) { return configMap.Object(), nil },
					MergeBeforeUpdate: mergeConfigMap,
					ReflectChildStatusOnParentWithResult: func(context.Context, *resources.Widget, *corev1.ConfigMap, error) (reconcilers.Result, error) {
						return minute, nil
					},
				}
			},
		},
		"a set": {
			widgetCase: widgetCase{GivenObjects: []client.Object{givenMember("a")}, ExpectedResult: minute},
			node: func(calls *trace) widgetNode {
				node := set(calls, member("a"))
				node.ReflectChildrenStatusOnParentWithResult = func(context.Context, *resources.Widget, partResult) (reconcilers.Result, error) {
					return minute, nil
				}
				return node
			},
		},
	}.run(t)
}

func TestAggregateIsDueAtStartAndForNoOtherName(t *testing.T) {
	other := blueSummary.With(func(s *corev1.ConfigMap) { s.Name = "other" })
	rtesting.SetupTests{"summary": {
		ExpectWatches:  []client.Object{&corev1.ConfigMap{}},
		ExpectRequests: []reconcilers.Request{summaryRequest},
		Events: []rtesting.SetupEvent{
			{Updated: blueSummary, ExpectRequests: []reconcilers.Request{summaryRequest}},
			{Deleted: blueSummary, ExpectRequests: []reconcilers.Request{summaryRequest}},
			{Created: other},
			{Created: blueSummary.With(func(s *corev1.ConfigMap) { s.Namespace = "other" })},
		},
	}}.Run(t, widgetScheme, func(_ *testing.T, _ *rtesting.SetupTestCase, c reconcilers.Config) rtesting.Setup {
		return &summary{Request: summaryRequest, Config: c, Reconciler: sets("blue"), MergeBeforeUpdate: mergeConfigMap}
	})
}

// TestSetUpValidates: what is missing is told when the manager is set up, and not at the first request.
func TestSetUpValidates(t *testing.T) {
	for name, node := range map[string]widgetNode{
		"a Sync":              &widgetSync{},
		"in a sequence":       widgetSequence{&widgetSync{}},
		"in an Always":        reconcilers.Always[*resources.Widget]{&widgetSync{}},
		"in an Advice":        &advice{Reconciler: &widgetSync{}},
		"in a While":          &while{Condition: never, Reconciler: &widgetSync{}},
		"in a TryCatch":       &tryCatch{Try: widgetSequence{}, Finally: &widgetSync{}},
		"in an OverrideSetup": &reconcilers.OverrideSetup[*resources.Widget]{Reconciler: &widgetSync{}},
		"in a CastResource":   &castLoose{Reconciler: &reconcilers.SyncReconciler[*looseWidget]{}},
		"in a WithConfig":     &reconcilers.WithConfig[*resources.Widget]{Config: unchangedConfig, Reconciler: &widgetSync{}},
		"under a suppression": &suppress{Reconciler: &widgetSync{}},
	} {
		rtesting.SetupTests{name: {ShouldErr: true}}.Run(t, widgetScheme,
			func(_ *testing.T, _ *rtesting.SetupTestCase, c reconcilers.Config) rtesting.Setup {
				return rtesting.SubReconcilerSetup(c, node)
			})
	}
}

// TestErrDurableIsNotTriedAgain: nothing but a change, or a delay that was asked for, brings the resource back.
func TestErrDurableIsNotTriedAgain(t *testing.T) {
	seen := widget.With(seenBefore)
	durably := func(result reconcilers.Result) func(*trace) *widgetRoot {
		return func(calls *trace) *widgetRoot {
			return &widgetRoot{Reconciler: calls.step("node", result, reconcilers.ErrDurable)}
		}
	}
	rootTests{
		"at all": {ReconcilerTestCase: rtesting.ReconcilerTestCase{GivenObjects: []client.Object{seen}}, root: durably(nothing)},
		"before the delay": {
			ReconcilerTestCase: rtesting.ReconcilerTestCase{GivenObjects: []client.Object{seen}, ExpectedResult: minute},
			root:               durably(minute),
		},
	}.run(t)
	summaryTests{"nor by an aggregate": {
		rtesting.ReconcilerTestCase{
			ExpectCreates: []client.Object{blueSummary},
			ExpectEvents:  []rtesting.Event{summaryEvent("Created", `Created ConfigMap "summary"`)},
		},
		&summary{Reconciler: returning(nothing, reconcilers.ErrDurable), DesiredResource: summaryOf()},
	}}.run(t)
}
