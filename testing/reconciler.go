package testing

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/testing/internal/run"
	"github.com/espalier-dev/espalier/testing/internal/words"
	"github.com/espalier-dev/espalier/validation"
)

// ReconcilerTestCase is one request to a reconciler: the given objects, the request, and the expectations. All writes
// of the reconciler must be expected, in the order of the calls of one kind.
//
// The given and expected objects may be anything that implements client.Object; the harness works with what their
// DeepCopyObject returns.
type ReconcilerTestCase struct {
	// Name of the subtest. In a map of cases the key takes its place.
	Name string
	// Focus runs only this case and others with a focus. The suite then fails in any case.
	Focus bool
	// Skip skips this case.
	Skip bool
	// Metadata is for the factory and for Prepare. The harness ignores it.
	Metadata map[string]interface{}

	// Request is the request to reconcile.
	Request reconcilers.Request

	// The given state: the fields of ExpectConfig of these names. Nil StatusSubResourceTypes are the types of the given
	// objects that have a status, a field Status of the Go type. An empty list is none.

	WithReactors           []ReactionFunc
	WithClientBuilder      func(*fake.ClientBuilder) *fake.ClientBuilder
	UseFake                bool
	WithoutNamespaces      bool
	StatusSubResourceTypes []client.Object
	GivenObjects           []client.Object
	APIGivenObjects        []client.Object
	GivenAPIResources      []*metav1.APIResourceList
	GivenIndexes           []Index
	GivenTracks            []TrackRequest

	// The expectations: the fields of ExpectConfig of these names.

	ExpectTracks            []TrackRequest
	ExpectEvents            []Event
	ExpectApplies           []ApplyRef
	ExpectCreates           []client.Object
	ExpectUpdates           []client.Object
	ExpectPatches           []PatchRef
	ExpectDeletes           []DeleteRef
	ExpectDeleteCollections []DeleteCollectionRef
	ExpectStatusUpdates     []client.Object
	ExpectStatusPatches     []PatchRef
	ExpectStatusApplies     []ApplyRef

	// AdditionalConfigs are configs for other clusters or identities, by the name under which
	// reconcilers.RetrieveAdditionalConfigs has them. Unset Schemes and Differs are set to those of the case.
	AdditionalConfigs map[string]ExpectConfig

	// ShouldErr says that the reconcile must return an error, but that of a panic. ExpectedResult is then not compared,
	// unless ExpectedErr is set.
	ShouldErr bool
	// ExpectedResult is the result that the reconcile must return.
	ExpectedResult reconcilers.Result
	// Verify checks the result and the error further.
	Verify VerifyFunc

	// Prepare runs first. It may change the case. The context that it returns, unless nil, replaces the context of the
	// case. In a table that replays its rows, it runs for each replay too, and so does CleanUp.
	Prepare func(t *testing.T, ctx context.Context, tc *ReconcilerTestCase) (context.Context, error)
	// CleanUp runs last, with the context of Prepare, also if the case failed.
	CleanUp func(t *testing.T, ctx context.Context, tc *ReconcilerTestCase) error
	// Now is the time of the request; zero is the time the test runs.
	Now time.Time
	// Differ compares; nil is DefaultDiffer.
	Differ Differ
	// Server runs the case against a real API server, see ExpectConfig.Server. The objects of the case are deleted
	// there at its end. Nil runs it in memory. Prepare may set it.
	Server client.WithWatch

	// ExpectOrder is the order of all writes, see ExpectConfig.ExpectOrder; nil for any.
	ExpectOrder []string
	// ExpectedErr is the error that the reconcile must return, as errors.Is finds it or by its text. It implies
	// ShouldErr, and ExpectedResult is compared too. Nil expects no particular error.
	ExpectedErr error

	// The fields below are for rows of NodeTests and RootTests. In other tables they are an error.

	// Fault replays the row with this fault alone, instead of one at each call. The row fails as long as it ends in
	// another way with the fault than without. If it has no expectation, its own run is not compared with any: that is
	// the row that a replay prints for what it has found.
	Fault Fault
	// Replays says how the row is replayed; the zero value is all that a row needs.
	Replays Replays
	// Externals are what the code under test works with beside the cluster. They are reset before each run.
	Externals []External
	// Until says when the row has made enough requests; the zero value is after one. See Rest.
	Until Until

	// VirtualTime runs the row and each replay in a bubble of testing/synctest, where waiting takes no time. All that
	// waits has to be made in the bubble, by Prepare or by the factory.
	VirtualTime bool

	mark mark
}

// ReconcilerTests are cases by name. They run in no particular order.
type ReconcilerTests map[string]ReconcilerTestCase

// ReconcilerTestSuite are cases that run in their order.
type ReconcilerTestSuite []ReconcilerTestCase

