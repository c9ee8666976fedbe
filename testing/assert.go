package testing

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/literal"
	"github.com/espalier-dev/espalier/testing/internal/objects"
)

// AssertExpectations fails the test for each difference from the expectations: calls to the client, events, tracks, and
// their order. With a nil t nothing fails.
func (c *ExpectConfig) AssertExpectations(t *testing.T) {
	c.AssertClientExpectations(t)
	c.AssertRecorderExpectations(t)
	c.AssertTrackerExpectations(t)
	c.AssertOrderExpectations(t)
}

// AssertClientExpectations is the part of [ExpectConfig.AssertExpectations] about the client.
func (c *ExpectConfig) AssertClientExpectations(t *testing.T) {
	for _, problem := range c.made().problems {
		c.errorf(t, "%s%s", problem, c.suffix())
	}
	c.AssertClientApplyExpectations(t)
	c.AssertClientCreateExpectations(t)
	c.AssertClientUpdateExpectations(t)
	c.AssertClientPatchExpectations(t)
	c.AssertClientDeleteExpectations(t)
	c.AssertClientDeleteCollectionExpectations(t)
	c.AssertClientStatusUpdateExpectations(t)
	c.AssertClientStatusPatchExpectations(t)
	c.AssertClientStatusApplyExpectations(t)
}

// AssertClientApplyExpectations asserts ExpectApplies.
func (c *ExpectConfig) AssertClientApplyExpectations(t *testing.T) {
	c.assertApplies(t, "ExpectApplies", "Apply", c.ExpectApplies, c.made().client.ApplyActions)
}

// AssertClientCreateExpectations asserts ExpectCreates.
func (c *ExpectConfig) AssertClientCreateExpectations(t *testing.T) {
	actions := c.made().client.CreateActions
	assertObjects(c, t, "ExpectCreates", "Create", c.ExpectCreates, actions, c.differ().ResourceCreate)
}

// AssertClientUpdateExpectations asserts ExpectUpdates.
func (c *ExpectConfig) AssertClientUpdateExpectations(t *testing.T) {
	actions := c.made().client.UpdateActions
	assertObjects(c, t, "ExpectUpdates", "Update", c.ExpectUpdates, actions, c.differ().ResourceUpdate)
}

// AssertClientPatchExpectations asserts ExpectPatches.
func (c *ExpectConfig) AssertClientPatchExpectations(t *testing.T) {
	c.assertPatches(t, "ExpectPatches", "Patch", c.ExpectPatches, c.made().client.PatchActions)
}

// AssertClientDeleteExpectations asserts ExpectDeletes.
func (c *ExpectConfig) AssertClientDeleteExpectations(t *testing.T) {
	expectation[DeleteRef, DeleteAction]{
		field: "ExpectDeletes", kind: "Delete",
		observed: DeleteRef.observed, found: NewDeleteRef,
		diff: c.differ().DeleteRef,
	}.assert(c, t, c.ExpectDeletes, c.made().client.DeleteActions)
}

// AssertClientDeleteCollectionExpectations asserts ExpectDeleteCollections.
func (c *ExpectConfig) AssertClientDeleteCollectionExpectations(t *testing.T) {
	expectation[DeleteCollectionRef, DeleteCollectionAction]{
		field: "ExpectDeleteCollections", kind: "DeleteCollection",
		found:    NewDeleteCollectionRef,
		diff:     c.differ().DeleteCollectionRef,
		pastable: func(ref DeleteCollectionRef) any { return ref.withoutEmptySelectors() },
	}.assert(c, t, c.ExpectDeleteCollections, c.made().client.DeleteCollectionActions)
}

// AssertClientStatusUpdateExpectations asserts ExpectStatusUpdates.
func (c *ExpectConfig) AssertClientStatusUpdateExpectations(t *testing.T) {
	assertObjects(c, t, "ExpectStatusUpdates", "StatusUpdate",
		c.ExpectStatusUpdates, c.made().client.StatusUpdateActions, c.differ().ResourceStatusUpdate)
}

