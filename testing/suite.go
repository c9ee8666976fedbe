package testing

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"

	"github.com/espalier-dev/espalier/reconcilers"
	rtime "github.com/espalier-dev/espalier/time"
)

// VerifyFunc checks the outcome of a reconcile beyond what the fields of a test case can express.
type VerifyFunc func(t *testing.T, result reconcilers.Result, err error)

// member is a case of a suite.
type member struct {
	name    string
	focused bool
	run     func(t *testing.T)
}

// runSuite runs the members as subtests. If some are focused only those run, and the suite fails, so that a focus is not
// left behind.
func runSuite(t *testing.T, members []member) {
	t.Helper()
	var focused []member
	for _, m := range members {
		if m.focused {
			focused = append(focused, m)
		}
	}
	running := members
	if len(focused) > 0 {
		running = focused
	}
	for _, m := range running {
		t.Run(m.name, m.run)
	}
	if len(focused) > 0 {
		t.Errorf("%d tests out of %d are still focused, so the test suite fails", len(focused), len(members))
	}
}

// newContext returns the context of a case: it has the time, a logger that writes to the test, and the test's deadline.
func newContext(t *testing.T, now time.Time) context.Context {
	ctx := rtime.StashNow(context.Background(), now)
	ctx = logr.NewContext(ctx, testr.New(t))
	if deadline, ok := t.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline)
		t.Cleanup(cancel)
	}
	return ctx
}

// outcome is what a reconcile returned, and what the case expects.
type outcome struct {
	result         reconcilers.Result
	err            error
	expectedResult reconcilers.Result
	shouldErr      bool
	expectedErr    error
	verify         VerifyFunc
	differ         Differ
}

func (o outcome) assert(t *testing.T) {
	t.Helper()
	switch {
	case o.expectedErr != nil:
		if !isExpected(o.expectedErr, o.err) {
			t.Errorf("Reconcile() error = %v, ExpectedErr %v", o.err, o.expectedErr)
		}
	case (o.err != nil) != o.shouldErr:
		t.Errorf("Reconcile() error = %v, ShouldErr %v", o.err, o.shouldErr)
	}
	if o.err == nil || o.expectedErr != nil {
		// Next to an error the result matters to the nodes above only, so tables that say no more than that there is one
		// need not know it.
		if diff := o.differ.Result(normalized(o.expectedResult), normalized(o.result)); diff != "" {
			t.Errorf("ExpectedResult differs %s:\n%s", legend(), ColorizeDiff(diff))
		}
	}
	if o.verify != nil {
		o.verify(t, o.result, o.err)
	}
}

// normalized drops what controller-runtime does not look at.
func normalized(result reconcilers.Result) reconcilers.Result {
	if result.RequeueAfter != 0 {
		//lint:ignore SA1019 Trees for older versions still set it.
		result.Requeue = false
	}
	return result
}
