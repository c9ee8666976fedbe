package testing

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/resourcestate"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/stash"
	"github.com/espalier-dev/espalier/testing/internal/check"
	"github.com/espalier-dev/espalier/testing/internal/objects"
	"github.com/espalier-dev/espalier/testing/internal/words"
	"github.com/espalier-dev/espalier/validation"
)

// SubReconcilerTestCase is one call to a sub-reconciler: the resource, other given objects, and the expectations. All
// writes must be expected, in the order of the calls of one kind.
//
// The given and expected objects may be anything that implements client.Object; the harness works with what their
// DeepCopyObject returns.
type SubReconcilerTestCase[Type client.Object] struct {
	// Name of the subtest. In a map of cases the key takes its place.
	Name string
	// Focus runs only this case and others with a focus. The suite then fails in any case.
	Focus bool
	// Skip skips this case.
	Skip bool
	// Metadata is for the factory and for Prepare. The harness ignores it.
	Metadata map[string]interface{}

	// Resource is the resource to reconcile. It is given to the client and to the APIReader too.
	Resource Type
	// GivenStashedValues are stored in the stash before.
	GivenStashedValues map[stash.Key]interface{}

	// The given state, beside the resource: the fields of ExpectConfig of these names.

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

	// ExpectResource is the resource as the sub-reconciler leaves it in memory; nil if it must not change.
	ExpectResource Type
	// ExpectStashedValues are values that must be in the stash. Others are ignored.
	ExpectStashedValues map[stash.Key]interface{}
	// VerifyStashedValue compares a stashed value; nil compares with the Differ.
	VerifyStashedValue VerifyStashedValueFunc

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
	// ShouldPanic says that the reconcile must panic.
	ShouldPanic bool
	// ExpectedResult is the result that the reconcile must return.
	ExpectedResult reconcilers.Result
	// Verify checks the result and the error further.
	Verify VerifyFunc

	// Prepare runs first. It may change the case. The context that it returns, unless nil, replaces the context of the
	// case. In a table that replays its rows, it runs for each replay too, and so does CleanUp.
	Prepare func(t *testing.T, ctx context.Context, tc *SubReconcilerTestCase[Type]) (context.Context, error)
	// CleanUp runs last, with the context of Prepare, also if the case failed.
	CleanUp func(t *testing.T, ctx context.Context, tc *SubReconcilerTestCase[Type]) error
	// Now is the time of the request; zero is the time the test runs.
	Now time.Time
	// Differ compares; nil is DefaultDiffer.
	Differ Differ
	// Server runs the case against a real API server, see ExpectConfig.Server. The objects of the case are deleted
	// there at its end. Nil runs it in memory. Prepare may set it.
	Server client.WithWatch

	// AdditionalReconciles run afterwards as subtests, in their order, with the same instance of the sub-reconciler,
	// which keeps its memory. Each is a separate case, with its own objects and expectations. They cannot have a focus.
	AdditionalReconciles []SubReconcilerTestCase[Type]

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
	// waits has to be made in the bubble, by Prepare or by the factory. Such a row has no AdditionalReconciles.
	VirtualTime bool

	mark mark
}

// VerifyStashedValueFunc compares a value of the stash with the expected one.
type VerifyStashedValueFunc func(t *testing.T, key stash.Key, expected, actual interface{})

// SubReconcilerTests are cases by name. They run in no particular order.
type SubReconcilerTests[Type client.Object] map[string]SubReconcilerTestCase[Type]

// SubReconcilerTestSuite are cases that run in their order.
type SubReconcilerTestSuite[Type client.Object] []SubReconcilerTestCase[Type]

// SubReconcilerFactory returns the sub-reconciler to test. It is called once per case, after Prepare; in NodeTests once
// for each instance, see there. The config is on the context of the reconcile too.
type SubReconcilerFactory[Type client.Object] func(
	t *testing.T, rtc *SubReconcilerTestCase[Type], c reconcilers.Config,
) reconcilers.SubReconciler[Type]

// Run runs the cases as subtests.
func (rt SubReconcilerTests[Type]) Run(t *testing.T, scheme *runtime.Scheme, factory SubReconcilerFactory[Type]) {
	t.Helper()
	runTests(t, rt, func(t *testing.T, tc *SubReconcilerTestCase[Type]) {
		t.Helper()
		tc.Run(t, scheme, factory)
	})
}

// Run runs the cases as subtests.
func (ts SubReconcilerTestSuite[Type]) Run(t *testing.T, scheme *runtime.Scheme, factory SubReconcilerFactory[Type]) {
	t.Helper()
	runSuite(t, ts, func(t *testing.T, tc *SubReconcilerTestCase[Type]) {
		t.Helper()
		tc.Run(t, scheme, factory)
	})
}

