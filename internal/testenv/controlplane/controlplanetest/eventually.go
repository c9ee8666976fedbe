package controlplanetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
)

// patience is the limit of [Eventually]. It is one for all tests, and generous: control planes of many tests share few
// processors, and a test that passes does not wait for it.
const patience = 2 * time.Minute

// Eventually waits until check returns nil. After two minutes it fails the test, with what was waited for and with what
// check has last returned before the context that it is given has ended.
func Eventually(t testing.TB, what string, check func(ctx context.Context) error) {
	t.Helper()
	began := time.Now()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, patience, true,
		func(ctx context.Context) (bool, error) {
			err := check(ctx)
			// An error after the end is likely to be about the end. It is all that there is of a first check.
			if last == nil || ctx.Err() == nil {
				last = err
			}
			return err == nil, nil
		})
	if err != nil {
		t.Fatalf("%s: in %s: %v", what, time.Since(began).Round(time.Millisecond), last)
	}
}

// quietTime is how long no request is made before [Rest] returns: clients send events some time after what they are
// about.
const quietTime = 1500 * time.Millisecond

// Rest waits until no requests have been made for a while, and all are answered.
func Rest(t testing.TB, requests *controlplane.Requests) {
	t.Helper()
	Eventually(t, "requests do not end", func(context.Context) error {
		before := requests.Total()
		time.Sleep(quietTime)
		made, unanswered := requests.Total()-before, requests.Unanswered()
		if made > 0 || unanswered > 0 {
			return fmt.Errorf("there are %d in %s, and %d have no answer; all so far are %s",
				made, quietTime, unanswered, requests)
		}
		return nil
	})
}

// Quiet is Rest, after which the count of requests is zero.
func Quiet(t testing.TB, requests *controlplane.Requests) {
	t.Helper()
	Rest(t, requests)
	requests.Reset()
}
