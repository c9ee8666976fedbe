package testing

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/testing/internal/check"
	"github.com/espalier-dev/espalier/testing/internal/fakemanager"
	"github.com/espalier-dev/espalier/testing/internal/objects"
	"github.com/espalier-dev/espalier/testing/internal/words"
)

// SetupTestCase is one set-up with a manager that has no cluster. It expects the types that are watched, the fields
// that are indexed, and the requests that events cause. The manager's controllers are started with a queue that only
// records requests: nothing is reconciled. Set-up must not write: a write fails the case.
type SetupTestCase struct {
	// Name of the subtest. In a map of cases the key takes its place.
	Name string
	// Focus runs only this case and others with a focus. The suite then fails in any case.
	Focus bool
	// Skip skips this case.
	Skip bool
	// Metadata is for the factory and for Prepare. The harness ignores it.
	Metadata map[string]interface{}

	// The given state: the fields of ExpectConfig of these names. The clients of the manager have the objects, which
	// cause no events. Kinds of the scheme that are not among the GivenAPIResources are namespaced, except for the
	// built-in kinds that are known to be cluster-scoped.

	WithReactors           []ReactionFunc
	WithClientBuilder      func(*fake.ClientBuilder) *fake.ClientBuilder
	StatusSubResourceTypes []client.Object
	GivenObjects           []client.Object
	APIGivenObjects        []client.Object
	GivenAPIResources      []*metav1.APIResourceList
	GivenTracks            []TrackRequest

	// ExpectWatches has an object of each type that is watched, as often as it is watched, in any order. Unstructured
	// objects, and metadata alone, are separate types, as in a cache.
	ExpectWatches []client.Object
	// ExpectIndexes are the fields that are indexed, in any order.
	ExpectIndexes []IndexRef
	// ExpectRequests are the requests that raw sources make at the start. The case waits for as many requests.
	ExpectRequests []reconcilers.Request
	// Events happen afterwards, in their order.
	Events []SetupEvent

	// ShouldErr says that set-up must return an error. Then nothing is started.
	ShouldErr bool
	// ExpectedErr is the error that set-up must return, as errors.Is finds it or by its text. It implies ShouldErr. Nil
	// expects no particular error.
	ExpectedErr error
	// Verify checks the error further; it is called without one too.
	Verify VerifySetupFunc

	// Prepare runs first. It may change the case. The context that it returns, unless nil, replaces the context of the
	// case.
	Prepare func(t *testing.T, ctx context.Context, tc *SetupTestCase) (context.Context, error)
	// CleanUp runs last, with the context of Prepare, also if the case failed.
	CleanUp func(t *testing.T, ctx context.Context, tc *SetupTestCase) error

	mark mark
}

// VerifySetupFunc checks the outcome of a set-up where the fields of a test case are not enough.
type VerifySetupFunc func(t *testing.T, err error)

// IndexRef is an expected index of a field.
type IndexRef struct {
	// Object is of the type that is indexed.
	Object client.Object
	// Field is the name of the index.
	Field string
}

// SetupEvent is an event while the controllers run, and the requests that it must cause. If several of its fields are
// set, they happen in the order of the fields.
type SetupEvent struct {
	// Name stands in failure messages. Default: a description, such as "created ConfigMap default/settings".
	Name string

	// Created is an object that was created, or that exists when its watch starts.
	Created client.Object
	// Updated is an object that changed, as it is now.
	Updated client.Object
	// Before is the object Updated as it was. Default: as it is, which is how a periodic resync looks.
	Before client.Object
	// Deleted is an object that was deleted, as it was last seen.
	Deleted client.Object
	// Send triggers a raw source, for example by sending a generic event to its channel. The case waits for as many
	// requests as are expected. More requests that come later count for the next event.
	Send func(ctx context.Context)

	// ExpectRequests are the requests, in any order. As in a queue, the same request twice counts once. Delays are
	// ignored.
	ExpectRequests []reconcilers.Request
}

// Setup can be set up with a manager, as root reconcilers can.
type Setup interface {
	SetupWithManager(ctx context.Context, mgr reconcilers.Manager) error
}

// SetupFunc is a function that is a Setup, for controllers that are built by hand.
type SetupFunc func(ctx context.Context, mgr reconcilers.Manager) error

// SetupWithManager calls f.
func (f SetupFunc) SetupWithManager(ctx context.Context, mgr reconcilers.Manager) error {
	return f(ctx, mgr)
}

// SubReconcilerSetup returns the set-up of a root that has the sub-reconciler and nothing else. The type of the
// resource is watched too.
func SubReconcilerSetup[Type client.Object](c reconcilers.Config, r reconcilers.SubReconciler[Type]) Setup {
	return &reconcilers.ResourceReconciler[Type]{Config: c, Reconciler: r}
}

// SetupFactory returns the Setup to test. It is called once per case, after Prepare. The config is the config of
// reconcilers.NewConfig for the manager, with a tracker that has the GivenTracks.
type SetupFactory func(t *testing.T, tc *SetupTestCase, c reconcilers.Config) Setup

// SetupTests are cases by name. They run in no particular order.
type SetupTests map[string]SetupTestCase

// SetupTestSuite are cases that run in their order.
type SetupTestSuite []SetupTestCase

// Run runs the cases as subtests.
func (st SetupTests) Run(t *testing.T, scheme *runtime.Scheme, factory SetupFactory) {
	t.Helper()
	runTests(t, st, func(t *testing.T, tc *SetupTestCase) {
		t.Helper()
		tc.Run(t, scheme, factory)
	})
}

