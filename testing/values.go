package testing

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/espalier-dev/espalier/stash"
	"github.com/espalier-dev/espalier/testing/internal/check"
	"github.com/espalier-dev/espalier/testing/internal/objects"
)

// assertResource asserts the resource of a sub-reconciler.
func assertResource(t *testing.T, c *ExpectConfig, expected, actual client.Object) {
	t.Helper()
	check.Value[client.Object]{
		Field: "ExpectResource", About: objects.NameOf(actual, c.Scheme),
		Diff: func(first *check.First, expected, actual client.Object) string {
			if c.faithful {
				return c.differ(first).Resource(expected, check.WithoutServerSet(expected, actual))
			}
			expected = asGiven(expected)
			if c.Server != nil {
				check.WithServerFields(expected, actual)
			}
			return c.differ(first).Resource(expected, actual)
		},
		Literals: func() []client.Object { return c.asWritten(check.ResourceForms(actual, c.Scheme)) },
	}.Assert(c.page(), t, expected, actual)
}

// assertStashed asserts one of the expected values of the stash.
func assertStashed(
	t *testing.T, ctx context.Context, c *ExpectConfig, expected map[stash.Key]any, key stash.Key, actual any,
) {
	t.Helper()
	want := copyOfValue(expected[key])
	if obj, ok := actual.(client.Object); ok && c.faithful {
		if wanted, ok := want.(client.Object); ok {
			actual = check.WithoutServerSet(wanted, obj)
		}
	}
	all := map[stash.Key]any{}
	for key := range expected {
		if value := stash.RetrieveValue(ctx, key); value != nil {
			all[key] = value
		}
	}
	check.Value[any]{
		Field: fmt.Sprintf("ExpectStashedValues[%q]", key),
		Diff: func(first *check.First, expected, actual any) string {
			return c.differ(first).StashedValue(expected, actual, key)
		},
		Change: c.page().Set("ExpectStashedValues", all),
	}.Assert(c.page(), t, want, actual)
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
	check.Value[admission.Response]{
		Field: "ExpectedResponse",
		Diff: func(first *check.First, expected, actual admission.Response) string {
			completed := admission.Response{
				Patches: expected.Patches, AdmissionResponse: *expected.DeepCopy(),
			}
			if err := completed.Complete(*tc.Request); err != nil {
				completed = expected
			}
			return c.differ(first).WebhookResponse(completed, actual)
		},
		Literals: func() []admission.Response { return []admission.Response{short} },
	}.Assert(c.page(), t, expected, actual)
}
