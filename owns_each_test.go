package espalier_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// part is a child of a set.
func part(name string) *appsv1.Deployment {
	child := deployment.Object()
	child.Name = name
	return child
}

// readyPart is a part in the cluster whose pods run.
func readyPart(name string) *appsv1.Deployment {
	child := part(name)
	exists(child)
	child.Generation = 1
	child.Status = appsv1.DeploymentStatus{
		ObservedGeneration: 1, Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: 3, AvailableReplicas: 3,
		Conditions: []appsv1.DeploymentCondition{{Type: "Available", Status: "True"}},
	}
	return child
}

func startingPart(name string) *appsv1.Deployment {
	child := readyPart(name)
	child.Status.ReadyReplicas, child.Status.AvailableReplicas = 1, 1
	return child
}

func desiredParts(_ context.Context, w *resources.Widget) ([]*appsv1.Deployment, error) {
	switch {
	case asks(w, "none"):
		return nil, nil
	case asks(w, "not ready"):
		return nil, outOfStock
	case asks(w, "error"):
		return nil, errBoom
	case asks(w, "many"):
		var parts []*appsv1.Deployment
		for _, name := range names {
			parts = append(parts, part(name))
			parts[len(parts)-1].OwnerReferences = nil
		}
		return parts, nil
	case asks(w, "invalid"):
		return nil, apierrs.NewInvalid(schema.GroupKind{Kind: "Widget"}, "gadget", nil)
	}
	one, two := part("one"), part("two")
	one.OwnerReferences, two.OwnerReferences = nil, nil
	return []*appsv1.Deployment{two, one}, nil
}

var names = []string{"a", "b", "c", "d", "e", "f", "g"}

func many() []object {
	var parts []object
	for _, name := range names {
		parts = append(parts, part(name))
	}
	return parts
}

func refusedEach() []rtesting.Event {
	var events []rtesting.Event
	for _, name := range names {
		events = append(events, event(corev1.EventTypeWarning, "CreationFailed",
			fmt.Sprintf("Failed to create Deployment %q: inducing failure for create Deployment", name))...)
	}
	return events
}

