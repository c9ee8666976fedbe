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
	return &summarySync{
		SyncWithResult: func(context.Context, *corev1.ConfigMap) (reconcilers.Result, error) { return result, err },
	}
}

func summaryOf(changes ...func(*corev1.ConfigMap)) func(context.Context, *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	return func(context.Context, *corev1.ConfigMap) (*corev1.ConfigMap, error) {
		return blueSummary.With(changes...).Object(), nil
	}
}

type summaryTest struct {
	rtesting.ReconcilerTestCase
	root func() *summary
}

type summaryTests map[string]summaryTest

func (tests summaryTests) run(t *testing.T) {
	t.Helper()
	rows := map[string]rootRow{}
	for name, test := range tests {
		if test.Request.Name == "" {
			test.Request = summaryRequest
		}
		rows[name] = rootRow{test.ReconcilerTestCase, func(_ *trace, c reconcilers.Config) reconcile.Reconciler {
			root := test.root()
			root.Request = summaryRequest
			root.Config = c
			if root.AggregateObjectManager == nil {
				root.AggregateObjectManager = &configMaps{MergeBeforeUpdate: mergeConfigMap}
			}
			return root
		}, nil}
	}
	runRoots(t, rows)
}

func TestAggregateManages(t *testing.T) {
	updated := []rtesting.Event{summaryEvent("Updated", `Updated ConfigMap "summary"`)}
	summaryTests{
		"compares with what was read, not with what the tree made of it": {
			rtesting.ReconcilerTestCase{GivenObjects: []client.Object{givenSummary}},
			func() *summary { return &summary{Reconciler: sets("red"), DesiredResource: summaryOf()} },
		},
		"may be desired by changing what it gets": {
			rtesting.ReconcilerTestCase{
				GivenObjects:  []client.Object{givenSummary},
				ExpectUpdates: []client.Object{givenSummary.With(red)}, ExpectEvents: updated,
			},
			func() *summary {
				return &summary{DesiredResource: func(_ context.Context, s *corev1.ConfigMap) (*corev1.ConfigMap, error) {
					red(s)
					return s, nil
				}}
			},
		},
		"ignores other namespaces": {
			rtesting.ReconcilerTestCase{
				Request: reconcilers.Request{NamespacedName: types.NamespacedName{Namespace: "other", Name: "summary"}},
			},
			func() *summary { return &summary{Reconciler: returning(minute, errBoom), DesiredResource: summaryOf()} },
		},
	}.run(t)
}

func TestAggregateResultsAndErrors(t *testing.T) {
	makes := rtesting.ReconcilerTestCase{
		ExpectCreates:  []client.Object{blueSummary},
		ExpectEvents:   []rtesting.Event{summaryEvent("Created", `Created ConfigMap "summary"`)},
		ExpectedResult: minute,
	}
	summaryTests{
		"the results before and inside are aggregated": {
			makes,
			func() *summary {
				return &summary{Reconciler: returning(twoMinutes, nil), DesiredResource: summaryOf(), BeforeReconcile: func(
					context.Context, reconcilers.Request,
				) (context.Context, reconcilers.Result, error) {
					return nil, minute, nil
				}}
			},
		},
		"after may drop an error": {
			rtesting.ReconcilerTestCase{ExpectedResult: twoMinutes},
			func() *summary {
				return &summary{
					Reconciler: returning(nothing, errBoom),
					AfterReconcile: func(
						_ context.Context, _ reconcilers.Request, _ reconcilers.Result, err error,
					) (reconcilers.Result, error) {
						if !errors.Is(err, errBoom) {
							return nothing, fmt.Errorf("not the error: %w", err)
						}
						return twoMinutes, nil
					},
				}
			},
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
		case config.EventRecorder == nil || config.Recorder == nil || config.Discovery == nil,
			config.Tracker == nil || config.APIReader == nil:
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
				Prepare: func(
					_ *testing.T, ctx context.Context, _ *rtesting.ReconcilerTestCase,
				) (context.Context, error) {
					ctx = reconcilers.WithStash(ctx)
					stash.StoreValue(ctx, "outer", true)
					return ctx, nil
				},
			},
			func() *summary {
				return &summary{
					BeforeReconcile: func(ctx context.Context, _ reconcilers.Request) (
						context.Context, reconcilers.Result, error,
					) {
						return context.WithValue(ctx, key{}, "before"), nothing, nil
					},
					Reconciler: &summarySync{
						Sync: func(ctx context.Context, _ *corev1.ConfigMap) error { return look(ctx) },
					},
					DesiredResource: func(ctx context.Context, s *corev1.ConfigMap) (*corev1.ConfigMap, error) {
						return s, look(ctx)
					},
				}
			},
		},
		"tracks of the manager go nowhere": {
			rtesting.ReconcilerTestCase{
				ExpectCreates: []client.Object{blueSummary},
				ExpectEvents:  []rtesting.Event{summaryEvent("Created", `Created ConfigMap "summary"`)},
			},
			func() *summary {
				return &summary{
					DesiredResource:        summaryOf(),
					AggregateObjectManager: &configMaps{TrackDesired: true, MergeBeforeUpdate: mergeConfigMap},
				}
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
