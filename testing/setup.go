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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/testing/internal/fakemanager"
	"github.com/espalier-dev/espalier/testing/internal/literal"
	"github.com/espalier-dev/espalier/testing/internal/objects"
)

// SetupTestCase is one set-up with a manager that has no cluster: which types are then watched, which fields are indexed,
// and which requests come of which events. The manager's controllers are started as they are, but with a queue that only
// notes what it is given: nothing is reconciled. Set-up writes nothing: a write fails the case.
type SetupTestCase struct {
	// Name of the subtest. In a map of cases the key takes its place.
	Name string
	// Focus runs only this case and others with a focus. The suite then fails, whatever they do.
	Focus bool
	// Skip skips this case.
	Skip bool
	// Metadata is for the factory and for Prepare; the harness does not look at it.
	Metadata map[string]interface{}

	// What there is: the members of ExpectConfig of these names. The objects are what the clients of the manager have; they
	// make no events. Kinds of the scheme that are not among the GivenAPIResources are namespaced, but for those built-in
	// ones that are known not to be.

	WithReactors           []ReactionFunc
	WithClientBuilder      func(*fake.ClientBuilder) *fake.ClientBuilder
	StatusSubResourceTypes []client.Object
	GivenObjects           []client.Object
	APIGivenObjects        []client.Object
	GivenAPIResources      []*metav1.APIResourceList
	GivenTracks            []TrackRequest

	// ExpectWatches has an object of each type that is watched, as often as it is watched, in any order. Unstructured
	// objects, and metadata alone, are types of their own, as in a cache.
	ExpectWatches []client.Object
	// ExpectIndexes are the fields that are indexed, in any order.
	ExpectIndexes []IndexRef
	// ExpectRequests are the requests that the start makes: those of raw sources. The case waits until as many are there.
	ExpectRequests []reconcilers.Request
	// Events happen afterwards, in their order.
	Events []SetupEvent

	// ShouldErr says that set-up must return an error. Then nothing is started.
	ShouldErr bool
	// ExpectedErr is the error that set-up must return: one that errors.Is finds, or one of the same text. It implies
	// ShouldErr. Nil says nothing.
	ExpectedErr error
	// Verify checks the error further; it is called without one too.
	Verify VerifySetupFunc

	// Prepare runs first. It may change the case, and replaces the context by what it returns unless that is nil.
	Prepare func(t *testing.T, ctx context.Context, tc *SetupTestCase) (context.Context, error)
	// CleanUp runs last, with the context of Prepare, whatever happened in between.
	CleanUp func(t *testing.T, ctx context.Context, tc *SetupTestCase) error
}

// VerifySetupFunc checks the outcome of a set-up beyond what the fields of a test case can express.
type VerifySetupFunc func(t *testing.T, err error)

// IndexRef is an expected index of a field.
type IndexRef struct {
	// Object is of the type that is indexed.
	Object client.Object
	// Field is the name of the index. That by which a tree finds children is OwnerIndex.
	Field string
}

// OwnerIndex is the index of children by the UID of their controller, which each type of child has that is found by its
// owner.
const OwnerIndex = ".espalier.dev/controller-uid"

// SetupEvent is something that happens while the controllers run, and the requests that must come of it. If several of
// its members are set, they happen in the order they have here.
type SetupEvent struct {
	// Name stands in failure messages. Default: a description, such as "created ConfigMap default/settings".
	Name string

	// Created is an object that came into being, or that is there when its watch starts.
	Created client.Object
	// Updated is an object that changed, as it is now.
	Updated client.Object
	// Before is the object Updated as it was. Default: as it is, which is how a periodic resync looks.
	Before client.Object
	// Deleted is an object that is gone, as it was last seen.
	Deleted client.Object
	// Send does what a raw source hears of, such as to put a generic event into its channel. The case waits until as many
	// requests are there as are expected; more of them that come later count for the next event.
	Send func(ctx context.Context)

	// ExpectRequests are the requests, in any order. As in a queue, the same one twice counts once, and a delay is not
	// looked at.
	ExpectRequests []reconcilers.Request
}

// Setup is what is set up. Root reconcilers are such.
type Setup interface {
	SetupWithManager(ctx context.Context, mgr reconcilers.Manager) error
}

