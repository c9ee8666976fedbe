package gotemplate

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// A large execution waits for another one. A small one does not.
func TestLargeExecutionsWaitForEachOther(t *testing.T) {
	first := NewGuard(t.Context(), Limits{})
	if err := first.charge(smallSize + 1); err != nil {
		t.Fatalf("the first execution has the error %v, want none", err)
	}
	if err := NewGuard(t.Context(), Limits{}).charge(smallSize - callCost); err != nil {
		t.Errorf("a small execution has the error %v, want none", err)
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if err := NewGuard(done, Limits{}).reserve(smallSize, 2); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v, want that of the context", err)
	}
	short := NewGuard(t.Context(), Limits{Time: time.Millisecond})
	err := short.charge(smallSize + 1)
	if !errors.Is(err, ErrLimit) || !strings.Contains(err.Error(), "waits longer than 1ms") {
		t.Errorf("the error is %v, want the limit of time", err)
	}
	second, ended := NewGuard(t.Context(), Limits{}), make(chan error)
	go func() { ended <- second.charge(smallSize + 1) }()
	first.End()
	if err := <-ended; err != nil {
		t.Errorf("the second execution has the error %v, want none once the first has ended", err)
	}
	second.End()
}

func TestObjectsAreBounded(t *testing.T) {
	t.Parallel()
	for count, limits := range map[int]Limits{10_001: {}, 3: {Objects: 2}} {
		if err := limits.CheckObjects(count); !errors.Is(err, ErrLimit) {
			t.Errorf("the error for %d objects is %v, want one of a limit", count, err)
		}
		if err := limits.CheckObjects(count - 1); err != nil {
			t.Errorf("the error for %d objects is %v, want none", count-1, err)
		}
	}
}
