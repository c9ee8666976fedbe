package testing

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/panics"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/testing/internal/run"
	"github.com/espalier-dev/espalier/testing/internal/words"
)

// caseRun is one run of a case: its context and its configs.
type caseRun struct {
	configs
	ctx     context.Context
	cleanUp func() error
	// resource is the resource of a sub-reconciler's case, nil in other cases.
	resource client.Object
	// request is the request to a root, nil in other cases.
	request *reconcilers.Request
	// report has what fails, until the end of the case.
	report *words.Report
	// panicked has the first panic that the code under test has recovered from, with its stack.
	panicked atomic.Pointer[string]
	// lacksError says that an expected error was not returned.
	lacksError bool
	// clock is the time of a row on the API server of Kubernetes.
	clock *run.Clock
}

// begin prepares a case. Call end when it is over.
func begin(
	t *testing.T, tc testCase, scheme *runtime.Scheme, contexts ...func(context.Context) context.Context,
) *caseRun {
	t.Helper()
	given := tc.row()
	if given.skip {
		t.SkipNow()
	}
	origin := given.complete(tc)
	given.mustBeValid(t)
	given.reset()
	r := &caseRun{report: &words.Report{Origin: origin}}
	r.ctx = panics.WithObserver(run.NewContext(t, *given.now, scheme), r.notePanic)
	for _, with := range contexts {
		r.ctx = with(r.ctx)
	}
	var err error
	if r.ctx, err = given.prepared(t, r.ctx); err != nil {
		t.Fatal(err)
	}
	row := tc.row()
	row.mustBeValid(t)
	r.clock = run.NewClock(*row.now, row.virtual)
	if row.cleanUp != nil {
		r.cleanUp = func() error { return row.cleanUp(t, r.ctx) }
	}
	r.configs = row.configs(scheme)
	for _, c := range r.all() {
		c.report, c.ignore = r.report, row.replays.fields().ignored()
		c.how.APIServer = row.onServer && c.WithClientBuilder == nil && c.Server == nil
		c.how.Reconciled, c.how.Now = -1, r.clock.Now
		c.useFake()
	}
	return r
}

func (r *caseRun) notePanic(value any) {
	r.panicked.CompareAndSwap(nil, new(words.Panic(value)))
}

// check fails the test at once if the config of a case cannot be made, or if its API server cannot have what is
// given: all other failures would be consequences.
func (r *caseRun) check(t *testing.T) {
	t.Helper()
	if r.expect.Scheme == nil {
		t.Fatal("the table needs a scheme")
	}
	for _, c := range r.all() {
		if err := c.check(r.resource); err != nil {
			t.Fatalf("%s%s", err, c.suffix())
		}
		if !c.how.APIServer {
			continue
		}
		if problems := c.made().Problems; len(problems) > 0 {
			t.Fatalf("%s%s", strings.Join(problems, "\n"), c.suffix())
		}
	}
}

// stashAdditional adds the additional configs to ctx.
func (r *caseRun) stashAdditional(ctx context.Context) context.Context {
	configs := make(map[string]reconcilers.Config, len(r.additional))
	for name, config := range r.additional {
		configs[name] = config.Config()
	}
	return reconcilers.StashAdditionalConfigs(ctx, configs)
}

// end calls the CleanUp of the case and releases its configs.
func (r *caseRun) end(t *testing.T) {
	t.Helper()
	r.report.Fail(t)
	for _, c := range r.all() {
		if s := c.made().Store; s != nil {
			for _, note := range s.WithoutEffect() {
				t.Logf("Note: %s", note)
			}
		}
	}
	defer func() {
		t.Helper()
		for _, c := range r.all() {
			if err := c.Release(context.Background()); err != nil {
				t.Errorf("error during clean up: %s", err)
			}
		}
	}()
	if r.cleanUp == nil {
		return
	}
	if err := r.cleanUp(); err != nil {
		t.Errorf("error during clean up: %s", err)
	}
}