// AssertClientStatusPatchExpectations asserts ExpectStatusPatches.
func (c *ExpectConfig) AssertClientStatusPatchExpectations(t *testing.T) {
	c.assertPatches(t, "ExpectStatusPatches", "StatusPatch", c.ExpectStatusPatches, c.made().client.StatusPatchActions)
}

// AssertClientStatusApplyExpectations asserts ExpectStatusApplies.
func (c *ExpectConfig) AssertClientStatusApplyExpectations(t *testing.T) {
	c.assertApplies(t, "ExpectStatusApplies", "StatusApply", c.ExpectStatusApplies, c.made().client.StatusApplyActions)
}

// AssertRecorderExpectations asserts ExpectEvents.
func (c *ExpectConfig) AssertRecorderExpectations(t *testing.T) {
	expectation[Event, Event]{
		field: "ExpectEvents", kind: "Event", verb: "%s",
		found: func(event Event) Event { return event },
		diff:  c.differ().Event,
	}.assert(c, t, c.ExpectEvents, c.made().events.all())
}

// AssertTrackerExpectations asserts ExpectTracks.
func (c *ExpectConfig) AssertTrackerExpectations(t *testing.T) {
	expected := slices.Clone(c.ExpectTracks)
	for i := range expected {
		expected[i] = expected[i].normalized()
	}
	expectation[TrackRequest, TrackRequest]{
		field: "ExpectTracks", kind: "Track", verb: "%v",
		found: func(request TrackRequest) TrackRequest { return request },
		diff:  c.differ().TrackRequest,
	}.assert(c, t, expected, tracksOf(c.made().tracker))
}

// AssertOrderExpectations asserts ExpectOrder.
func (c *ExpectConfig) AssertOrderExpectations(t *testing.T) {
	if c.ExpectOrder == nil {
		return
	}
	actual := c.made().journal.Comparable(c.ExpectOrder)
	if diff := gocmp.Diff(c.ExpectOrder, actual, cmpopts.EquateEmpty()); diff != "" {
		c.errorf(t, "ExpectOrder differs%s %s:\n%s\nTo expect it, set ExpectOrder to:\n%s,",
			c.suffix(), legend(), ColorizeDiff(diff), literal.Of(actual))
	}
}

func (c *ExpectConfig) assertApplies(t *testing.T, field, kind string, expected []ApplyRef, actions []ApplyAction) {
	expectation[ApplyRef, ApplyAction]{
		field: field, kind: kind,
		observed: ApplyRef.observed, found: NewApplyRef,
		diff: c.differ().ApplyRef,
	}.assert(c, t, expected, actions)
}

func (c *ExpectConfig) assertPatches(t *testing.T, field, kind string, expected []PatchRef, actions []PatchAction) {
	expectation[PatchRef, PatchAction]{
		field: field, kind: kind,
		observed: PatchRef.observed, found: NewPatchRef,
		diff: c.differ().PatchRef,
	}.assert(c, t, expected, actions)
}

// assertObjects asserts objects that are created or updated.
func assertObjects[A CreateAction](
	c *ExpectConfig, t *testing.T, field, kind string, expected []client.Object, actions []A,
	diff func(expected, actual client.Object) string,
) {
	if c.Server != nil {
		compare := diff
		diff = func(expected, actual client.Object) string {
			withServerFields(expected, actual)
			return compare(expected, actual)
		}
	}
	expectation[client.Object, A]{
		field: field, kind: kind,
		found: func(action A) client.Object { return asInventory(action.GetObject().(client.Object)) },
		observed: func(expected client.Object, action A) client.Object {
			return inTypeOf(expected, action.GetObject().(client.Object))
		},
		diff:     diff,
		pastable: func(obj client.Object) any { return sentPart(obj, c.Scheme) },
	}.assert(c, t, objects.CopyAll(expected), actions)
	for i := range min(len(expected), len(actions)) {
		if diff := optionsOf(expected[i]).diff(actions[i]); diff != "" {
			c.errorf(t, "%s[%d] differs in its options%s %s:\n%s", field, i, c.suffix(), legend(), ColorizeDiff(diff))
		}
	}
}

