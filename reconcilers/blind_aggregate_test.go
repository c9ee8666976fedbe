package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/stash"
	rtesting "github.com/espalier-dev/espalier/testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

type (
	summary     = reconcilers.AggregateReconciler[*corev1.ConfigMap]
	summarySync = reconcilers.SyncReconciler[*corev1.ConfigMap]
)

var (
	summaryRequest = reconcilers.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "summary"}}

	// blueSummary is the object of the tables, as it is desired.
	blueSummary = rtesting.NewFixture(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "summary"},
		Data:       map[string]string{"color": "blue"},
	})
	// givenSummary is blueSummary in the cluster.
	givenSummary = blueSummary.With(func(s *corev1.ConfigMap) {
		s.UID, s.CreationTimestamp = "summary-uid", givenConfigMap.Object().CreationTimestamp
	})
	red = func(s *corev1.ConfigMap) { s.Data = map[string]string{"color": "red"} }
)

func summaryEvent(reason, message string) rtesting.Event {
	//lint:ignore SA1019 the events of the toolkit come through the old recorder
	return rtesting.NewEvent(blueSummary, widgetScheme, corev1.EventTypeNormal, reason, "%s", message)
}

// sets is a tree that sets the color in memory.
func sets(color string) reconcilers.SubReconciler[*corev1.ConfigMap] {
	return &summarySync{Sync: func(_ context.Context, s *corev1.ConfigMap) error {
		s.Data = map[string]string{"color": color}
		return nil
	}}
}

func returning(result reconcilers.Result, err error) *summarySync {
	return &summarySync{SyncWithResult: func(context.Context, *corev1.ConfigMap) (reconcilers.Result, error) { return result, err }}
}

func summaryOf(changes ...func(*corev1.ConfigMap)) func(context.Context, *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	return func(context.Context, *corev1.ConfigMap) (*corev1.ConfigMap, error) {
		return blueSummary.With(changes...).Object(), nil
	}
}

type summaryTest struct {
	rtesting.ReconcilerTestCase
	root *summary
}

type summaryTests map[string]summaryTest

func (tests summaryTests) run(t *testing.T) {
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.Request.Name == "" {
				test.Request = summaryRequest
			}
			test.WithReactors = append(test.WithReactors, born)
			test.ReconcilerTestCase.Run(t, widgetScheme, func(_ *testing.T, _ *rtesting.ReconcilerTestCase, c reconcilers.Config) reconcile.Reconciler {
				root := test.root
				root.Request = summaryRequest
				root.Config = c
				if root.AggregateObjectManager == nil {
					root.AggregateObjectManager = &configMaps{MergeBeforeUpdate: mergeConfigMap}
				}
				return root
			})
		})
	}
}

func TestAggregateValidates(t *testing.T) {
	manager := &configMaps{}
	validationTests{
		"empty": {node: &summary{}, shallow: `AggregateReconciler "ConfigMapAggregateReconciler" must define Request`},
		"no name": {
			node:    &summary{Request: reconcilers.Request{NamespacedName: types.NamespacedName{Namespace: "default"}}},
			shallow: `AggregateReconciler "ConfigMapAggregateReconciler" must define Request`,
		},
		"no manager": {
			node:    &summary{Request: summaryRequest},
			shallow: `AggregateReconciler "ConfigMapAggregateReconciler" must define AggregateObjectManager`,
		},
		"neither tree nor desired is valid, and so is an empty manager": {
			node: &summary{Request: summaryRequest, AggregateObjectManager: manager},
		},
		"no namespace is needed": {
			node: &summary{Request: reconcilers.Request{NamespacedName: types.NamespacedName{Name: "summary"}}, AggregateObjectManager: manager},
		},
		"invalid tree": {
			node:      &summary{Name: "my", Request: summaryRequest, AggregateObjectManager: manager, Reconciler: &summarySync{}},
			recursive: `AggregateReconciler "my" must have a valid Reconciler: ` + invalidSync,
		},
	}.run(t)
}