// SetupFunc is a set-up by a function, for controllers that are built by hand.
type SetupFunc func(ctx context.Context, mgr reconcilers.Manager) error

// SetupWithManager calls f.
func (f SetupFunc) SetupWithManager(ctx context.Context, mgr reconcilers.Manager) error {
	return f(ctx, mgr)
}

// SubReconcilerSetup returns the set-up of a sub-reconciler: that of a root which has nothing else. The type of the
// resource is thus watched too.
func SubReconcilerSetup[Type client.Object](c reconcilers.Config, r reconcilers.SubReconciler[Type]) Setup {
	return &reconcilers.ResourceReconciler[Type]{Config: c, Reconciler: r}
}

// SetupFactory returns what is set up. It is called once per case, after Prepare. The config is one of the manager, as
// reconcilers.NewConfig makes it, with a tracker that has the GivenTracks.
type SetupFactory func(t *testing.T, tc *SetupTestCase, c reconcilers.Config) Setup

// SetupTests are cases by name. They run in no particular order.
type SetupTests map[string]SetupTestCase

// SetupTestSuite are cases that run in their order.
type SetupTestSuite []SetupTestCase

// Run runs the cases as subtests.
func (st SetupTests) Run(t *testing.T, scheme *runtime.Scheme, factory SetupFactory) {
	t.Helper()
	runTests(t, st, func(t *testing.T, tc *SetupTestCase) { tc.Run(t, scheme, factory) })
}

// Run runs the cases as subtests.
func (ts SetupTestSuite) Run(t *testing.T, scheme *runtime.Scheme, factory SetupFactory) {
	t.Helper()
	runSuite(t, ts, func(t *testing.T, tc *SetupTestCase) { tc.Run(t, scheme, factory) })
}

// Run runs the case.
func (tc *SetupTestCase) Run(t *testing.T, scheme *runtime.Scheme, factory SetupFactory) {
	t.Helper()
	run := begin(t, tc, scheme)
	defer run.end(t)
	p := run.expect.made()
	mgr := fakemanager.New(p.config, p.fake)
	setup := factory(t, tc, mgr.NewConfig())
	if objects.IsNil(setup) {
		t.Fatal("Setup factory returned nothing to set up")
	}
	err := setup.SetupWithManager(run.ctx, mgr)
	assertError(t, "SetupWithManager()", err, tc.ExpectedErr, tc.ShouldErr)
	if tc.Verify != nil {
		tc.Verify(t, err)
	}
	if err == nil {
		tc.run(t, run.ctx, mgr)
	}
	run.assert(t)
}

func (tc *SetupTestCase) fields() caseFields[SetupTestCase] {
	return caseFields[SetupTestCase]{
		name: &tc.Name, focus: tc.Focus, skip: tc.Skip, metadata: &tc.Metadata, now: new(time.Time), differ: new(Differ),
		prepare: tc.Prepare, cleanUp: tc.CleanUp,
	}
}

// setupTimeout limits the wait for controllers to start, and for requests that are expected and do not come.
var setupTimeout = 30 * time.Second

// run starts what was set up, lets the events happen, and asserts what comes of it.
func (tc *SetupTestCase) run(t *testing.T, ctx context.Context, mgr *fakemanager.Manager) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	stop, err := mgr.StartControllers(ctx, setupTimeout)
	if err != nil {
		t.Errorf("the controllers cannot be started: %s", err)
	} else {
		mgr.Requests.Await(ctx, len(distinct(tc.ExpectRequests)), setupTimeout)
		assertRequests(t, "", tc.ExpectRequests, mgr.Requests.Take())
		for i, event := range tc.Events {
			event.run(t, ctx, i, mgr)
		}
	}
	cancel()
	if err := stop(); err != nil {
		t.Errorf("the controllers cannot be stopped: %s", err)
	}
	if late := mgr.Requests.Take(); len(late) > 0 {
		t.Errorf("Unexpected requests observed at the end: %q", textsOf(late, textOfRequest))
	}
	for _, problem := range mgr.Cache.Problems() {
		t.Error(problem)
	}

	scheme := mgr.GetScheme()
	textOfType := func(obj client.Object) string { return textOfType(obj, scheme) }
	var watched []client.Object
	for _, watch := range mgr.Cache.Watched() {
		watched = append(watched, watch.Object(scheme))
	}
	assertSet(t, "ExpectWatches", tc.ExpectWatches, watched, textOfType)
	var indexed []IndexRef
	for _, index := range mgr.Cache.Indexed() {
		indexed = append(indexed, IndexRef{Object: index.Of.Object(scheme), Field: index.Field})
	}
	assertSet(t, "ExpectIndexes", tc.ExpectIndexes, indexed, func(ref IndexRef) string {
		return textOfType(ref.Object) + " by " + ref.Field
	})
}

