package testing

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/testing/internal/recording"
	"github.com/espalier-dev/espalier/testing/internal/replay"
	"github.com/espalier-dev/espalier/testing/internal/run"
	"github.com/espalier-dev/espalier/testing/internal/words"
)

// replayed is a row that has passed and is replayed with faults.
type replayed struct {
	// row is the row as Prepare left it.
	row row
	// inTable is a pointer to the case as it is in the table, before Prepare.
	inTable any
	// not says why the row is not replayed; empty if it is.
	not string
	// configs are as Prepare left them.
	configs
	request reconcilers.Request
	// ofNode says that the row is one of a node, which always has its resource.
	ofNode bool
	// own are the writes of the row's own run; nil if they are not compared. First are those of the first run without a
	// fault, as far as the row goes; nil until then.
	own, first writes
	// begin begins a run.
	begin func(t *testing.T, ctx context.Context) (*begun, error)

	// t is that of the run that goes on: a bubble has one of its own.
	t *testing.T
	// current is the run that goes on. Runs are made one after the other.
	current *begun
	// outside are the calls of all runs beside the clusters.
	outside outsideCalls
}

// begun is one run of a row whose Prepare was called.
type begun struct {
	ctx context.Context
	// externals are those that Prepare left.
	externals []External
	// at is the time of the last request.
	at time.Time
	// journals are those of the last instance, by config.
	journals map[string]*recording.Journal
	// start calls the factory. It is called again after each death.
	start func(c reconcilers.Config) (reconcile.Reconciler, error)
	// end calls the CleanUp.
	end func() error
}

// runAndReplay runs a case, and its replays if it is on the API server of Kubernetes and passes. They start from the
// case as it was given, before Prepare.
func runAndReplay[Case any, P caseOf[Case]](
	t *testing.T, tc P, once func(t *testing.T) writes, replays func(given P) *replayed,
) {
	t.Helper()
	given := new(Case)
	*given = *tc
	var own writes
	run.InVirtualTime(t, tc.row().virtual, func(t *testing.T) {
		t.Helper()
		own = once(t)
	})
	if row := tc.row(); row.onServer && !t.Failed() {
		P(given).row().origin = row.origin
		r := replays(given)
		r.own = own
		r.run(t)
	}
}

// replaysOf returns the replays of a case. Given is the case as it is in the table, and prepared as Prepare left it.
// Give completes the config of prepared. Start calls the factory for a case.
func replaysOf[Case any, P caseOf[Case]](
	given, prepared P, scheme *runtime.Scheme,
	contexts func(context.Context) context.Context, give func(*ExpectConfig),
	start func(t *testing.T, tc *Case, c reconcilers.Config) (reconcile.Reconciler, error),
) *replayed {
	r := &replayed{row: prepared.row(), inTable: given}
	now := *r.row.now
	r.configs = r.row.configs(scheme)
	for _, c := range r.all() {
		c.how.APIServer, c.how.Reconciled, c.how.Now = true, -1, func() time.Time { return now }
	}
	give(r.expect)
	r.not = r.cannot()
	r.begin = func(t *testing.T, ctx context.Context) (*begun, error) {
		t.Helper()
		tc := new(Case)
		*tc = *given
		copied := P(tc).row()
		*copied.metadata, *copied.now = maps.Clone(*copied.metadata), now
		copied.complete(P(tc))
		copied.reset()
		ctx, err := copied.prepared(t, contexts(ctx))
		if err != nil {
			return nil, err
		}
		prepared := P(tc).row()
		if problem := prepared.problem(); problem != "" {
			return nil, errors.New(problem)
		}
		a := &begun{ctx: ctx, at: now, externals: prepared.externals, end: func() error { return nil }}
		a.start = func(c reconcilers.Config) (reconcile.Reconciler, error) { return start(t, tc, c) }
		if prepared.cleanUp != nil {
			a.end = func() error { return prepared.cleanUp(t, ctx) }
		}
		return a, nil
	}
	return r
}

// cannot says why a row cannot be replayed, empty if it can.
func (r *replayed) cannot() string {
	has := func(is func(*ExpectConfig) bool) bool { return slices.ContainsFunc(r.all(), is) }
	switch {
	case r.row.replays.not != "":
		return r.row.replays.not
	case has(func(c *ExpectConfig) bool { return len(c.WithReactors) > 0 }):
		return "it has reactors"
	case has(func(c *ExpectConfig) bool { return c.Server != nil }):
		return "it has a Server"
	case has(func(c *ExpectConfig) bool { return c.WithClientBuilder != nil }):
		return "it has a WithClientBuilder"
	default:
		return ""
	}
}

// run replays the row, and fails the test if a replay ends in another way than the row.
func (r *replayed) run(t *testing.T) {
	t.Helper()
	defer words.FailOnPanic(t)
	r.t = t
	switch {
	case faultFlag == faultsOff && r.row.fault.isZero():
		return
	case r.not != "" && !r.row.fault.isZero():
		t.Fatalf("the Fault cannot be replayed: %s", r.not)
	case r.not != "":
		t.Logf("not replayed: %s", r.not)
		return
	}
	ctx, cancel := run.WithDeadlineOf(t, logr.NewContext(context.Background(), logr.Discard()))
	defer cancel()
	program, err := r.program(t, *r.expect)
	if err != nil {
		t.Fatalf("the row cannot be replayed: %s", err)
	}
	options := r.row.replays.options(faultFlag, testing.Short())
	if !r.row.fault.isZero() {
		r.runPinned(t, ctx, program, options)
		return
	}
	r.explore(t, ctx, program, options)
}

// explore replays the row with each fault.
func (r *replayed) explore(t *testing.T, ctx context.Context, program replay.Program, options replay.Options) {
	t.Helper()
	began := time.Now()
	exploring, cancel := run.BeforeDeadline(ctx)
	defer cancel()
	report, err := replay.Explore(exploring, program, options)
	switch {
	case err != nil:
		t.Errorf("the replays ended: %s", err)
	case report.Unrest != nil:
		r.failUnrest(t, *report.Unrest)
	case report.NotReplayed != "":
		t.Logf("not replayed: %s%s", report.NotReplayed, advice(report.Varying))
	default:
		t.Logf("replayed with %s in %.2f s%s", words.Count(report.Replays, "fault"), time.Since(began).Seconds(),
			leftOut(report.Left))
	}
	if err == nil && report.NotReplayed == "" {
		r.compareOwn(t)
	}
	if note := r.outside.unobserved(r.row.externals); note != "" {
		t.Logf("Note: %s", note)
	}
	r.fail(t, ctx, report.Findings, options)
}

// leftOut says that faults were left out; empty if none were.
func leftOut(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; %d more would have taken longer than %s: -rtesting.faults=pairs tries them", n, budget)
}

// advice says how to replay a row that ends differently each time; empty if nothing varies.
func advice(varying []string) string {
	if len(varying) == 0 {
		return ""
	}
	return fmt.Sprintf("\nIf that may be another each time, set:\n  Replays: rtesting.Replays{Ignore: %#v},", varying)
}

// runPinned replays the row with its Fault.
func (r *replayed) runPinned(t *testing.T, ctx context.Context, program replay.Program, options replay.Options) {
	t.Helper()
	finding, err := replay.Run(ctx, program, r.row.fault.faults, options)
	switch {
	case err != nil:
		t.Errorf("the row cannot be replayed with %s: %s", r.row.fault, err)
	case finding == nil:
		t.Logf("replayed with %s: it ends as without", r.row.fault)
	default:
		r.fail(t, ctx, []replay.Finding{*finding}, options)
	}
}