// Run runs the case and its additional reconciles. A sub-reconciler that can validate itself is validated, with all
// that is nested in it, before it reconciles. SetupWithManager is not called.
func (tc *SubReconcilerTestCase[Type]) Run(t *testing.T, scheme *runtime.Scheme, factory SubReconcilerFactory[Type]) {
	t.Helper()
	runAndReplay(t, tc, func(t *testing.T) writes {
		t.Helper()
		return tc.runOnce(t, scheme, factory)
	}, func(given *SubReconcilerTestCase[Type]) *replayed {
		return given.replays(tc, scheme, factory)
	})
}

// runOnce is Run without replays. It returns the writes.
func (tc *SubReconcilerTestCase[Type]) runOnce(
	t *testing.T, scheme *runtime.Scheme, factory SubReconcilerFactory[Type],
) writes {
	t.Helper()
	defer words.FailOnPanic(t)
	if !tc.mark.continues {
		tc.mark.states = &states{byUID: map[types.UID]*resourcestate.State{}}
	}
	run := begin(t, tc, scheme, stash.WithContext)
	defer run.end(t)
	if gotype.IsNil(tc.Resource) {
		t.Fatal("Resource field is required")
	}
	tc.give(run.expect)
	run.resource = tc.Resource
	run.check(t)
	r := factory(t, tc, run.expect.Config())
	if gotype.IsNil(r) {
		t.Fatal("the factory returned no sub-reconciler")
	}
	tc.reconcile(t, run, r)
	own := run.writes()

	for i := range tc.AdditionalReconciles {
		next := tc.AdditionalReconciles[i]
		if next.Focus {
			panic("Focus is not allowed for AdditionalReconciles")
		}
		if tc.VirtualTime {
			t.Fatal("a row in virtual time has no AdditionalReconciles: a bubble has no subtests")
		}
		next.mark = mark{
			origin: tc.mark.origin.Nested(next.Name), onServer: tc.mark.onServer,
			continues: true, states: tc.mark.states,
		}
		t.Run(next.Name, func(t *testing.T) {
			t.Helper()
			again := func(
				*testing.T, *SubReconcilerTestCase[Type], reconcilers.Config,
			) reconcilers.SubReconciler[Type] {
				return r
			}
			next.Run(t, scheme, again)
		})
	}
	return own
}

// give gives the resource to a config, beside other objects.
func (tc *SubReconcilerTestCase[Type]) give(c *ExpectConfig) {
	c.GivenObjects = append(slices.Clone(tc.GivenObjects), tc.Resource)
	c.how.Reconciled = len(tc.GivenObjects)
	if !c.how.APIServer {
		c.APIGivenObjects = append(slices.Clone(tc.APIGivenObjects), tc.Resource)
	}
}

func (tc *SubReconcilerTestCase[Type]) row() row {
	return row{
		mark: &tc.mark, name: &tc.Name, metadata: &tc.Metadata, now: &tc.Now, focus: tc.Focus, skip: tc.Skip,
		of: tc, builder: tc.WithClientBuilder,
		additional: tc.AdditionalConfigs, prepare: preparing(tc, tc.Prepare), cleanUp: cleaning(tc, tc.CleanUp),
		virtual: tc.VirtualTime, fault: tc.Fault, replays: tc.Replays, externals: tc.Externals, until: tc.Until,
	}
}

// reconcile calls the sub-reconciler, once unless the row says otherwise, and asserts the outcome.
func (tc *SubReconcilerTestCase[Type]) reconcile(t *testing.T, run *caseRun, r reconcilers.SubReconciler[Type]) {
	t.Helper()
	var first, last *handled[Type]
	result, err, unrest := run.requests(tc.Until, tc.ShouldErr || tc.ExpectedErr != nil, run.ctx,
		func(ctx context.Context) (reconcilers.Result, error) {
			t.Helper()
			h, found := tc.handle(t, ctx, run, r, first == nil)
			if !found {
				return reconcilers.Result{}, nil
			}
			if last = h; first == nil {
				first = last
			}
			return last.result, last.err
		})
	if tc.isPinned() {
		return
	}
	expected := first.before
	if !gotype.IsNil(tc.ExpectResource) {
		expected = objects.AsGiven(tc.ExpectResource)
		if run.expect.how.APIServer {
			expected = objects.Copy(tc.ExpectResource)
		}
	}
	outcome{
		result: result, err: err, expectedResult: tc.ExpectedResult, unrest: unrest,
		shouldErr: tc.ShouldErr, expectedErr: tc.ExpectedErr, verify: tc.Verify,
	}.assert(t, run)
	if run.expect.Server != nil {
		check.WithServerFields(expected, last.resource)
	}
	assertResource(t, run.expect, expected, last.resource)
	tc.assertStash(t, last.ctx, run.expect)
	run.assert(t)
}

// handled is one request to a sub-reconciler.
type handled[Type client.Object] struct {
	ctx context.Context
	// before and resource are the resource before the request and after it.
	before, resource Type
	result           reconcilers.Result
	err              error
}

