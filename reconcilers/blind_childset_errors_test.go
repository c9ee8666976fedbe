package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestChildSetErrors(t *testing.T) {
	desired := func(calls *trace, err error) *parts {
		node := set(calls)
		node.DesiredChildren = func(context.Context, *resources.Widget) ([]*corev1.ConfigMap, error) {
			return []*corev1.ConfigMap{member("z").Object()}, err
		}
		return node
	}
	invalid := apierrs.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "part-b", nil)
	exists := apierrs.NewAlreadyExists(schema.GroupResource{Resource: "configmaps"}, "part-a")
	failing := func(verb, name string, err error) rtesting.ReactionFunc {
		return rtesting.InduceFailure(verb, "ConfigMap", rtesting.InduceFailureOpts{Name: name, Error: err})
	}
	fails := func(c widgetCase, err error) widgetCase {
		c.ShouldErr, c.Verify = true, returnsBoth(err, nothing)
		return c
	}
	failsWith := func(text string) widgetCase {
		return widgetCase{GivenObjects: []client.Object{givenMember("a")}, ExpectedErr: errors.New(text)}
	}
	nodeTests{
		"of the list": {
			widgetCase: fails(widgetCase{WithReactors: []rtesting.ReactionFunc{
				rtesting.InduceFailure("list", "ConfigMapList", rtesting.InduceFailureOpts{Error: errBoom}),
			}}, errBoom),
			node:  func(calls *trace) widgetNode { return set(calls, member("a")) },
			calls: []string{},
		},
		"of what is desired": {
			widgetCase: fails(widgetCase{GivenObjects: []client.Object{givenMember("a")}}, errBoom),
			node:       func(calls *trace) widgetNode { return desired(calls, errBoom) },
			calls:      []string{},
		},
		"empty identity": {
			widgetCase: failsWith("desired child id may not be empty"),
			node:       func(calls *trace) widgetNode { return set(calls, member("", "nameless"), member("b")) },
		},
		"duplicate identity": {
			widgetCase: failsWith("duplicate child id found: b"),
			node:       func(calls *trace) widgetNode { return set(calls, member("b"), member("c"), member("b", "other")) },
		},
		"only the status": {
			widgetCase: widgetCase{GivenObjects: []client.Object{givenMember("a").With(redden), givenMember("b")}},
			node: func(calls *trace) widgetNode {
				return desired(calls, fmt.Errorf("now: %w", reconcilers.OnlyReconcileChildStatus))
			},
			calls: []string{"reflect a=part-a red b=part-b blue"},
		},
		"only the status, of none": {
			node:  func(calls *trace) widgetNode { return desired(calls, reconcilers.OnlyReconcileChildStatus) },
			calls: []string{"reflect"},
		},
		"that is returned stops the rest, and those before are reflected": {
			widgetCase: fails(widgetCase{
				WithReactors:  []rtesting.ReactionFunc{born, failing("create", "part-b", errBoom)},
				ExpectCreates: []client.Object{member("a"), member("b")},
				ExpectEvents:  []rtesting.Event{memberEvent("Created", "part-a"), warning("CreationFailed", `Failed to create ConfigMap "part-b": boom`)},
			}, errBoom),
			node:  func(calls *trace) widgetNode { return set(calls, member("a"), member("b"), member("c")) },
			calls: []string{"desired", "create ConfigMap", "create ConfigMap", "reflect a=part-a blue"},
		},
		"that is reflected stops nothing": {
			widgetCase: widgetCase{
				WithReactors:  []rtesting.ReactionFunc{born, failing("create", "part-b", invalid)},
				ExpectCreates: []client.Object{member("a"), member("b"), member("c")},
				ExpectEvents: []rtesting.Event{
					memberEvent("Created", "part-a"),
					warning("CreationFailed", `Failed to create ConfigMap "part-b": `+invalid.Error()),
					memberEvent("Created", "part-c"),
				},
			},
			node:  func(calls *trace) widgetNode { return set(calls, member("a"), member("b"), member("c")) },
			calls: []string{"desired", "create ConfigMap", "create ConfigMap", "create ConfigMap", "reflect a=part-a blue b=none (Invalid) c=part-c blue"},
		},
		"is reflected by its reason only if that is listed": {
			widgetCase: fails(widgetCase{
				WithReactors:  []rtesting.ReactionFunc{failing("create", "part-b", invalid)},
				ExpectCreates: []client.Object{member("b")},
				ExpectEvents:  []rtesting.Event{warning("CreationFailed", `Failed to create ConfigMap "part-b": `+invalid.Error())},
			}, invalid),
			node: func(calls *trace) widgetNode {
				node := set(calls, member("b"))
				node.ReflectedChildErrorReasons = []metav1.StatusReason{}
				return node
			},
			calls: []string{"desired", "create ConfigMap", "reflect"},
		},
		"since another's object is in the way": {
			widgetCase: widgetCase{
				WithReactors:    []rtesting.ReactionFunc{born},
				GivenObjects:    []client.Object{givenMember("a").With(disown)},
				APIGivenObjects: []client.Object{givenMember("a").With(disown)},
				ExpectCreates:   []client.Object{member("a"), member("b")},
				ExpectEvents: []rtesting.Event{
					warning("CreationFailed", `Failed to create ConfigMap "part-a": configmaps "part-a" already exists`),
					memberEvent("Created", "part-b"),
				},
				ExpectTracks: []rtesting.TrackRequest{rtesting.NewTrackRequest(member("a"), widget, widgetScheme)},
			},
			node:  func(calls *trace) widgetNode { return set(calls, member("b"), member("a")) },
			calls: []string{"desired", "create ConfigMap", "create ConfigMap", "reflect a=none (AlreadyExists) b=part-b blue"},
		},
		"since our own object is in the way, and the cache is behind": {
			widgetCase: fails(widgetCase{
				WithReactors:    []rtesting.ReactionFunc{failing("create", "part-a", exists)},
				APIGivenObjects: []client.Object{givenMember("a")},
				ExpectCreates:   []client.Object{member("a")},
				ExpectEvents:    []rtesting.Event{warning("CreationFailed", `Failed to create ConfigMap "part-a": `+exists.Error())},
			}, exists),
			node:  func(calls *trace) widgetNode { return set(calls, member("b"), member("a")) },
			calls: []string{"desired", "create ConfigMap", "reflect"},
		},
		"of the reflection is joined": {
			widgetCase: widgetCase{
				GivenObjects:  []client.Object{givenMember("a")},
				WithReactors:  []rtesting.ReactionFunc{failing("delete", "part-a", errBoom)},
				ExpectDeletes: deletes(member("a")),
				ExpectEvents:  []rtesting.Event{warning("DeleteFailed", `Failed to delete ConfigMap "part-a": boom`)},
				ShouldErr:     true,
				Verify: func(t *testing.T, result reconcilers.Result, err error) {
					returnsBoth(errBoom, nothing)(t, result, err)
					returns(errOther)(t, result, err)
				},
			},
			node: func(calls *trace) widgetNode {
				node := set(calls)
				node.ReflectChildrenStatusOnParentWithError = func(context.Context, *resources.Widget, partResult) error {
					calls.add("reflect with error")
					return errOther
				}
				return node
			},
			calls: []string{"desired", "delete ConfigMap", "reflect with error"},
		},
		"is not silenced by a quiet one of the reflection": {
			widgetCase: widgetCase{
				WithReactors:  []rtesting.ReactionFunc{failing("create", "part-a", errBoom)},
				ExpectCreates: []client.Object{member("a")},
				ExpectEvents:  []rtesting.Event{warning("CreationFailed", `Failed to create ConfigMap "part-a": boom`)},
				ShouldErr:     true, Verify: loud(errBoom),
			},
			node: func(calls *trace) widgetNode {
				node := set(calls, member("a"))
				node.ReflectChildrenStatusOnParentWithError = func(context.Context, *resources.Widget, partResult) error { return errQuiet }
				return node
			},
		},
	}.run(t)
}

func TestChildSetResultAggregatesErrors(t *testing.T) {
	var none partResult
	if err := none.AggregateError(); err != nil {
		t.Errorf("no child: %v", err)
	}
	exists := apierrs.NewAlreadyExists(schema.GroupResource{Resource: "configmaps"}, "part-b")
	result := partResult{Children: []reconcilers.ChildSetPartialResult[*corev1.ConfigMap]{{Id: "a"}, {Id: "b", Err: exists}}}
	if err := result.AggregateError(); !apierrs.IsAlreadyExists(err) || !errors.Is(err, exists) {
		t.Errorf("the reason is hidden: %v", err)
	}
	result.Children[0].Err = errBoom
	if err := result.AggregateError(); !errors.Is(err, errBoom) || !errors.Is(err, exists) {
		t.Errorf("an error is lost: %v", err)
	}
}