// run lets the event happen and asserts the requests that come of it.
func (e SetupEvent) run(t *testing.T, ctx context.Context, i int, mgr *fakemanager.Manager) {
	t.Helper()
	happens := e.describe(mgr.GetScheme())
	at := fmt.Sprintf("Events[%d] (%s)", i, cmp.Or(e.Name, happens, "nothing"))
	if happens == "" {
		t.Errorf("%s has nothing that happens", at)
	}
	before := e.Before
	if objects.IsNil(before) || objects.IsNil(e.Updated) {
		before = e.Updated
	}
	for _, change := range []struct{ before, after client.Object }{{after: e.Created}, {before, e.Updated}, {before: e.Deleted}} {
		if err := mgr.Cache.Send(change.before, change.after); err != nil {
			t.Errorf("%s cannot happen: %s", at, err)
		}
	}
	if e.Send != nil {
		e.Send(ctx)
		mgr.Requests.Await(ctx, len(distinct(e.ExpectRequests)), setupTimeout)
	}
	assertRequests(t, at+": ", e.ExpectRequests, mgr.Requests.Take())
}

// describe says what happens, nothing if nothing does.
func (e SetupEvent) describe(scheme *runtime.Scheme) string {
	var happens []string
	for _, change := range []struct {
		verb string
		obj  client.Object
	}{{"created ", e.Created}, {"updated ", e.Updated}, {"deleted ", e.Deleted}} {
		if objects.IsNil(change.obj) {
			continue
		}
		obj := objects.Copy(change.obj)
		kind, err := objects.KindOf(obj, scheme)
		if err != nil {
			kind.Kind = fmt.Sprintf("%T", obj)
		}
		happens = append(happens, change.verb+kind.Kind+" "+objects.Path(obj.GetNamespace(), obj.GetName()))
	}
	if e.Send != nil {
		happens = append(happens, "sent")
	}
	return strings.Join(happens, ", ")
}

func assertRequests(t *testing.T, at string, expected, actual []reconcilers.Request) {
	t.Helper()
	assertSet(t, at+"ExpectRequests", distinct(expected), distinct(actual), textOfRequest)
}

// distinct returns the requests in order, each once.
func distinct(requests []reconcilers.Request) []reconcilers.Request {
	sorted := slices.SortedFunc(slices.Values(requests), func(a, b reconcilers.Request) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return slices.Compact(sorted)
}

// assertSet compares the values of a field of a case by their texts, in any order.
func assertSet[T any](t *testing.T, field string, expected, actual []T, text func(T) string) {
	t.Helper()
	if diff := gocmp.Diff(textsOf(expected, text), textsOf(actual, text), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s differs %s:\n%s\nTo expect it, set it to:\n%s,", field, legend(), ColorizeDiff(diff), literal.Of(actual))
	}
}

// textsOf returns the texts of values, sorted.
func textsOf[T any](values []T, text func(T) string) []string {
	texts := make([]string, len(values))
	for i, value := range values {
		texts[i] = text(value)
	}
	slices.Sort(texts)
	return texts
}

func textOfRequest(request reconcilers.Request) string {
	return objects.Path(request.Namespace, request.Name)
}

// textOfType names the type that an object of a table stands for.
func textOfType(obj client.Object, scheme *runtime.Scheme) string {
	if objects.IsNil(obj) {
		return "nil"
	}
	watched, err := fakemanager.TypeOf(objects.Copy(obj), scheme)
	if err != nil {
		return err.Error()
	}
	return watched.String()
}
