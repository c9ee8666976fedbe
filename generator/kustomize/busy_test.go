package kustomize

import (
	"context"
	"errors"
	"testing"
	"time"
)

// A build does not wait for others without end. No other test runs meanwhile.
func TestWaitingForOthersEnds(t *testing.T) {
	before := maxWait
	maxWait = time.Millisecond
	building <- struct{}{}
	defer func() { <-building; maxWait = before }()
	never := func() error { return errors.New("it runs") }
	if err := exclusively(t.Context(), never); !errors.Is(err, errBusy) {
		t.Errorf("the error is %v, want %v", err, errBusy)
	}
	maxWait = time.Minute
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if err := exclusively(done, never); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v, want that of the context", err)
	}
}
