package testing

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/stash"
	"github.com/espalier-dev/espalier/testing/internal/objects"
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
	StatusSubResourceTypes []client.Object
	GivenObjects           []client.Object
	APIGivenObjects        []client.Object
	GivenAPIResources      []*metav1.APIResourceList
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

	// ShouldErr says that the reconcile must return an error. ExpectedResult is then not compared, unless ExpectedErr
	// is set.
	ShouldErr bool
	// ShouldPanic says that the reconcile must panic.
	ShouldPanic bool
	// ExpectedResult is the result that the reconcile must return.
	ExpectedResult reconcilers.Result
	// Verify checks the result and the error further.
	Verify VerifyFunc

	// Prepare runs first. It may change the case. The context that it returns, unless nil, replaces the context of the
	// case.
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

	// origin is where the table of the case is run.
	origin *origin
}

// VerifyStashedValueFunc compares a value of the stash with the expected one.
type VerifyStashedValueFunc func(t *testing.T, key stash.Key, expected, actual interface{})

// SubReconcilerTests are cases by name. They run in no particular order.
type SubReconcilerTests[Type client.Object] map[string]SubReconcilerTestCase[Type]

// SubReconcilerTestSuite are cases that run in their order.
type SubReconcilerTestSuite[Type client.Object] []SubReconcilerTestCase[Type]

// SubReconcilerFactory returns the sub-reconciler to test. It is called once per case, after Prepare. The config is on
// the context of the reconcile too.
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
	defer failOnPanic(t)
	run := begin(t, tc, scheme, stash.WithContext)
	defer run.end(t)
	if objects.IsNil(tc.Resource) {
		t.Fatal("Resource field is required")
	}
	run.expect.GivenObjects = withLast(tc.GivenObjects, tc.Resource)
	run.expect.APIGivenObjects = withLast(tc.APIGivenObjects, tc.Resource)
	run.resource = tc.Resource
	run.check(t)
	r := factory(t, tc, run.expect.Config())
	if isNothing(r) {
		t.Fatal("the factory returned no sub-reconciler")
	}
	tc.reconcile(t, run, r)

	for i := range tc.AdditionalReconciles {
		next := tc.AdditionalReconciles[i]
		if next.Focus {
			panic("Focus is not allowed for AdditionalReconciles")
		}
		next.origin = tc.origin.nested(next.Name)
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
}

func (tc *SubReconcilerTestCase[Type]) fields() caseFields[SubReconcilerTestCase[Type]] {
	return caseFields[SubReconcilerTestCase[Type]]{
		origin: &tc.origin,
		name:   &tc.Name, focus: tc.Focus, skip: tc.Skip, metadata: &tc.Metadata, now: &tc.Now, differ: &tc.Differ,
		additional: tc.AdditionalConfigs, prepare: tc.Prepare, cleanUp: tc.CleanUp,
	}
}

// reconcile calls the sub-reconciler once and asserts the outcome.
func (tc *SubReconcilerTestCase[Type]) reconcile(t *testing.T, run *caseRun, r reconcilers.SubReconciler[Type]) {
	t.Helper()
	ctx, expect := run.ctx, run.expect
	for key, value := range tc.GivenStashedValues {
		stash.StoreValue(ctx, key, copyOfValue(value))
	}
	resource := asGiven(tc.Resource)
	if err := expect.fetch(ctx, resource); err != nil {
		t.Fatalf("cannot get the given resource: %s", err)
	}
	expected := objects.Copy(resource)
	if !objects.IsNil(tc.ExpectResource) {
		expected = asGiven(tc.ExpectResource)
	}
	ctx = run.stashAdditional(withRequest(ctx, expect.Config(), resource))

	ctx = validation.WithRecursive(ctx)
	if v, ok := r.(validation.Validator); ok {
		if err := v.Validate(ctx); err != nil {
			t.Fatalf("subreconciler validation failed: %s", err)
		}
	}

	result, err := tc.call(t, ctx, r, resource)

	outcome{
		result: result, err: err, expectedResult: tc.ExpectedResult,
		shouldErr: tc.ShouldErr, expectedErr: tc.ExpectedErr, verify: tc.Verify, differ: tc.Differ,
	}.assert(t, run.expect)
	if tc.Server != nil {
		withServerFields(expected, resource)
	}
	assertResource(t, run.expect, expected, resource)
	tc.assertStash(t, ctx, run.expect)
	run.assert(t)
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
		if objects.IsNil(expected) && objects.IsNil(actual) {
			continue
		}
		assertStashed(t, ctx, c, tc.ExpectStashedValues, key, actual)
	}
}

// withLast returns a new slice: objects often belongs to several cases.
func withLast(objects []client.Object, last client.Object) []client.Object {
	return append(objects[:len(objects):len(objects)], last)
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

// asGiven returns a copy of obj with the resource version that a given object has.
func asGiven[Type client.Object](obj Type) Type {
	c := objects.Copy(obj)
	if c.GetResourceVersion() == "" {
		c.SetResourceVersion(givenVersion)
	}
	return c
}

// copyOfValue returns a deep copy of an object, and any other value as it is.
func copyOfValue(value any) any {
	if obj, ok := value.(runtime.Object); ok && !objects.IsNil(obj) {
		return obj.DeepCopyObject()
	}
	return value
}