func (c *ExpectConfig) differ() Differ {
	if c.Differ != nil {
		return c.Differ
	}
	return DefaultDiffer
}

// suffix names the config in a message.
func (c *ExpectConfig) suffix() string {
	if c.Name == "" || c.Name == "default" {
		return ""
	}
	return fmt.Sprintf(" for config %q", c.Name)
}

// errorf remembers a failure and fails the test, if there is one.
func (c *ExpectConfig) errorf(t *testing.T, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	p := c.made()
	p.failures = append(p.failures, message)
	if t != nil {
		t.Helper()
		t.Error(message)
	}
}

// expectation compares calls of one kind: E is the type in a table, A the recorded type.
type expectation[E, A any] struct {
	// field is the field of a test case that holds the expected values.
	field string
	// kind is the word for one call.
	kind string
	// verb formats a value for a message; empty is %#v.
	verb string
	// found returns a recorded call in the type of a table.
	found func(A) E
	// observed is found with the fields that are compared only if the expected value sets them; nil is found.
	observed func(E, A) E
	// diff compares.
	diff func(expected, actual E) string
	// pastable returns the part of a value that belongs in a table; nil is all.
	pastable func(E) any
}

func (e expectation[E, A]) assert(c *ExpectConfig, t *testing.T, expected []E, actual []A) {
	verb := cmp.Or(e.verb, "%#v")
	for i, want := range expected {
		if i >= len(actual) {
			c.errorf(t, "%s[%d] not observed%s: "+verb, e.field, i, c.suffix(), want)
			continue
		}
		if diff := e.diff(want, e.observe(want, actual[i])); diff != "" {
			c.errorf(t, "%s[%d] differs%s %s:\n%s", e.field, i, c.suffix(), legend(), ColorizeDiff(diff))
		}
	}
	for _, extra := range actual[min(len(expected), len(actual)):] {
		got := e.found(extra)
		c.errorf(t, "Unexpected %s observed%s: "+verb+"\n%s", e.kind, c.suffix(), got, e.hint(got))
	}
}

func (e expectation[E, A]) observe(want E, call A) E {
	if e.observed != nil {
		return e.observed(want, call)
	}
	return e.found(call)
}

// hint returns a text that shows how to expect a call.
func (e expectation[E, A]) hint(got E) string {
	value := any(got)
	if e.pastable != nil {
		value = e.pastable(got)
	}
	return fmt.Sprintf("To expect it, add to %s:\n%s,", e.field, literal.Of(value))
}

// sentPart returns the part of a created or updated object that is compared by default.
func sentPart(obj client.Object, scheme *runtime.Scheme) client.Object {
	obj = objects.Copy(obj)
	if kept, ok := obj.(*Inventory); ok {
		return kept.pastable()
	}
	obj.SetResourceVersion("")
	obj.SetCreationTimestamp(metav1.Time{})
	obj.SetManagedFields(nil)
	if _, isUnstructured := obj.(runtime.Unstructured); isUnstructured {
		return obj
	}
	if _, _, err := scheme.ObjectKinds(obj); err == nil {
		obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	return obj
}

// inTypeOf converts an unstructured object to the Go type of expected, so that a table need not know in which form code
// sends an object. An object with content that the Go type has no field for stays as it is, and differs.
func inTypeOf(expected, observed client.Object) client.Object {
	if _, ok := expected.(*Inventory); ok {
		return asInventory(observed)
	}
	u, ok := observed.(*unstructured.Unstructured)
	if _, alike := expected.(runtime.Unstructured); !ok || alike || reflect.TypeOf(expected).Kind() != reflect.Pointer {
		return observed
	}
	typed, ok := reflect.New(reflect.TypeOf(expected).Elem()).Interface().(client.Object)
	if !ok || runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, typed, true) != nil {
		return observed
	}
	return typed
}