func TestAggregateManages(t *testing.T) {
	created := []rtesting.Event{summaryEvent("Created", `Created ConfigMap "summary"`)}
	updated := []rtesting.Event{summaryEvent("Updated", `Updated ConfigMap "summary"`)}
	deleted := []rtesting.Event{summaryEvent("Deleted", `Deleted ConfigMap "summary"`)}
	summaryTests{
		"creates": {
			rtesting.ReconcilerTestCase{ExpectCreates: []client.Object{blueSummary}, ExpectEvents: created},
			&summary{DesiredResource: summaryOf()},
		},
		"creates what the tree makes": {
			rtesting.ReconcilerTestCase{ExpectCreates: []client.Object{blueSummary}, ExpectEvents: created},
			&summary{Reconciler: sets("blue")},
		},
		"is in sync": {
			rtesting.ReconcilerTestCase{GivenObjects: []client.Object{givenSummary}},
			&summary{DesiredResource: summaryOf()},
		},
		"updates": {
			rtesting.ReconcilerTestCase{
				GivenObjects:  []client.Object{givenSummary.With(red)},
				ExpectUpdates: []client.Object{givenSummary}, ExpectEvents: updated,
			},
			&summary{DesiredResource: summaryOf()},
		},
		"updates what the tree changes": {
			rtesting.ReconcilerTestCase{
				GivenObjects:  []client.Object{givenSummary.With(red)},
				ExpectUpdates: []client.Object{givenSummary}, ExpectEvents: updated,
			},
			&summary{Reconciler: sets("blue")},
		},
		"compares with what was read, not with what the tree made of it": {
			rtesting.ReconcilerTestCase{GivenObjects: []client.Object{givenSummary}},
			&summary{Reconciler: sets("red"), DesiredResource: summaryOf()},
		},
		"may be desired by changing what it gets": {
			rtesting.ReconcilerTestCase{
				GivenObjects:  []client.Object{givenSummary},
				ExpectUpdates: []client.Object{givenSummary.With(red)}, ExpectEvents: updated,
			},
			&summary{DesiredResource: func(_ context.Context, s *corev1.ConfigMap) (*corev1.ConfigMap, error) {
				red(s)
				return s, nil
			}},
		},
		"deletes": {
			rtesting.ReconcilerTestCase{
				GivenObjects:  []client.Object{givenSummary},
				ExpectDeletes: []rtesting.DeleteRef{rtesting.NewDeleteRefFromObject(givenSummary, widgetScheme)}, ExpectEvents: deleted,
			},
			&summary{DesiredResource: func(context.Context, *corev1.ConfigMap) (*corev1.ConfigMap, error) { return nil, nil }},
		},
		"has nothing to delete": {
			rtesting.ReconcilerTestCase{},
			&summary{DesiredResource: func(context.Context, *corev1.ConfigMap) (*corev1.ConfigMap, error) { return nil, nil }},
		},
		"leaves a terminating one alone": {
			rtesting.ReconcilerTestCase{GivenObjects: []client.Object{givenSummary.With(func(s *corev1.ConfigMap) {
				s.DeletionTimestamp, s.Finalizers = &s.CreationTimestamp, []string{"f.io/f"}
			})}},
			&summary{Reconciler: returning(minute, errBoom), DesiredResource: summaryOf(red)},
		},
		"ignores other names": {
			rtesting.ReconcilerTestCase{Request: reconcilers.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "other"}}},
			&summary{Reconciler: returning(minute, errBoom), DesiredResource: summaryOf()},
		},
		"ignores other namespaces": {
			rtesting.ReconcilerTestCase{Request: reconcilers.Request{NamespacedName: types.NamespacedName{Namespace: "other", Name: "summary"}}},
			&summary{Reconciler: returning(minute, errBoom), DesiredResource: summaryOf()},
		},
	}.run(t)
}

