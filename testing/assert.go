package testing

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/check"
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
	for _, problem := range c.made().Problems {
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
	c.assertApplies(t, "ExpectApplies", "Apply", c.ExpectApplies, c.made().Client.ApplyActions)
}

// AssertClientCreateExpectations asserts ExpectCreates.
func (c *ExpectConfig) AssertClientCreateExpectations(t *testing.T) {
	if t != nil {
		t.Helper()
	}
	actions := c.made().Client.CreateActions
	assertObjects(c, t, "ExpectCreates", "Create", c.ExpectCreates, actions, Differ.ResourceCreate, objectLiterals)
}

// AssertClientUpdateExpectations asserts ExpectUpdates.
func (c *ExpectConfig) AssertClientUpdateExpectations(t *testing.T) {
	if t != nil {
		t.Helper()
	}
	actions := c.made().Client.UpdateActions
	assertObjects(c, t, "ExpectUpdates", "Update", c.ExpectUpdates, actions, Differ.ResourceUpdate, objectLiterals)
}

// AssertClientPatchExpectations asserts ExpectPatches.
func (c *ExpectConfig) AssertClientPatchExpectations(t *testing.T) {
	if t != nil {
		t.Helper()
	}
	c.assertPatches(t, "ExpectPatches", "Patch", c.ExpectPatches, c.made().Client.PatchActions)
}

// AssertClientDeleteExpectations asserts ExpectDeletes.
func (c *ExpectConfig) AssertClientDeleteExpectations(t *testing.T) {
	if t != nil {
		t.Helper()
	}
	check.Expectation[DeleteRef, DeleteAction]{
		Field: "ExpectDeletes", Kind: "Delete",
		Name:     func(r DeleteRef) string { return objects.Text(r.Kind, r.Namespace, r.Name) },
		Observed: DeleteRef.observed, Found: NewDeleteRef,
		Diff: func(first *check.First, expected, actual DeleteRef) string {
			if c.how.APIServer {
				actual.Preconditions = check.PreconditionsWithoutServerSet(expected.Preconditions, actual.Preconditions)
			}
			return c.differ(first).DeleteRef(expected, actual)
		},
		Literals: func(action DeleteAction) []DeleteRef { return deleteLiterals(action, c.Server != nil) },
	}.Assert(c.page(), t, c.ExpectDeletes, c.made().Client.DeleteActions)
}

// AssertClientDeleteCollectionExpectations asserts ExpectDeleteCollections.
func (c *ExpectConfig) AssertClientDeleteCollectionExpectations(t *testing.T) {
	if t != nil {
		t.Helper()
	}
	check.Expectation[DeleteCollectionRef, DeleteCollectionAction]{
		Field: "ExpectDeleteCollections", Kind: "DeleteCollection",
		Name:  func(r DeleteCollectionRef) string { return objects.Text(r.Kind, r.Namespace, "*") },
		Found: NewDeleteCollectionRef,
		Diff:  by(c, Differ.DeleteCollectionRef),
		Literals: func(action DeleteCollectionAction) []DeleteCollectionRef {
			return []DeleteCollectionRef{NewDeleteCollectionRef(action).withoutEmptySelectors()}
		},
	}.Assert(c.page(), t, c.ExpectDeleteCollections, c.made().Client.DeleteCollectionActions)
}

// AssertClientStatusUpdateExpectations asserts ExpectStatusUpdates.
func (c *ExpectConfig) AssertClientStatusUpdateExpectations(t *testing.T) {
	if t != nil {
		t.Helper()
	}
	assertObjects(c, t, "ExpectStatusUpdates", "StatusUpdate",
		c.ExpectStatusUpdates, c.made().Client.StatusUpdateActions, Differ.ResourceStatusUpdate, statusLiterals)
}

// AssertClientStatusPatchExpectations asserts ExpectStatusPatches.
func (c *ExpectConfig) AssertClientStatusPatchExpectations(t *testing.T) {
	if t != nil {
		t.Helper()
	}
	c.assertPatches(t, "ExpectStatusPatches", "StatusPatch", c.ExpectStatusPatches, c.made().Client.StatusPatchActions)
}

// AssertClientStatusApplyExpectations asserts ExpectStatusApplies.
func (c *ExpectConfig) AssertClientStatusApplyExpectations(t *testing.T) {
	if t != nil {
		t.Helper()
	}
	c.assertApplies(t, "ExpectStatusApplies", "StatusApply", c.ExpectStatusApplies, c.made().Client.StatusApplyActions)
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
	check.Expectation[Event, Event]{
		Field: "ExpectEvents", Kind: "Event", Name: nameOfEvent,
		Found: func(event Event) Event { return event },
		Diff:  by(c, Differ.Event),
	}.Assert(c.page(), t, expected, eventsOf(c.made().Events))
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
	check.Expectation[TrackRequest, TrackRequest]{
		Field: "ExpectTracks", Kind: "Track", Name: nameOfTrack,
		Found:   func(request TrackRequest) TrackRequest { return request },
		Diff:    by(c, Differ.TrackRequest),
		Written: trackLiteral,
	}.Assert(c.page(), t, expected, tracksOf(c.made().Tracker))
}

