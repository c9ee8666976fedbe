package run

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"

	rtime "github.com/espalier-dev/espalier/time"
)

// NewContext returns the context of a case: it has the time, a logger that writes to the test, and the test's deadline.
// Branches run one after the other, so that their requests have an order. It ends with the test.
func NewContext(t *testing.T, now time.Time, scheme *runtime.Scheme) context.Context {
	ctx := rtime.StashNow(context.Background(), now)
	ctx = logr.NewContext(ctx, newLogger(t, scheme))
	ctx, cancel := WithDeadlineOf(t, ctx)
	t.Cleanup(cancel)
	return ctx
}

// WithDeadlineOf returns a context that has the deadline of a test, if there is one.
func WithDeadlineOf(t *testing.T, ctx context.Context) (context.Context, context.CancelFunc) {
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

// InVirtualTime runs a row in a bubble of testing/synctest if it is to run in virtual time, else as it is.
func InVirtualTime(t *testing.T, virtual bool, run func(t *testing.T)) {
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

// Merged returns ctx with the values of others: its own, then theirs.
func Merged(ctx, others context.Context) context.Context {
	return merged{Context: ctx, first: ctx, second: others}
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

// At returns ctx with another time.
func At(ctx context.Context, now time.Time) context.Context {
	return merged{Context: ctx, first: rtime.StashNow(context.Background(), now), second: ctx}
}

// BeforeDeadline returns a context that ends a quarter of the time that is left, and at most ten seconds, before ctx
// does: there is time to report what was found.
func BeforeDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, deadline.Add(-min(time.Until(deadline)/4, 10*time.Second)))
}

// Clock is the time of a row.
type Clock struct {
	at      time.Time
	virtual bool
}

// NewClock returns a clock that begins at a time. If it is virtual, the time of the process passes too, at once.
func NewClock(at time.Time, virtual bool) *Clock { return &Clock{at, virtual} }

// Now returns the time of the row.
func (c *Clock) Now() time.Time { return c.at }

// Pass lets time pass.
func (c *Clock) Pass(delay time.Duration) {
	c.at = c.at.Add(max(delay, 0))
	if c.virtual {
		time.Sleep(delay)
	}
}
