package testing

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"

	rtime "github.com/espalier-dev/espalier/time"
)

// newContext returns the context of a case: it has the time, a logger that writes to the test, and the test's deadline.
// It ends with the test.
func newContext(t *testing.T, now time.Time, scheme *runtime.Scheme) context.Context {
	ctx := rtime.StashNow(context.Background(), now)
	ctx = logr.NewContext(ctx, newLogger(t, scheme))
	ctx, cancel := withDeadlineOf(t, ctx)
	t.Cleanup(cancel)
	return ctx
}

// withDeadlineOf returns a context that has the deadline of a test, if there is one.
func withDeadlineOf(t *testing.T, ctx context.Context) (context.Context, context.CancelFunc) {
	if deadline, ok := deadlineOf(t); ok {
		return context.WithDeadline(ctx, deadline)
	}
	return context.WithCancel(ctx)
}

// deadlineOf returns the deadline of a test. A test in a bubble of testing/synctest has none: its time is another one,
// and Deadline panics.
func deadlineOf(t *testing.T) (deadline time.Time, ok bool) {
	defer func() { _ = recover() }()
	return t.Deadline()
}

// inVirtualTime runs a row in a bubble of testing/synctest if it is to run in virtual time, else as it is.
func inVirtualTime(t *testing.T, virtual bool, run func(t *testing.T)) {
	t.Helper()
	if !virtual {
		run(t)
		return
	}
	var bubble *testing.T
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		bubble = t
		run(t)
	})
	if bubble.Skipped() {
		t.SkipNow()
	}
}

// merged is a context with the values of two others: those of first, then those of second.
type merged struct {
	context.Context
	first, second context.Context
}

// Value implements [context.Context].
func (m merged) Value(key any) any {
	if value := m.first.Value(key); value != nil {
		return value
	}
	return m.second.Value(key)
}

// at returns ctx with another time.
func at(ctx context.Context, now time.Time) context.Context {
	return merged{Context: ctx, first: rtime.StashNow(context.Background(), now), second: ctx}
}

// beforeDeadline returns a context that ends a quarter of the time that is left, and at most ten seconds, before ctx
// does: there is time to report what was found.
func beforeDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, deadline.Add(-min(time.Until(deadline)/4, 10*time.Second)))
}

// clock is the time of a row.
type clock struct {
	at time.Time
	// virtual says that the time of the process passes too, at once.
	virtual bool
}

func (c *clock) now() time.Time { return c.at }

// pass lets time pass.
func (c *clock) pass(delay time.Duration) {
	c.at = c.at.Add(max(delay, 0))
	if c.virtual {
		time.Sleep(delay)
	}
}
