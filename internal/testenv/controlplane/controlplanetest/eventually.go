package controlplanetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
)

// patience is how long [Eventually] waits: control planes of many tests share few processors.
const patience = 3 * time.Minute

// Eventually waits until check returns nil. It fails the test after three minutes, with what was waited for and with
// the last error that is not about the end of the wait.
func Eventually(t testing.TB, what string, check func(ctx context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, patience, true,
		func(ctx context.Context) (bool, error) {
			err := check(ctx)
			if err == nil || ctx.Err() == nil {
				last = err
			}
			return err == nil, nil
		})
	if err != nil {
		t.Fatalf("%s: %v: %v", what, err, last)
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
