package testing

import (
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

	"github.com/espalier-dev/espalier/testing/internal/objects"
	"github.com/espalier-dev/espalier/testing/internal/words"
)

// AssertExpectations fails the test for each difference from the expectations: calls to the client, events, tracks, and
// their order. With a nil t nothing fails.
func (c *ExpectConfig) AssertExpectations(t *testing.T) {
	if t != nil {
		t.Helper()
	}
	c.AssertClientExpectations(t)
	c.AssertRecorderExpectations(t)
	c.AssertTrackerExpectations(t)
	c.AssertOrderExpectations(t)
}

// AssertClientExpectations is the part of [ExpectConfig.AssertExpectations] about the client.
func (c *ExpectConfig) AssertClientExpectations(t *testing.T) {
	if t != nil {
		t.Helper()
	}
	for _, problem := range c.made().problems {
		c.errorf(t, "%s%s", problem, c.page().Suffix())
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
	if t != nil {
		t.Helper()
	}
	c.assertApplies(t, "ExpectApplies", "Apply", c.ExpectApplies, c.made().client.ApplyActions)
}

// AssertClientCreateExpectations asserts ExpectCreates.
func (c *ExpectConfig) AssertClientCreateExpectations(t *testing.T) {
	if t != nil {
		t.Helper()
	}
	actions := c.made().client.CreateActions
	assertObjects(c, t, "ExpectCreates", "Create", c.ExpectCreates, actions, Differ.ResourceCreate, objectLiterals)
}

// AssertClientUpdateExpectations asserts ExpectUpdates.
func (c *ExpectConfig) AssertClientUpdateExpectations(t *testing.T) {
	if t != nil {
		t.Helper()
	}
	actions := c.made().client.UpdateActions
	assertObjects(c, t, "ExpectUpdates", "Update", c.ExpectUpdates, actions, Differ.ResourceUpdate, objectLiterals)
}

// AssertClientPatchExpectations asserts ExpectPatches.
func (c *ExpectConfig) AssertClientPatchExpectations(t *testing.T) {
	if t != nil {
		t.Helper()
	}
	c.assertPatches(t, "ExpectPatches", "Patch", c.ExpectPatches, c.made().client.PatchActions)
}

// AssertClientDeleteExpectations asserts ExpectDeletes.
func (c *ExpectConfig) AssertClientDeleteExpectations(t *testing.T) {
	if t != nil {
		t.Helper()
	}
	expectation[DeleteRef, DeleteAction]{
		field: "ExpectDeletes", kind: "Delete",
		name:     func(r DeleteRef) string { return objectText(r.Kind, r.Namespace, r.Name) },
		observed: DeleteRef.observed, found: NewDeleteRef,
		diff: func(d Differ, expected, actual DeleteRef) string {
			if c.faithful {
				actual = deleteWithoutServerSet(expected, actual)
			}
			return d.DeleteRef(expected, actual)
		},
		literals: func(action DeleteAction) []DeleteRef { return deleteLiterals(action, c.Server != nil) },
	}.assert(c, t, c.ExpectDeletes, c.made().client.DeleteActions)
}

// AssertClientDeleteCollectionExpectations asserts ExpectDeleteCollections.
func (c *ExpectConfig) AssertClientDeleteCollectionExpectations(t *testing.T) {
	if t != nil {
		t.Helper()
	}
	expectation[DeleteCollectionRef, DeleteCollectionAction]{
		field: "ExpectDeleteCollections", kind: "DeleteCollection",
		name:  func(r DeleteCollectionRef) string { return objectText(r.Kind, r.Namespace, "*") },
		found: NewDeleteCollectionRef,
		diff:  Differ.DeleteCollectionRef,
		literals: func(action DeleteCollectionAction) []DeleteCollectionRef {
			return []DeleteCollectionRef{NewDeleteCollectionRef(action).withoutEmptySelectors()}
		},
	}.assert(c, t, c.ExpectDeleteCollections, c.made().client.DeleteCollectionActions)
}

// AssertClientStatusUpdateExpectations asserts ExpectStatusUpdates.
func (c *ExpectConfig) AssertClientStatusUpdateExpectations(t *testing.T) {
	if t != nil {
		t.Helper()
	}
	assertObjects(c, t, "ExpectStatusUpdates", "StatusUpdate",
		c.ExpectStatusUpdates, c.made().client.StatusUpdateActions, Differ.ResourceStatusUpdate, statusLiterals)
}

// AssertClientStatusPatchExpectations asserts ExpectStatusPatches.
func (c *ExpectConfig) AssertClientStatusPatchExpectations(t *testing.T) {
	if t != nil {
		t.Helper()
	}
	c.assertPatches(t, "ExpectStatusPatches", "StatusPatch", c.ExpectStatusPatches, c.made().client.StatusPatchActions)
}

// AssertClientStatusApplyExpectations asserts ExpectStatusApplies.
func (c *ExpectConfig) AssertClientStatusApplyExpectations(t *testing.T) {
	if t != nil {
		t.Helper()
	}
	c.assertApplies(t, "ExpectStatusApplies", "StatusApply", c.ExpectStatusApplies, c.made().client.StatusApplyActions)
}

// AssertRecorderExpectations asserts ExpectEvents.
func (c *ExpectConfig) AssertRecorderExpectations(t *testing.T) {
	if t != nil {
		t.Helper()
	}
	expected := slices.Clone(c.ExpectEvents)
	for i := range expected {
		var err error
		if expected[i], err = expected[i].resolved(c.Scheme); err != nil {
			c.errorf(t, "ExpectEvents[%d] cannot be compared%s: %s", i, c.page().Suffix(), err)
		}
	}
	expectation[Event, Event]{
		field: "ExpectEvents", kind: "Event", name: nameOfEvent,
		found: func(event Event) Event { return event },
		diff:  Differ.Event,
	}.assert(c, t, expected, c.made().events.all())
}

// AssertTrackerExpectations asserts ExpectTracks.
func (c *ExpectConfig) AssertTrackerExpectations(t *testing.T) {
	if t != nil {
		t.Helper()
	}
	expected := slices.Clone(c.ExpectTracks)
	for i := range expected {
		expected[i] = expected[i].normalized()
	}
	expectation[TrackRequest, TrackRequest]{
		field: "ExpectTracks", kind: "Track", name: nameOfTrack,
		found:   func(request TrackRequest) TrackRequest { return request },
		diff:    Differ.TrackRequest,
		written: trackLiteral,
	}.assert(c, t, expected, tracksOf(c.made().tracker))
}

// AssertOrderExpectations asserts ExpectOrder.
func (c *ExpectConfig) AssertOrderExpectations(t *testing.T) {
	if t != nil {
		t.Helper()
	}
	if c.ExpectOrder == nil {
		return
	}
	actual := c.made().journal.Comparable(c.ExpectOrder)
	first := &firstDifference{}
	diff := gocmp.Diff(c.ExpectOrder, actual, cmpopts.EquateEmpty(), gocmp.Reporter(first))
	if diff == "" {
		return
	}
	w := c.page().Writer()
	if actual == nil {
		actual = []string{}
	}
	c.page().Add(t, words.Failure{
		Headline: "ExpectOrder differs" + c.page().Suffix(),
		At:       "line " + first.at, Expected: words.Short(first.expected, w), Seen: words.Short(first.actual, w),
		Details: fmt.Sprintf("ExpectOrder differs%s %s:\n%s\nTo expect it, set ExpectOrder to:\n%s,",
			c.page().Suffix(), legend(), ColorizeDiff(diff), w.Of(actual)),
	}, c.page().Set("ExpectOrder", actual))
}

func (c *ExpectConfig) assertApplies(t *testing.T, field, kind string, expected []ApplyRef, actions []ApplyAction) {
	if t != nil {
		t.Helper()
	}
	resolved := slices.Clone(expected)
	for i := range resolved {
		resolved[i] = resolved[i].resolved(c.Scheme)
	}
	expectation[ApplyRef, ApplyAction]{
		field: field, kind: kind,
		name:     func(r ApplyRef) string { return objectText(r.Kind, r.Namespace, r.Name) },
		observed: ApplyRef.observed, found: NewApplyRef,
		diff: func(d Differ, expected, actual ApplyRef) string {
			if a, ok := expected.ApplyConfiguration.(applied); ok {
				expected.ApplyConfiguration = a.like(actual.ApplyConfiguration)
			}
			if c.faithful {
				actual.ApplyConfiguration = appliedWithoutServerSet(
					expected.ApplyConfiguration, actual.ApplyConfiguration)
			}
			return d.ApplyRef(expected, actual)
		},
		literals: func(action ApplyAction) []ApplyRef { return applyLiterals(action, c.Scheme) },
	}.assert(c, t, resolved, actions)
}

func (c *ExpectConfig) assertPatches(t *testing.T, field, kind string, expected []PatchRef, actions []PatchAction) {
	if t != nil {
		t.Helper()
	}
	expectation[PatchRef, PatchAction]{
		field: field, kind: kind,
		name:     func(r PatchRef) string { return objectText(r.Kind, r.Namespace, r.Name) },
		observed: PatchRef.observed, found: NewPatchRef,
		diff: func(d Differ, expected, actual PatchRef) string {
			if c.faithful {
				actual = patchWithoutServerSet(expected, actual)
			}
			return d.PatchRef(expected, actual)
		},
		literals: patchLiterals,
	}.assert(c, t, expected, actions)
}

// assertObjects asserts objects that are created or updated.
func assertObjects[A CreateAction](
	c *ExpectConfig, t *testing.T, field, kind string, expected []client.Object, actions []A,
	diff func(d Differ, expected, actual client.Object) string,
	literals func(obj client.Object, scheme *runtime.Scheme) []client.Object,
) {
	if t != nil {
		t.Helper()
	}
	compare := diff
	switch {
	case c.Server != nil:
		diff = func(d Differ, expected, actual client.Object) string {
			expected = objects.Copy(expected)
			withServerFields(expected, actual)
			return compare(d, expected, actual)
		}
	case c.faithful:
		diff = func(d Differ, expected, actual client.Object) string {
			return compare(d, expected, withoutServerSet(expected, actual))
		}
	}
	expectation[client.Object, A]{
		field: field, kind: kind,
		name:  func(obj client.Object) string { return nameOfObject(obj, c.Scheme) },
		found: func(action A) client.Object { return asInventory(action.GetObject().(client.Object)) },
		observed: func(expected client.Object, action A) client.Object {
			return inTypeOf(expected, action.GetObject().(client.Object))
		},
		diff: diff,
		literals: func(action A) []client.Object {
			return c.asWritten(literals(action.GetObject().(client.Object), c.Scheme))
		},
		options:     func(i int, action A) string { return optionsOf(expected[i]).diff(action) },
		withOptions: func(value any, action A) any { return withOptionsOf(value, action) },
	}.assert(c, t, objects.CopyAll(expected), actions)
}

// asWritten returns literals with the shortest one first: without what only a faithful server sets.
func (c *ExpectConfig) asWritten(literals []client.Object) []client.Object {
	if _, kept := literals[0].(*Inventory); !c.faithful || kept {
		return literals
	}
	return append([]client.Object{withoutAnyServerSet(literals[0])}, literals...)
}

func (c *ExpectConfig) differ() Differ {
	if c.Differ != nil {
		return c.Differ
	}
	return DefaultDiffer
}

// errorf remembers a failure and fails the test, if there is one.
func (c *ExpectConfig) errorf(t *testing.T, format string, args ...any) {
	if t != nil {
		t.Helper()
	}
	c.page().Add(t, words.Failure{Headline: fmt.Sprintf(format, args...)}, nil)
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
