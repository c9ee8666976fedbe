package gotemplate

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/espalier-dev/espalier/generator"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A large execution waits for another one, and that is no time that it takes itself. A small one does not wait.
func TestLargeExecutionsWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// The time stands still while a bubble waits for a channel that was made outside of it.
		defer func(outside chan struct{}) { turn = outside }(turn)
		turn = make(chan struct{}, 1)
		shop := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "north", Name: "shop"}}
		first := NewGuard(generator.NewContext(t.Context()).WithComponent(shop), Limits{})
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
		err := NewGuard(t.Context(), Limits{Time: time.Millisecond}).charge(smallSize + 1)
		var retriable *generator.RetriableError
		const busy = "a template waits longer than 1m0s for that of ConfigMap north/shop, which is large, too; " +
			"this is tried again"
		if !errors.As(err, &retriable) || errors.Is(err, ErrLimit) || err.Error() != busy {
			t.Errorf("the error is %v, want one that is tried again, is no limit, and reads %q", err, busy)
		}
		second, ended := NewGuard(t.Context(), Limits{Time: time.Second}), make(chan error)
		go func() { ended <- second.charge(smallSize + 1) }()
		time.Sleep(30 * time.Second)
		first.End()
		if err := errors.Join(<-ended, second.clock()); err != nil {
			t.Errorf("the second execution has the error %v, want none once the first has ended", err)
		}
		second.End()
	})
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
