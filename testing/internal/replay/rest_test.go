package replay_test

import (
	"errors"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-dev/espalier/testing/internal/replay"
)

func TestWhatFollowsARequest(t *testing.T) {
	t.Parallel()
	hourly := reconcile.Result{RequeueAfter: time.Hour}
	//lint:ignore SA1019 Code under test may still set it.
	more, both := reconcile.Result{Requeue: true}, reconcile.Result{Requeue: true, RequeueAfter: time.Hour}
	failed, last := errors.New("failed"), reconcile.TerminalError(errors.New("failed"))
	tests := map[string]struct {
		outcomes []replay.Outcome
		rest     bool
		delay    time.Duration
	}{
		"nothing":                       {[]replay.Outcome{{}}, true, 0},
		"a change":                      {[]replay.Outcome{{Moved: true}}, false, 0},
		"a change and a delay":          {[]replay.Outcome{{Moved: true, Result: hourly}}, false, 0},
		"a change and a terminal error": {[]replay.Outcome{{Moved: true, Err: last}}, false, 0},
		"an error":                      {[]replay.Outcome{{Err: failed}}, false, 0},
		"an error and a delay":          {[]replay.Outcome{{Err: failed, Result: hourly}}, false, 0},
		"a terminal error":              {[]replay.Outcome{{Err: last}}, true, 0},
		"more to do":                    {[]replay.Outcome{{Result: more}}, false, 0},
		"more to do later":              {[]replay.Outcome{{Result: both}}, false, time.Hour},
		"a delay":                       {[]replay.Outcome{{Result: hourly}}, false, time.Hour},
		"two delays":                    {[]replay.Outcome{{Result: hourly}, {Result: hourly}}, false, time.Hour},
		"three delays": {
			[]replay.Outcome{{Result: hourly}, {Result: hourly}, {Result: hourly}}, true, time.Hour,
		},
		"three delays with a change between": {
			[]replay.Outcome{{Result: hourly}, {Moved: true}, {Result: hourly}, {Result: hourly}}, false, time.Hour,
		},
		"another delay": {
			[]replay.Outcome{{Result: reconcile.Result{RequeueAfter: 1}}, {Result: hourly}, {Result: hourly}},
			false, time.Hour,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r replay.Rest
			var rest bool
			var delay time.Duration
			for i, o := range tc.outcomes {
				if rest {
					t.Fatalf("the code is at rest after %d requests, want it to go on", i)
				}
				rest, delay = r.After(o)
			}
			if rest != tc.rest || delay != tc.delay {
				t.Errorf("the code is at rest: %t, after %s, want %t, after %s", rest, delay, tc.rest, tc.delay)
			}
		})
	}
}