// Run runs the cases as subtests.
func (ts SetupTestSuite) Run(t *testing.T, scheme *runtime.Scheme, factory SetupFactory) {
	t.Helper()
	runSuite(t, ts, func(t *testing.T, tc *SetupTestCase) {
		t.Helper()
		tc.Run(t, scheme, factory)
	})
}

// Run runs the case.
func (tc *SetupTestCase) Run(t *testing.T, scheme *runtime.Scheme, factory SetupFactory) {
	t.Helper()
	defer words.FailOnPanic(t)
	run := begin(t, tc, scheme)
	defer run.end(t)
	run.check(t)
	p := run.expect.made()
	mgr, err := fakemanager.New(p.Config, p.Fake)
	if err != nil {
		t.Fatalf("the manager cannot be made: %s", err)
	}
	setup := factory(t, tc, mgr.NewConfig())
	if gotype.IsNil(setup) {
		t.Fatal("Setup factory returned nothing to set up")
	}
	err = setup.SetupWithManager(run.ctx, mgr)
	assertError(t, "SetupWithManager()", err, tc.ExpectedErr, tc.ShouldErr)
	if tc.Verify != nil {
		tc.Verify(t, err)
	}
	if err == nil {
		tc.run(t, run.ctx, run.expect, mgr)
	}
	run.assert(t)
}

func (tc *SetupTestCase) row() row {
	return row{
		mark: &tc.mark, name: &tc.Name, metadata: &tc.Metadata, now: new(time.Time), focus: tc.Focus, skip: tc.Skip,
		of: tc, builder: tc.WithClientBuilder,
		prepare: preparing(tc, tc.Prepare), cleanUp: cleaning(tc, tc.CleanUp),
	}
}

// setupTimeout limits the wait for controllers to start, and for requests that are expected and do not come.
var setupTimeout = 30 * time.Second

// run starts the controllers, sends the events, and asserts the requests, watches and indexes.
func (tc *SetupTestCase) run(t *testing.T, ctx context.Context, c *ExpectConfig, mgr *fakemanager.Manager) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	stop, err := mgr.StartControllers(ctx, setupTimeout)
	if err != nil {
		t.Errorf("the controllers cannot be started: %s", err)
	} else {
		mgr.Requests.Await(ctx, len(distinct(tc.ExpectRequests)), setupTimeout)
		assertRequests(t, c, "", tc.ExpectRequests, mgr.Requests.Take())
		for i, event := range tc.Events {
			event.run(t, ctx, c, i, mgr)
		}
	}
	cancel()
	if err := stop(); err != nil {
		t.Errorf("the controllers cannot be stopped: %s", err)
	}
	if late := mgr.Requests.Take(); len(late) > 0 {
		t.Errorf("Unexpected requests observed at the end: %q", check.Texts(late, textOfRequest))
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
	check.Set(c.page(), t, "", "ExpectWatches", tc.ExpectWatches, watched, textOfType)
	var indexed []IndexRef
	for _, index := range mgr.Cache.Indexed() {
		indexed = append(indexed, IndexRef{Object: index.Of.Object(scheme), Field: index.Field})
	}
	check.Set(c.page(), t, "", "ExpectIndexes", tc.ExpectIndexes, indexed, func(ref IndexRef) string {
		return textOfType(ref.Object) + " by " + ref.Field
	})
}

// run sends the event and asserts the requests that it causes.
func (e SetupEvent) run(t *testing.T, ctx context.Context, c *ExpectConfig, i int, mgr *fakemanager.Manager) {
	t.Helper()
	happens := e.describe(mgr.GetScheme())
	at := fmt.Sprintf("Events[%d] (%s)", i, cmp.Or(e.Name, happens, "nothing"))
	if happens == "" {
		t.Errorf("%s has nothing that happens", at)
	}
	before := e.Before
	if gotype.IsNil(before) || gotype.IsNil(e.Updated) {
		before = e.Updated
	}
	for _, change := range []struct{ before, after client.Object }{
		{nil, e.Created}, {before, e.Updated}, {e.Deleted, nil},
	} {
		if err := mgr.Cache.Send(change.before, change.after); err != nil {
			t.Errorf("%s cannot happen: %s", at, err)
		}
	}
	if e.Send != nil {
		e.Send(ctx)
		mgr.Requests.Await(ctx, len(distinct(e.ExpectRequests)), setupTimeout)
	}
	assertRequests(t, c, at+": ", e.ExpectRequests, mgr.Requests.Take())
}

// describe returns a description of the event, empty if it has nothing that happens.
func (e SetupEvent) describe(scheme *runtime.Scheme) string {
	var happens []string
	for _, change := range []struct {
		verb string
		obj  client.Object
	}{{"created ", e.Created}, {"updated ", e.Updated}, {"deleted ", e.Deleted}} {
		if gotype.IsNil(change.obj) {
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

func assertRequests(t *testing.T, c *ExpectConfig, at string, expected, actual []reconcilers.Request) {
	t.Helper()
	check.Set(c.page(), t, at, "ExpectRequests", distinct(expected), distinct(actual), textOfRequest)
}

// distinct returns the requests in order, each once.
func distinct(requests []reconcilers.Request) []reconcilers.Request {
	sorted := slices.SortedFunc(slices.Values(requests), func(a, b reconcilers.Request) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return slices.Compact(sorted)
}

func textOfRequest(request reconcilers.Request) string {
	return objects.Path(request.Namespace, request.Name)
}

// textOfType names the type that an object of a table stands for.
func textOfType(obj client.Object, scheme *runtime.Scheme) string {
	if gotype.IsNil(obj) {
		return "nil"
	}
	watched, err := fakemanager.TypeOf(objects.Copy(obj), scheme)
	if err != nil {
		return err.Error()
	}
	return watched.String()
}