// handle makes one request, unless the resource is gone since the first.
func (tc *SubReconcilerTestCase[Type]) handle(
	t *testing.T, ctx context.Context, run *caseRun, r reconcilers.SubReconciler[Type], first bool,
) (h *handled[Type], found bool) {
	t.Helper()
	if !first {
		ctx = stash.WithContext(ctx)
	}
	for key, value := range tc.GivenStashedValues {
		stash.StoreValue(ctx, key, copyOfValue(value))
	}
	h = &handled[Type]{resource: objects.AsGiven(tc.Resource)}
	if err := run.expect.fetch(ctx, h.resource); err != nil {
		if !first && apierrors.IsNotFound(err) {
			return nil, false
		}
		t.Fatalf("cannot get the given resource: %s", err)
	}
	h.before = objects.Copy(h.resource)
	ctx = run.stashAdditional(withRequest(tc.mark.states.of(ctx, h.resource), run.expect.Config(), h.resource))

	h.ctx = validation.WithRecursive(ctx)
	if v, ok := r.(validation.Validator); ok && first {
		if err := v.Validate(h.ctx); err != nil {
			t.Fatalf("subreconciler validation failed: %s", err)
		}
	}
	h.result, h.err = tc.call(t, h.ctx, r, h.resource)
	if tc.Until.rest {
		if err := run.expect.storeStatus(ctx, h.before, h.resource); err != nil {
			t.Fatalf("cannot store the status: %s", err)
		}
	}
	return h, true
}

// fetch fills obj from the API server. On a fake client it does nothing.
func (c *ExpectConfig) fetch(ctx context.Context, obj client.Object) error {
	if c.Server == nil && !c.how.APIServer {
		return nil
	}
	return c.made().Client.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj)
}

// call reconciles. An expected panic counts as a result without an error.
func (tc *SubReconcilerTestCase[Type]) call(
	t *testing.T, ctx context.Context, r reconcilers.SubReconciler[Type], resource Type,
) (reconcilers.Result, error) {
	t.Helper()
	if tc.ShouldPanic {
		defer expectPanic(t, "Reconcile()")
	}
	return r.Reconcile(ctx, resource)
}

// assertStash asserts the expected values of the stash.
func (tc *SubReconcilerTestCase[Type]) assertStash(t *testing.T, ctx context.Context, c *ExpectConfig) {
	t.Helper()
	for _, key := range slices.Sorted(maps.Keys(tc.ExpectStashedValues)) {
		expected, actual := copyOfValue(tc.ExpectStashedValues[key]), stash.RetrieveValue(ctx, key)
		if tc.VerifyStashedValue != nil {
			tc.VerifyStashedValue(t, key, expected, actual)
			continue
		}
		if gotype.IsNil(expected) && gotype.IsNil(actual) {
			continue
		}
		assertStashed(t, ctx, c, tc.ExpectStashedValues, key, actual)
	}
}

// withRequest returns the context that a root reconciler would pass on for the resource.
func withRequest(ctx context.Context, c reconcilers.Config, resource client.Object) context.Context {
	ctx = reconcilers.StashConfig(ctx, c)
	ctx = reconcilers.StashOriginalConfig(ctx, c)
	ctx = reconcilers.StashRequest(ctx, reconcilers.Request{
		NamespacedName: types.NamespacedName{Namespace: resource.GetNamespace(), Name: resource.GetName()},
	})
	ctx = reconcilers.StashOriginalResourceType(ctx, objects.Copy(resource))
	return reconcilers.StashResourceType(ctx, objects.Copy(resource))
}

var errNoNode = errors.New("the factory returned no sub-reconciler")

// replays returns the replays of the row, which Prepare left as prepared. The node is the tree of a root, so that
// errors, the status and requeues are handled as in production.
func (tc *SubReconcilerTestCase[Type]) replays(
	prepared *SubReconcilerTestCase[Type], scheme *runtime.Scheme, factory SubReconcilerFactory[Type],
) *replayed {
	r := replaysOf(tc, prepared, scheme, stash.WithContext, prepared.give, func(
		t *testing.T, tc *SubReconcilerTestCase[Type], c reconcilers.Config,
	) (reconcile.Reconciler, error) {
		node := factory(t, tc, c)
		if gotype.IsNil(node) {
			return nil, errNoNode
		}
		return &reconcilers.ResourceReconciler[Type]{
			Type: emptyOf(tc.Resource), Config: c,
			Reconciler: stashing[Type]{node, tc.GivenStashedValues},
			// The write of the observed generation alone leads to no other request.
			KeepResultAfterStatusUpdate: true,
		}, nil
	})
	r.ofNode = true
	r.request.NamespacedName = client.ObjectKeyFromObject(prepared.Resource)
	switch {
	case expectsFailure(prepared.ShouldErr, prepared.ExpectedErr):
		r.not = cmp.Or(r.not, "it expects an error")
	case prepared.ShouldPanic:
		r.not = cmp.Or(r.not, "it expects a panic")
	case prepared.mark.continues:
		r.not = cmp.Or(r.not, "it goes on with the instance of another row")
	}
	return r
}
