package controlplanetest

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
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