// AssertOrderExpectations asserts ExpectOrder.
func (c *ExpectConfig) AssertOrderExpectations(t *testing.T) {
	if t != nil {
		t.Helper()
	}
	if c.ExpectOrder == nil {
		return
	}
	actual := c.made().Journal.Comparable(c.ExpectOrder)
	if actual == nil {
		actual = []string{}
	}
	check.Value[[]string]{Field: "ExpectOrder", Diff: func(first *check.First, expected, actual []string) string {
		return check.Diff(first, expected, actual, cmpopts.EquateEmpty())
	}}.Assert(c.page(), t, c.ExpectOrder, actual)
}

func (c *ExpectConfig) assertApplies(t *testing.T, field, kind string, expected []ApplyRef, actions []ApplyAction) {
	if t != nil {
		t.Helper()
	}
	resolved := slices.Clone(expected)
	for i := range resolved {
		resolved[i] = resolved[i].resolved(c.Scheme)
	}
	check.Expectation[ApplyRef, ApplyAction]{
		Field: field, Kind: kind,
		Name:     func(r ApplyRef) string { return objects.Text(r.Kind, r.Namespace, r.Name) },
		Observed: ApplyRef.observed, Found: NewApplyRef,
		Diff: func(first *check.First, expected, actual ApplyRef) string {
			if a, ok := expected.ApplyConfiguration.(applied); ok {
				expected.ApplyConfiguration = a.like(actual.ApplyConfiguration)
			}
			if c.how.APIServer {
				actual.ApplyConfiguration = check.AppliedWithoutServerSet(
					expected.ApplyConfiguration, actual.ApplyConfiguration)
			}
			actual.ApplyConfiguration = c.alikeApplied(expected, actual)
			return c.differ(first).ApplyRef(expected, actual)
		},
		Literals: func(action ApplyAction) []ApplyRef { return applyLiterals(action, c.Scheme) },
	}.Assert(c.page(), t, resolved, actions)
}

func (c *ExpectConfig) assertPatches(t *testing.T, field, kind string, expected []PatchRef, actions []PatchAction) {
	if t != nil {
		t.Helper()
	}
	check.Expectation[PatchRef, PatchAction]{
		Field: field, Kind: kind,
		Name:     func(r PatchRef) string { return objects.Text(r.Kind, r.Namespace, r.Name) },
		Observed: PatchRef.observed, Found: NewPatchRef,
		Diff: func(first *check.First, expected, actual PatchRef) string {
			if c.how.APIServer {
				actual = actual.withoutServerSet(expected)
			}
			actual.Patch = c.alikePatch(expected, actual)
			return c.differ(first).PatchRef(expected, actual)
		},
		Literals: patchLiterals,
	}.Assert(c.page(), t, expected, actions)
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
	compare := by(c, diff)
	switch {
	case c.Server != nil:
		compare = func(first *check.First, expected, actual client.Object) string {
			expected = objects.Copy(expected)
			check.WithServerFields(expected, actual)
			return diff(c.differ(first), expected, actual)
		}
	case c.how.APIServer:
		compare = func(first *check.First, expected, actual client.Object) string {
			return diff(c.differ(first), expected, c.alike(expected, check.WithoutServerSet(expected, actual)))
		}
	}
	check.Expectation[client.Object, A]{
		Field: field, Kind: kind,
		Change: func(value client.Object, meets func(client.Object) bool) any {
			return c.asChange(value, field == "ExpectStatusUpdates", "", meets)
		},
		Name:  func(obj client.Object) string { return objects.NameOf(obj, c.Scheme) },
		Found: func(action A) client.Object { return asInventory(action.GetObject().(client.Object)) },
		Observed: func(expected client.Object, action A) client.Object {
			if _, ok := expected.(*Inventory); ok {
				return asInventory(action.GetObject().(client.Object))
			}
			return check.InTypeOf(expected, action.GetObject().(client.Object))
		},
		Diff: compare,
		Literals: func(action A) []client.Object {
			return c.asWritten(literals(action.GetObject().(client.Object), c.Scheme))
		},
		Options:     func(i int, action A) string { return optionsOf(expected[i]).diff(action) },
		WithOptions: func(value any, action A) any { return withOptionsOf(value, action) },
	}.Assert(c.page(), t, objects.CopyAll(expected), actions)
}

// errorf remembers a failure and fails the test, if there is one.
func (c *ExpectConfig) errorf(t *testing.T, format string, args ...any) {
	if t != nil {
		t.Helper()
	}
	c.page().Add(t, words.Failure{Headline: fmt.Sprintf(format, args...)}, nil)
}

// assert asserts the expectations of all configs, and fails the test for all that was reported.
func (r *caseRun) assert(t *testing.T) {
	t.Helper()
	for _, c := range r.all() {
		c.AssertExpectations(t)
	}
	if t.Failed() || r.report.HasFailures() {
		r.report.Notes = r.explanations()
	}
	r.report.Fail(t)
}
