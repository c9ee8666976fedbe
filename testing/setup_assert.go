package testing

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/testing/internal/literal"
)

// patience is for how long a case waits for controllers to start, and for requests that are expected and do not come.
var patience = 30 * time.Second

func (tc *SetupTestCase) assertError(t *testing.T, err error) {
	t.Helper()
	switch {
	case tc.ExpectedErr != nil:
		if !isExpected(tc.ExpectedErr, err) {
			t.Errorf("SetupWithManager() error = %v, ExpectedErr %v", err, tc.ExpectedErr)
		}
	case (err != nil) != tc.ShouldErr:
		t.Errorf("SetupWithManager() error = %v, ShouldErr %v", err, tc.ShouldErr)
	}
	if tc.Verify != nil {
		tc.Verify(t, err)
	}
}

// run lets the event happen and asserts the requests that come of it.
func (e SetupEvent) run(t *testing.T, ctx context.Context, i int, mgr *setupManager) {
	t.Helper()
	at := fmt.Sprintf("Events[%d] (%s)", i, cmp.Or(e.Name, e.describe(mgr.scheme), "nothing"))
	if e.describe(mgr.scheme) == "" {
		t.Errorf("%s has nothing that happens", at)
	}
	before := e.Before
	if isNil(before) || isNil(e.Updated) {
		before = e.Updated
	}
	for _, change := range []struct{ before, after client.Object }{{after: e.Created}, {before, e.Updated}, {before: e.Deleted}} {
		if err := mgr.cache.announce(change.before, change.after); err != nil {
			t.Errorf("%s cannot happen: %s", at, err)
		}
	}
	if e.Send != nil {
		e.Send(ctx)
		mgr.requests.await(ctx, len(distinct(e.ExpectRequests)))
	}
	assertRequests(t, at+": ", e.ExpectRequests, mgr.requests.take())
}

// describe says what happens, nothing if nothing does.
func (e SetupEvent) describe(scheme *runtime.Scheme) string {
	var happens []string
	for _, change := range []struct {
		verb string
		obj  client.Object
	}{{"created ", e.Created}, {"updated ", e.Updated}, {"deleted ", e.Deleted}} {
		if isNil(change.obj) {
			continue
		}
		obj := realObject(change.obj)
		kind, err := kindOf(obj, scheme)
		if err != nil {
			kind.Kind = fmt.Sprintf("%T", obj)
		}
		happens = append(happens, change.verb+kind.Kind+" "+targetOf(obj.GetNamespace(), obj.GetName()))
	}
	if e.Send != nil {
		happens = append(happens, "sent")
	}
	return strings.Join(happens, ", ")
}

func assertRequests(t *testing.T, at string, expected, actual []reconcilers.Request) {
	t.Helper()
	expected, actual = distinct(expected), distinct(actual)
	assertTexts(t, at+"ExpectRequests", texts(expected), texts(actual), actual)
}

func assertWatches(t *testing.T, expected []client.Object, cache *setupCache) {
	t.Helper()
	watched := cache.watched()
	actual := make([]client.Object, len(watched))
	observed := make([]string, len(watched))
	for i, w := range watched {
		actual[i], observed[i] = w.object(cache.scheme), w.String()
	}
	wanted := make([]string, len(expected))
	for i, obj := range expected {
		wanted[i] = textOfType(obj, cache.scheme)
	}
	slices.Sort(wanted)
	assertTexts(t, "ExpectWatches", wanted, observed, actual)
}

func assertIndexes(t *testing.T, expected []IndexRef, cache *setupCache) {
	t.Helper()
	indexed := cache.indexed()
	actual := make([]IndexRef, len(indexed))
	observed := make([]string, len(indexed))
	for i, x := range indexed {
		actual[i] = IndexRef{Object: x.of.object(cache.scheme), Field: x.field}
		observed[i] = x.of.String() + " by " + x.field
	}
	wanted := make([]string, len(expected))
	for i, ref := range expected {
		wanted[i] = textOfType(ref.Object, cache.scheme) + " by " + ref.Field
	}
	slices.Sort(wanted)
	assertTexts(t, "ExpectIndexes", wanted, observed, actual)
}

// assertTexts compares what is in a field of a case by its texts. Actual is what the field would have to be.
func assertTexts(t *testing.T, field string, expected, observed []string, actual any) {
	t.Helper()
	if diff := gocmp.Diff(expected, observed, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s differs %s:\n%s\nTo expect it, set it to:\n%s,", field, legend(), ColorizeDiff(diff), literal.Of(actual))
	}
}

// textOfType names the type that an object of a table stands for.
func textOfType(obj client.Object, scheme *runtime.Scheme) string {
	if isNil(obj) {
		return "nil"
	}
	w, err := watchedTypeOf(realObject(obj), scheme)
	if err != nil {
		return err.Error()
	}
	return w.String()
}

// distinct returns the requests in their order, each once.
func distinct(requests []reconcilers.Request) []reconcilers.Request {
	sorted := slices.SortedFunc(slices.Values(requests), func(a, b reconcilers.Request) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return slices.Compact(sorted)
}

func texts(requests []reconcilers.Request) []string {
	lines := make([]string, len(requests))
	for i, request := range requests {
		lines[i] = targetOf(request.Namespace, request.Name)
	}
	return lines
}
