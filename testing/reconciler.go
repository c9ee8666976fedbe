package testing

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/validation"
)

// ReconcilerTestCase is one request to a reconciler: what there is, what is asked, and what must come of it. Everything
// that the reconciler writes must be expected, in the order of the calls of one kind.
//
// The given and expected objects may be anything that implements client.Object; the harness works with what their
// DeepCopyObject returns.
type ReconcilerTestCase struct {
	// Name of the subtest. In a map of cases the key takes its place.
	Name string
	// Focus runs only this case and others with a focus. The suite then fails, whatever they do.
	Focus bool
	// Skip skips this case.
	Skip bool
	// Metadata is for the factory and for Prepare; the harness does not look at it.
	Metadata map[string]interface{}

	// Request is the request to reconcile.
	Request reconcilers.Request

	// WithReactors react to the calls to the client and to the reads through the APIReader; the first listed is asked first.
	WithReactors []ReactionFunc
	// WithClientBuilder completes the builders of the fake clients, also that of the APIReader. What it sets wins.
	WithClientBuilder func(*fake.ClientBuilder) *fake.ClientBuilder
	// StatusSubResourceTypes are the types, besides the built-in ones, whose status is written on its own.
	StatusSubResourceTypes []client.Object
	// GivenObjects are those that the client has.
	GivenObjects []client.Object
	// APIGivenObjects are those that the APIReader has. They are not given to the client.
	APIGivenObjects []client.Object
	// GivenAPIResources are those that discovery and the REST mapper know.
	GivenAPIResources []*metav1.APIResourceList
	// GivenTracks are those that the tracker has.
	GivenTracks []TrackRequest

	// ExpectTracks are the requests to the tracker.
	ExpectTracks []TrackRequest
	// ExpectEvents are the events.
	ExpectEvents []Event
	// ExpectApplies are the server-side applies.
	ExpectApplies []ApplyRef
	// ExpectCreates are the objects created.
	ExpectCreates []client.Object
	// ExpectUpdates are the objects updated, as sent.
	ExpectUpdates []client.Object
	// ExpectPatches are the patches.
	ExpectPatches []PatchRef
	// ExpectDeletes are the deletes.
	ExpectDeletes []DeleteRef
	// ExpectDeleteCollections are the deletes of collections.
	ExpectDeleteCollections []DeleteCollectionRef
	// ExpectStatusUpdates are the objects whose status is updated, as sent.
	ExpectStatusUpdates []client.Object
	// ExpectStatusPatches are the patches of a status.
	ExpectStatusPatches []PatchRef
	// ExpectStatusApplies are the server-side applies of a status.
	ExpectStatusApplies []ApplyRef

	// AdditionalConfigs are configs for other clusters or identities, by the name under which
	// reconcilers.RetrieveAdditionalConfigs has them. Scheme and Differ are those of the case unless set.
	AdditionalConfigs map[string]ExpectConfig

	// ShouldErr says that the reconcile must return an error. ExpectedResult is then not compared.
	ShouldErr bool
	// ExpectedResult is what the reconcile must return.
	ExpectedResult reconcilers.Result
	// Verify checks the result and the error further.
	Verify VerifyFunc

	// Prepare runs first. It may change the case, and replaces the context by what it returns unless that is nil.
	Prepare func(t *testing.T, ctx context.Context, tc *ReconcilerTestCase) (context.Context, error)
	// CleanUp runs last, with the context of Prepare, whatever happened in between.
	CleanUp func(t *testing.T, ctx context.Context, tc *ReconcilerTestCase) error
	// Now is the time of the request; zero is the time the test runs.
	Now time.Time
	// Differ compares; nil is DefaultDiffer.
	Differ Differ
	// Server runs the case against a real API server, see ExpectConfig.Server; what there is of the case there goes at
	// its end. Nil runs it in memory. Prepare may set it.
	Server client.WithWatch

	// ExpectOrder is the order of all that is written, see ExpectConfig.ExpectOrder; nil for any.
	ExpectOrder []string
	// ExpectedErr is the error that the reconcile must return: one that errors.Is finds, or one of the same text. It
	// implies ShouldErr; and other than with ShouldErr alone, ExpectedResult is compared too. Nil says nothing.
	ExpectedErr error
}

// ReconcilerTests are cases by name. They run in no particular order.
type ReconcilerTests map[string]ReconcilerTestCase

// ReconcilerTestSuite are cases that run in their order.
type ReconcilerTestSuite []ReconcilerTestCase

// ReconcilerFactory returns the reconciler to test, which works with c. It is called once per case, after Prepare.
type ReconcilerFactory func(t *testing.T, rtc *ReconcilerTestCase, c reconcilers.Config) reconcile.Reconciler

// Run runs the cases as subtests.
func (rt ReconcilerTests) Run(t *testing.T, scheme *runtime.Scheme, factory ReconcilerFactory) {
	t.Helper()
	suite := make(ReconcilerTestSuite, 0, len(rt))
	for name, tc := range rt {
		tc.Name = name
		suite = append(suite, tc)
	}
	suite.Run(t, scheme, factory)
}

// Run runs the cases as subtests.
func (ts ReconcilerTestSuite) Run(t *testing.T, scheme *runtime.Scheme, factory ReconcilerFactory) {
	t.Helper()
	members := make([]member, len(ts))
	for i := range ts {
		tc := ts[i]
		members[i] = member{name: tc.Name, focused: tc.Focus, run: func(t *testing.T) { tc.Run(t, scheme, factory) }}
	}
	runSuite(t, members)
}

// Run runs the case. A reconciler that can validate itself is validated, with all that is nested in it, before it
// reconciles.
func (tc *ReconcilerTestCase) Run(t *testing.T, scheme *runtime.Scheme, factory ReconcilerFactory) {
	t.Helper()
	if tc.Skip {
		t.SkipNow()
	}
	ctx := tc.prepare(t)
	var configs []*ExpectConfig
	defer func() { releaseAll(t, configs) }()
	defer func() { cleanUp(t, ctx, tc, tc.CleanUp) }()

	expect := expectConfigOf(tc, scheme)
	others := additionalOf(tc.AdditionalConfigs, scheme, tc.Differ)
	configs = append(others.configs(), expect)
	ctx = others.stash(ctx)
	r := factory(t, tc, expect.Config())

	ctx = validation.WithRecursive(ctx)
	if v, ok := r.(validation.Validator); ok {
		if err := v.Validate(ctx); err != nil {
			t.Fatalf("reconciler validation failed: %s", err)
		}
	}
	result, err := r.Reconcile(ctx, tc.Request)

	outcome{
		result: result, err: err, expectedResult: tc.ExpectedResult,
		shouldErr: tc.ShouldErr, expectedErr: tc.ExpectedErr, verify: tc.Verify, differ: tc.Differ,
	}.assert(t)
	expect.AssertExpectations(t)
	others.assert(t)
}

// prepare completes the case and returns its context.
func (tc *ReconcilerTestCase) prepare(t *testing.T) context.Context {
	t.Helper()
	if tc.Now.IsZero() {
		tc.Now = time.Now()
	}
	if tc.Metadata == nil {
		tc.Metadata = map[string]interface{}{}
	}
	ctx := newContext(t, tc.Now)
	ctx = prepare(t, ctx, tc, tc.Prepare)
	if tc.Differ == nil {
		tc.Differ = DefaultDiffer
	}
	return ctx
}