func TestAggregateResultsAndErrors(t *testing.T) {
	created := []rtesting.Event{summaryEvent("Created", `Created ConfigMap "summary"`)}
	makes := func(c rtesting.ReconcilerTestCase) rtesting.ReconcilerTestCase {
		c.ExpectCreates, c.ExpectEvents = []client.Object{blueSummary}, created
		return c
	}
	fails := func(result reconcilers.Result, err error) rtesting.ReconcilerTestCase {
		return rtesting.ReconcilerTestCase{ShouldErr: true, Verify: returnsBoth(err, result)}
	}
	fetching := fails(nothing, errBoom)
	fetching.WithReactors = []rtesting.ReactionFunc{rtesting.InduceFailure("get", "ConfigMap", rtesting.InduceFailureOpts{Error: errBoom})}
	summaryTests{
		"keeps the result": {
			makes(rtesting.ReconcilerTestCase{ExpectedResult: minute}),
			&summary{Reconciler: returning(minute, nil), DesiredResource: summaryOf()},
		},
		"goes on after a halt": {
			makes(rtesting.ReconcilerTestCase{}),
			&summary{Reconciler: returning(nothing, reconcilers.ErrHaltSubReconcilers), DesiredResource: summaryOf()},
		},
		"keeps the result of a halt": {
			makes(rtesting.ReconcilerTestCase{ExpectedResult: requeue}),
			&summary{Reconciler: returning(requeue, reconcilers.ErrHaltSubReconcilers), DesiredResource: summaryOf()},
		},
		"keeps the delay of a halt": {
			makes(rtesting.ReconcilerTestCase{ExpectedResult: minute}),
			&summary{Reconciler: returning(minute, reconcilers.ErrHaltSubReconcilers), DesiredResource: summaryOf()},
		},
		"stops at an error of the tree": {
			fails(nothing, errBoom), &summary{Reconciler: returning(nothing, errBoom), DesiredResource: summaryOf()},
		},
		"makes a requeue of a quiet error": {
			rtesting.ReconcilerTestCase{ExpectedResult: requeue}, &summary{Reconciler: returning(nothing, errQuiet), DesiredResource: summaryOf()},
		},
		"returns an error of what is desired": {
			fails(nothing, errBoom), &summary{DesiredResource: func(context.Context, *corev1.ConfigMap) (*corev1.ConfigMap, error) { return nil, errBoom }},
		},
		"makes a requeue of a quiet one": {
			rtesting.ReconcilerTestCase{ExpectedResult: requeue},
			&summary{DesiredResource: func(context.Context, *corev1.ConfigMap) (*corev1.ConfigMap, error) { return nil, errQuiet }},
		},
		"cannot fetch": {fetching, &summary{DesiredResource: summaryOf()}},
		"an error before": {
			fails(nothing, errBoom), // a delay beside a loud error is not for the root to return
			&summary{
				DesiredResource: summaryOf(),
				BeforeReconcile: func(context.Context, reconcilers.Request) (context.Context, reconcilers.Result, error) {
					return nil, minute, errBoom
				},
				AfterReconcile: func(context.Context, reconcilers.Request, reconcilers.Result, error) (reconcilers.Result, error) {
					return nothing, nil
				},
			},
		},
		"a quiet error before": {
			rtesting.ReconcilerTestCase{ExpectedResult: requeue},
			&summary{DesiredResource: summaryOf(), BeforeReconcile: func(context.Context, reconcilers.Request) (context.Context, reconcilers.Result, error) {
				return nil, nothing, errQuiet
			}},
		},
		"the results before and inside are aggregated": {
			makes(rtesting.ReconcilerTestCase{ExpectedResult: minute}),
			&summary{Reconciler: returning(twoMinutes, nil), DesiredResource: summaryOf(), BeforeReconcile: func(
				context.Context, reconcilers.Request,
			) (context.Context, reconcilers.Result, error) {
				return nil, minute, nil
			}},
		},
		"after may drop an error": {
			rtesting.ReconcilerTestCase{ExpectedResult: twoMinutes},
			&summary{
				Reconciler: returning(nothing, errBoom),
				AfterReconcile: func(_ context.Context, _ reconcilers.Request, _ reconcilers.Result, err error) (reconcilers.Result, error) {
					if !errors.Is(err, errBoom) {
						return nothing, fmt.Errorf("not the error: %w", err)
					}
					return twoMinutes, nil
				},
			},
		},
		"a quiet error after": {
			makes(rtesting.ReconcilerTestCase{ExpectedResult: requeue}),
			&summary{DesiredResource: summaryOf(), AfterReconcile: func(
				context.Context, reconcilers.Request, reconcilers.Result, error,
			) (reconcilers.Result, error) {
				return nothing, errQuiet
			}},
		},
	}.run(t)
}

func TestAggregateContext(t *testing.T) {
	type key struct{}
	look := func(ctx context.Context) error {
		config, original := reconcilers.RetrieveConfigOrDie(ctx), reconcilers.RetrieveOriginalConfigOrDie(ctx)
		_, typed := reconcilers.RetrieveResourceType(ctx).(*corev1.ConfigMap)
		_, originallyTyped := reconcilers.RetrieveOriginalResourceType(ctx).(*corev1.ConfigMap)
		switch {
		case config.IsEmpty() || original.IsEmpty():
			return errors.New("no config")
		case !typed || !originallyTyped:
			return errors.New("no type")
		case reconcilers.RetrieveRequest(ctx) != summaryRequest:
			return errors.New("no request")
		case config.EventRecorder == nil || config.Discovery == nil || config.Recorder == nil || config.Tracker == nil || config.APIReader == nil:
			return fmt.Errorf("a part of the config is missing: %+v", config)
		case ctx.Value(key{}) != "before":
			return errors.New("not the context of BeforeReconcile")
		case stash.HasValue(ctx, "outer"):
			return errors.New("the stash is not a new one")
		}
		return nil
	}
	summaryTests{
		"is there for the tree and for what is desired": {
			rtesting.ReconcilerTestCase{
				GivenObjects: []client.Object{givenSummary},
				Prepare: func(_ *testing.T, ctx context.Context, _ *rtesting.ReconcilerTestCase) (context.Context, error) {
					ctx = reconcilers.WithStash(ctx)
					stash.StoreValue(ctx, "outer", true)
					return ctx, nil
				},
			},
			&summary{
				BeforeReconcile: func(ctx context.Context, _ reconcilers.Request) (context.Context, reconcilers.Result, error) {
					return context.WithValue(ctx, key{}, "before"), nothing, nil
				},
				Reconciler: &summarySync{Sync: func(ctx context.Context, _ *corev1.ConfigMap) error { return look(ctx) }},
				DesiredResource: func(ctx context.Context, s *corev1.ConfigMap) (*corev1.ConfigMap, error) {
					return s, look(ctx)
				},
			},
		},
		"tracks of the manager go nowhere": {
			rtesting.ReconcilerTestCase{
				ExpectCreates: []client.Object{blueSummary},
				ExpectEvents:  []rtesting.Event{summaryEvent("Created", `Created ConfigMap "summary"`)},
			},
			&summary{DesiredResource: summaryOf(), AggregateObjectManager: &configMaps{TrackDesired: true, MergeBeforeUpdate: mergeConfigMap}},
		},
	}.run(t)
}