func TestOwnsEach(t *testing.T) {
	forbidden := apierrs.NewForbidden(schema.GroupResource{Resource: "deployments"}, "two", errBoom)
	reported := func(status metav1.ConditionStatus, reason, message string) *resources.Widget {
		return widget.With(is("PartsReady", status, reason, message)).Object()
	}
	run(t, tests{
		"one is there and one is not": {
			Resource:      widget.Object(),
			GivenObjects:  []object{readyPart("one")},
			ExpectCreates: []object{part("two")},
			ExpectEvents:  event(corev1.EventTypeNormal, "Created", `Created Deployment "two"`),
			ExpectResource: reported("False", "InProgress",
				"1 of 2 ready, Deployment default/two: 0 of 3 replicas available"),
		},
		"all are ready": {
			Resource:       widget.Object(),
			GivenObjects:   []object{readyPart("one"), readyPart("two")},
			ExpectResource: reported("True", "Ready", ""),
		},
		"one is not ready": {
			Resource:     widget.Object(),
			GivenObjects: []object{startingPart("one"), readyPart("two")},
			ExpectResource: reported("False", "InProgress",
				"1 of 2 ready, Deployment default/one: 1 of 3 replicas available"),
		},
		"another one is not desired any more": {
			Resource:       widget.Object(),
			GivenObjects:   []object{readyPart("old"), readyPart("one"), readyPart("two")},
			ExpectDeletes:  []rtesting.DeleteRef{rtesting.NewDeleteRefFromObject(part("old"), scheme)},
			ExpectEvents:   event(corev1.EventTypeNormal, "Deleted", `Deleted Deployment "old"`),
			ExpectResource: reported("True", "Ready", ""),
		},
		"a new one is made before an old one goes": {
			Resource:      widget.Object(),
			GivenObjects:  []object{readyPart("old"), readyPart("one")},
			ExpectCreates: []object{part("two")},
			ExpectDeletes: []rtesting.DeleteRef{rtesting.NewDeleteRefFromObject(part("old"), scheme)},
			ExpectEvents: append(event(corev1.EventTypeNormal, "Created", `Created Deployment "two"`),
				event(corev1.EventTypeNormal, "Deleted", `Deleted Deployment "old"`)...),
			ExpectResource: reported("False", "InProgress",
				"1 of 2 ready, Deployment default/two: 0 of 3 replicas available"),
		},
		"an old one goes although a new one cannot be made": {
			Resource:      widget.Object(),
			GivenObjects:  []object{readyPart("old"), readyPart("one")},
			WithReactors:  []rtesting.ReactionFunc{rtesting.InduceFailure("create", "Deployment")},
			ExpectCreates: []object{part("two")},
			ExpectDeletes: []rtesting.DeleteRef{rtesting.NewDeleteRefFromObject(part("old"), scheme)},
			ExpectEvents: append(event(corev1.EventTypeWarning, "CreationFailed",
				`Failed to create Deployment "two": inducing failure for create Deployment`),
				event(corev1.EventTypeNormal, "Deleted", `Deleted Deployment "old"`)...),
			ExpectResource: reported("False", "Failed", "inducing failure for create Deployment"),
			ShouldErr:      true,
		},
		"none is desired": {
			Resource:       widget.With(with("none")).Object(),
			ExpectResource: widget.With(with("none"), is("PartsReady", "True", "NotDesired", "")).Object(),
		},
		"not ready leaves the children as they are": {
			Resource:     widget.With(with("not ready")).Object(),
			GivenObjects: []object{readyPart("old")},
			ExpectResource: widget.With(with("not ready"),
				is("PartsReady", "False", "NoColor", "there is no color in stock")).Object(),
			ExpectedResult: reconcilers.Result{RequeueAfter: time.Minute},
		},
		"an error is returned": {
			Resource:  widget.With(with("error")).Object(),
			ShouldErr: true,
		},
		"what is asked for is not valid": {
			Resource:     widget.With(with("invalid")).Object(),
			GivenObjects: []object{readyPart("old")},
			ExpectResource: widget.With(with("invalid"),
				is("PartsReady", "False", "Invalid", `Widget "gadget" is invalid`)).Object(),
		},
		"the server refuses one": {
			Resource:     widget.Object(),
			GivenObjects: []object{readyPart("one")},
			WithReactors: []rtesting.ReactionFunc{
				rtesting.InduceFailure("create", "Deployment", rtesting.InduceFailureOpts{Error: forbidden}),
			},
			ExpectCreates: []object{part("two")},
			ExpectEvents: event(corev1.EventTypeWarning, "CreationFailed",
				`Failed to create Deployment "two": deployments "two" is forbidden: boom`),
			ExpectResource: reported("False", "Forbidden", `deployments "two" is forbidden: boom`),
		},
		"a write fails": {
			Resource:      widget.With(is("PartsReady", "False", "InProgress", "")).Object(),
			GivenObjects:  []object{readyPart("one")},
			WithReactors:  []rtesting.ReactionFunc{rtesting.InduceFailure("create", "Deployment")},
			ExpectCreates: []object{part("two")},
			ExpectEvents: event(corev1.EventTypeWarning, "CreationFailed",
				`Failed to create Deployment "two": inducing failure for create Deployment`),
			ExpectResource: reported("False", "Failed", "inducing failure for create Deployment"),
			ShouldErr:      true,
		},
		"no write succeeds": {
			Resource:      widget.With(with("many")).Object(),
			WithReactors:  []rtesting.ReactionFunc{rtesting.InduceFailure("create", "Deployment")},
			ExpectCreates: many(),
			ExpectEvents:  refusedEach(),
			ExpectResource: widget.With(with("many"), is("PartsReady", "False", "Failed",
				"a: inducing failure for create Deployment; b: inducing failure for create Deployment; "+
					"c: inducing failure for create Deployment; d: inducing failure for create Deployment; "+
					"e: inducing failure for create Deployment; and 2 more")).Object(),
			ShouldErr: true,
		},
		"the resource is terminating": {
			Resource:      terminating.Object(),
			GivenObjects:  []object{readyPart("one")},
			ExpectDeletes: []rtesting.DeleteRef{rtesting.NewDeleteRefFromObject(part("one"), scheme)},
			ExpectEvents:  event(corev1.EventTypeNormal, "Deleted", `Deleted Deployment "one"`),
		},
	}, func() node { return espalier.OwnsEach("Parts", desiredParts).Reports("PartsReady") })
}