// ReconcilerFactory returns the reconciler to test, which works with c. It is called once per case, after Prepare; in
// RootTests once for each instance, see NodeTests.
type ReconcilerFactory func(t *testing.T, rtc *ReconcilerTestCase, c reconcilers.Config) reconcile.Reconciler

// Run runs the cases as subtests.
func (rt ReconcilerTests) Run(t *testing.T, scheme *runtime.Scheme, factory ReconcilerFactory) {
	t.Helper()
	runTests(t, rt, func(t *testing.T, tc *ReconcilerTestCase) {
		t.Helper()
		tc.Run(t, scheme, factory)
	})
}

// Run runs the cases as subtests.
func (ts ReconcilerTestSuite) Run(t *testing.T, scheme *runtime.Scheme, factory ReconcilerFactory) {
	t.Helper()
	runSuite(t, ts, func(t *testing.T, tc *ReconcilerTestCase) {
		t.Helper()
		tc.Run(t, scheme, factory)
	})
}

// Run runs the case. A reconciler that can validate itself is validated, with all that is nested in it, before it
// reconciles.
func (tc *ReconcilerTestCase) Run(t *testing.T, scheme *runtime.Scheme, factory ReconcilerFactory) {
	t.Helper()
	runAndReplay(t, tc, func(t *testing.T) writes {
		t.Helper()
		return tc.runOnce(t, scheme, factory)
	}, func(given *ReconcilerTestCase) *replayed {
		return given.replays(tc, scheme, factory)
	})
}

// runOnce is Run without replays. It returns the writes.
func (tc *ReconcilerTestCase) runOnce(t *testing.T, scheme *runtime.Scheme, factory ReconcilerFactory) writes {
	t.Helper()
	defer words.FailOnPanic(t)
	run := begin(t, tc, scheme)
	defer run.end(t)
	tc.give(run.expect)
	run.request = &tc.Request
	run.check(t)
	r := factory(t, tc, run.expect.Config())
	if gotype.IsNil(r) {
		t.Fatal("the factory returned no reconciler")
	}

	ctx := validation.WithRecursive(run.stashAdditional(run.ctx))
	if v, ok := r.(validation.Validator); ok {
		if err := v.Validate(ctx); err != nil {
			t.Fatalf("reconciler validation failed: %s", err)
		}
	}
	result, err, unrest := run.requests(tc.Until, tc.ShouldErr || tc.ExpectedErr != nil, ctx,
		func(ctx context.Context) (reconcilers.Result, error) { return r.Reconcile(ctx, tc.Request) })
	if tc.isPinned() {
		return nil
	}

	outcome{
		result: result, err: err, expectedResult: tc.ExpectedResult, unrest: unrest,
		shouldErr: tc.ShouldErr, expectedErr: tc.ExpectedErr, verify: tc.Verify,
	}.assert(t, run)
	run.assert(t)
	tc.checkRequest(t, run.expect)
	return run.writes()
}

// give says which of the given objects the request may be for, as its kind is not known, and which have a status.
func (tc *ReconcilerTestCase) give(c *ExpectConfig) {
	c.how.Requested = &tc.Request.NamespacedName
	if c.StatusSubResourceTypes == nil {
		c.StatusSubResourceTypes = run.TypesWithStatus(tc.GivenObjects, c.Scheme)
	}
}

func (tc *ReconcilerTestCase) row() row {
	return row{
		mark: &tc.mark, name: &tc.Name, metadata: &tc.Metadata, now: &tc.Now, focus: tc.Focus, skip: tc.Skip,
		of: tc, builder: tc.WithClientBuilder,
		additional: tc.AdditionalConfigs, prepare: preparing(tc, tc.Prepare), cleanUp: cleaning(tc, tc.CleanUp),
		virtual: tc.VirtualTime, fault: tc.Fault, replays: tc.Replays, externals: tc.Externals, until: tc.Until,
	}
}

var errNoRoot = errors.New("the factory returned no reconciler")

// replays returns the replays of the row, which Prepare left as prepared.
func (tc *ReconcilerTestCase) replays(
	prepared *ReconcilerTestCase, scheme *runtime.Scheme, factory ReconcilerFactory,
) *replayed {
	same := func(ctx context.Context) context.Context { return ctx }
	r := replaysOf(tc, prepared, scheme, same, prepared.give, func(
		t *testing.T, tc *ReconcilerTestCase, c reconcilers.Config,
	) (reconcile.Reconciler, error) {
		root := factory(t, tc, c)
		if gotype.IsNil(root) {
			return nil, errNoRoot
		}
		return root, nil
	})
	r.request = prepared.Request
	if prepared.ShouldErr || prepared.ExpectedErr != nil {
		r.not = cmp.Or(r.not, "it expects an error")
	}
	return r
}
