package controlplanetest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
)

// A test that waits in vain is told what was last seen, and not that the time is up.
func TestEventually(t *testing.T) {
	for name, test := range map[string]struct {
		// check is called with the number of the call, from 1 on.
		check func(ctx context.Context, n int) error
		takes time.Duration
		want  string
	}{
		"it holds at once": {check: func(context.Context, int) error { return nil }},
		"it holds in the end": {
			check: func(_ context.Context, n int) error {
				if n < 1000 {
					return errors.New("not yet")
				}
				return nil
			},
			takes: 999 * 20 * time.Millisecond,
		},
		"it never holds": {
			check: func(_ context.Context, n int) error { return fmt.Errorf("%d pods are there", min(n, 99)) },
			takes: 2 * time.Minute,
			want:  "no pods: in 2m0s: 99 pods are there",
		},
		"the last check does not return": {
			check: func(ctx context.Context, n int) error {
				if n < 10 {
					return fmt.Errorf("%d pods are there", n)
				}
				<-ctx.Done()
				return ctx.Err()
			},
			takes: 2 * time.Minute,
			want:  "no pods: in 2m0s: 9 pods are there",
		},
		"the first check does not return": {
			check: func(ctx context.Context, _ int) error {
				<-ctx.Done()
				return fmt.Errorf("list pods: %w", ctx.Err())
			},
			takes: 2 * time.Minute,
			want:  "no pods: in 2m0s: list pods: context deadline exceeded",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, calls := time.Now(), 0
				failure := waits(t, func(tb testing.TB) {
					controlplanetest.Eventually(tb, "no pods", func(ctx context.Context) error {
						calls++
						return test.check(ctx, calls)
					})
				})
				if took := time.Since(began); failure != test.want || took != test.takes {
					t.Errorf("after %s the failure is %q, want %q after %s", took, failure, test.want, test.takes)
				}
			})
		})
	}
}

// waits returns what a test that does f fails with.
func waits(t *testing.T, f func(testing.TB)) string {
	t.Helper()
	failing, done := &failure{TB: t}, make(chan struct{})
	go func() {
		defer close(done)
		f(failing)
	}()
	<-done
	return failing.text
}

// failure is a test whose failure is kept.
type failure struct {
	testing.TB
	text string
}

func (f *failure) Fatalf(format string, args ...any) {
	f.text = fmt.Sprintf(format, args...)
	runtime.Goexit()
}
