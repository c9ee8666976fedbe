package testing

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/espalier-dev/espalier/stash"
	"github.com/espalier-dev/espalier/testing/internal/objects"
	"github.com/espalier-dev/espalier/testing/internal/words"
)

// assertValue asserts a field of a case that is one value. Literals returns values that may expect the actual value,
// the shortest first; nil returns none, and the literal is the actual value.
func assertValue[T any](
	t *testing.T, c *ExpectConfig, field string, expected, actual T, diff func(d Differ, expected, actual T) string,
	literals func() []T,
) {
	t.Helper()
	text := diff(c.differ(), expected, actual)
	if text == "" {
		return
	}
	var candidates []T
	if literals != nil {
		candidates = literals()
	}
	value := matching(append(candidates, actual), func(v T) bool { return diff(c.differ(), v, actual) == "" })
	w := c.page().Writer()
	f := describe(c.differ(), w, text, func(d Differ) string { return diff(d, expected, actual) })
	f.Headline = field + " differs"
	if obj, ok := any(actual).(client.Object); ok {
		f.Headline += ": " + nameOfObject(obj, c.Scheme)
	}
	f.Details = fmt.Sprintf("%s differs %s:\n%s%s", field, legend(), ColorizeDiff(text),
		words.Hint("To expect it, set "+field+" to:", w, value))
	c.page().Add(t, f, c.page().Set(field, value))
}

// assertResource asserts the resource of a sub-reconciler.
func assertResource(t *testing.T, c *ExpectConfig, expected, actual client.Object) {
	t.Helper()
	diff := func(d Differ, expected, actual client.Object) string {
		if c.faithful {
			return d.Resource(expected, withoutServerSet(expected, actual))
		}
		expected = asGiven(expected)
		if c.Server != nil {
			withServerFields(expected, actual)
		}
		return d.Resource(expected, actual)
	}
	assertValue(t, c, "ExpectResource", expected, actual, diff, func() []client.Object {
		return c.asWritten(resourceLiterals(actual, c.Scheme))
	})
}

// resourceLiterals returns what a table may have for a resource, the shortest first. The version that a given object
// without one has is left out.
func resourceLiterals(obj client.Object, scheme *runtime.Scheme) []client.Object {
	full := objects.Copy(obj)
	if full.GetResourceVersion() == givenVersion {
		full.SetResourceVersion("")
	}
	full.SetManagedFields(nil)
	return []client.Object{
		withoutComputed(sentPart(obj, scheme)), sentPart(obj, scheme), withoutComputed(full), full,
	}
}

// assertStashed asserts one of the expected values of the stash.
func assertStashed(
	t *testing.T, ctx context.Context, c *ExpectConfig, expected map[stash.Key]any, key stash.Key, actual any,
) {
	t.Helper()
	want := copyOfValue(expected[key])
	if obj, ok := actual.(client.Object); ok && c.faithful {
		if wanted, ok := want.(client.Object); ok {
			actual = withoutServerSet(wanted, obj)
		}
	}
	text := c.differ().StashedValue(want, actual, key)
	if text == "" {
		return
	}
	w := c.page().Writer()
	f := describe(c.differ(), w, text, func(d Differ) string { return d.StashedValue(want, actual, key) })
	f.Headline = fmt.Sprintf("ExpectStashedValues[%q] differs", key)
	f.Details = fmt.Sprintf("ExpectStashedValues[%q] differs %s:\n%s%s", key, legend(), ColorizeDiff(text),
		words.Hint(fmt.Sprintf("To expect it, set ExpectStashedValues[%q] to:", key), w, actual))
	all := map[stash.Key]any{}
	for key := range expected {
		if value := stash.RetrieveValue(ctx, key); value != nil {
			all[key] = value
		}
	}
	c.page().Add(t, f, c.page().Set("ExpectStashedValues", all))
}

// assertResponse asserts the response of a webhook.
func (tc *AdmissionWebhookTestCase) assertResponse(
	t *testing.T, c *ExpectConfig, expected, actual admission.Response,
) {
	t.Helper()
	short := admission.Response{Patches: actual.Patches, AdmissionResponse: *actual.DeepCopy()}
	short.UID = ""
	if len(short.Patches) > 0 {
		short.Patch, short.PatchType = nil, nil
	}
	if short.Result != nil && *short.Result.DeepCopy() == (metav1.Status{Code: http.StatusOK}) {
		short.Result = nil
	}
	diff := func(d Differ, expected, actual admission.Response) string {
		completed := admission.Response{
			Patches: expected.Patches, AdmissionResponse: *expected.DeepCopy(),
		}
		if err := completed.Complete(*tc.Request); err != nil {
			completed = expected
		}
		return d.WebhookResponse(completed, actual)
	}
	assertValue(t, c, "ExpectedResponse", expected, actual, diff, func() []admission.Response {
		return []admission.Response{short}
	})
}
