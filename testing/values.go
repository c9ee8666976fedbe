package testing

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/stash"
	"github.com/espalier-dev/espalier/testing/internal/check"
	"github.com/espalier-dev/espalier/testing/internal/literal"
	"github.com/espalier-dev/espalier/testing/internal/objects"
	"github.com/espalier-dev/espalier/testing/internal/words"
)

// assertError asserts that the error of a call is the expected one, or has its text. Without an expected error, it
// asserts only whether there is one.
func assertError(t *testing.T, call string, err, expected error, should bool) {
	t.Helper()
	if f, failed := errorFailure(call, err, expected, should); failed {
		t.Error(f.Text())
	}
}

// errorFailure is the failure of a call whose error is not the expected one.
func errorFailure(call string, err, expected error, should bool) (words.Failure, bool) {
	switch {
	case expected == nil && (err != nil) != should:
		return words.Failure{Headline: fmt.Sprintf("%s error = %v, ShouldErr %v", call, err, should)}, true
	case expected != nil && (err == nil || !errors.Is(err, expected) && err.Error() != expected.Error()):
		return words.Failure{Headline: fmt.Sprintf("%s error = %v, ExpectedErr %v", call, err, expected)}, true
	}
	return words.Failure{}, false
}

// outcome has the results of a reconcile and the expected ones.
type outcome struct {
	result reconcilers.Result
	err    error
	// unrest says that the requests go on.
	unrest         error
	expectedResult reconcilers.Result
	shouldErr      bool
	expectedErr    error
	verify         VerifyFunc
}

func (o outcome) assert(t *testing.T, run *caseRun) {
	t.Helper()
	c, halts := run.expect, false
	if o.unrest != nil {
		c.page().Add(t, words.Failure{Headline: o.unrest.Error()}, nil)
	}
	if text := run.panicked.Load(); text != nil && o.expectedErr == nil {
		t.Error(*text)
	} else if f, failed := errorFailure("Reconcile()", o.err, o.expectedErr, o.shouldErr); failed {
		var change *words.Change
		if value := haltOf(o.err); value != nil {
			f.Details = words.Hint("To expect it, set ExpectedErr to:", c.page().Writer(), value)
			change, halts = c.page().Set("ExpectedErr", value), true
		}
		c.page().Add(t, f, change)
		run.lacksError = o.err == nil
	}
	if o.err == nil || o.expectedErr != nil || halts {
		// Beside an error only the nodes above use the result, so tables that expect any error need not know it.
		check.Value[reconcilers.Result]{Field: "ExpectedResult", Diff: by(c, Differ.Result)}.
			Assert(c.page(), t, normalized(o.expectedResult), normalized(o.result))
	}
	if o.verify != nil {
		o.verify(t, o.result, o.err)
	}
}

// haltOf returns the variable that expects an error which is a halt and nothing else; nil for other errors.
func haltOf(err error) any {
	const pkg = "github.com/espalier-dev/espalier/reconcilers"
	switch {
	case isOnly(err, reconcilers.ErrHaltSubReconcilers):
		return literal.Variable{Package: pkg, Name: "ErrHaltSubReconcilers"}
	case isOnly(err, reconcilers.ErrDurable):
		return literal.Variable{Package: pkg, Name: "ErrDurable"}
	}
	return nil
}

// isOnly reports whether err is the other one, wrapped or joined with itself, and nothing else.
func isOnly(err, other error) bool {
	if err == other {
		return true
	}
	switch wrapper := err.(type) {
	case interface{ Unwrap() error }:
		return isOnly(wrapper.Unwrap(), other)
	case interface{ Unwrap() []error }:
		joined := wrapper.Unwrap()
		return len(joined) > 0 && !slices.ContainsFunc(joined, func(err error) bool { return !isOnly(err, other) })
	}
	return false
}

// normalized clears the field that controller-runtime ignores beside RequeueAfter.
func normalized(result reconcilers.Result) reconcilers.Result {
	if result.RequeueAfter != 0 {
		//lint:ignore SA1019 Trees for older versions still set it.
		result.Requeue = false
	}
	return result
}

// expectPanic makes a test fail at the end of a call that does not panic but should. Defer it.
func expectPanic(t *testing.T, call string) {
	t.Helper()
	if recover() == nil {
		t.Errorf("expected %s to panic", call)
	}
}

// assertResource asserts the resource of a sub-reconciler.
func assertResource(t *testing.T, c *ExpectConfig, expected, actual client.Object) {
	t.Helper()
	check.Value[client.Object]{
		Field: "ExpectResource", About: objects.NameOf(actual, c.Scheme),
		Diff: func(first *check.First, expected, actual client.Object) string {
			if c.how.APIServer {
				return c.differ(first).Resource(expected, c.alike(expected, check.WithoutServerSet(expected, actual)))
			}
			expected = objects.AsGiven(expected)
			if c.Server != nil {
				check.WithServerFields(expected, actual)
			}
			return c.differ(first).Resource(expected, actual)
		},
		Literals: func() []client.Object { return c.asWritten(check.ResourceForms(actual, c.Scheme)) },
		Written: func(value client.Object, meets func(client.Object) bool) any {
			return c.asChange(value, false, ".Object()", meets)
		},
	}.Assert(c.page(), t, expected, actual)
}

// assertStashed asserts one of the expected values of the stash.
func assertStashed(
	t *testing.T, ctx context.Context, c *ExpectConfig, expected map[stash.Key]any, key stash.Key, actual any,
) {
	t.Helper()
	want := copyOfValue(expected[key])
	if obj, ok := actual.(client.Object); ok && c.how.APIServer {
		if wanted, ok := want.(client.Object); ok {
			actual = c.alike(wanted, check.WithoutServerSet(wanted, obj))
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

// copyOfValue returns a deep copy of an object, and any other value as it is.
func copyOfValue(value any) any {
	if obj, ok := value.(runtime.Object); ok && !gotype.IsNil(obj) {
		return obj.DeepCopyObject()
	}
	return value
}
