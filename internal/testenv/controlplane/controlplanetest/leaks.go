package controlplanetest

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

// leakTime is how long a goroutine may take to end. On a busy machine, that may be longer than goleak itself waits,
// which is less than half a second.
var leakTime = 2 * time.Minute

// NoLeaks fails the test if a goroutine does not end within two minutes, but for those that the options ignore.
func NoLeaks(t testing.TB, options ...goleak.Option) {
	t.Helper()
	if err := findLeaks(options...); err != nil {
		t.Error(err)
	}
}

func findLeaks(options ...goleak.Option) error {
	end := time.Now().Add(leakTime)
	for {
		if err := goleak.Find(options...); err == nil || time.Now().After(end) {
			return err
		}
	}
}
