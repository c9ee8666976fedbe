package transport_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/testing/internal/plan"
	"github.com/espalier-dev/espalier/testing/internal/transport"
)

var slow = transport.Options{Plan: plan.Plan{Seed: 3, Latency: time.Minute}}

func TestLatency(t *testing.T) {
	run(t, slow, func(f *fixture) {
		c := f.Client("operator")
		for n := range 3 {
			d := slow.Plan.Decide(fault.Call{Actor: "operator", Verb: fault.Get, Path: one, N: n + 1})
			began := time.Now()
			f.get(c)
			if took := time.Since(began); took != d.There+d.Back {
				f.Errorf("request %d took %v, not %v", n+1, took, d.There+d.Back)
			}
			entries := f.Log().Entries
			if at := entries[len(entries)-1].At; at != time.Since(f.began)-d.Back {
				f.Errorf("request %d arrived at %v", n+1, at)
			}
		}
		began := time.Now()
		for _, path := range []string{"/api", "/apis", "/api/v1", "/apis/apps", "/apis/apps/v1", "/openapi/v3", "/version"} {
			f.ask(c, http.MethodGet, path, "")
		}
		if took := time.Since(began); took != 0 {
			f.Errorf("discovery took %v", took)
		}
	})
}

// TestLatencyIsNotAQueue makes requests at the same time, which take as long as the longest.
func TestLatencyIsNotAQueue(t *testing.T) {
	run(t, slow, func(f *fixture) {
		c := f.Client("operator")
		var longest time.Duration
		var group sync.WaitGroup
		began := time.Now()
		for i := range 50 {
			path := fmt.Sprintf("%s/%d", configMaps, i)
			d := slow.Plan.Decide(fault.Call{Actor: "operator", Verb: fault.Get, Path: path, N: 1})
			longest = max(longest, d.There+d.Back)
			group.Go(func() { f.ask(c, http.MethodGet, path, "") })
		}
		group.Wait()
		if took := time.Since(began); took != longest {
			f.Errorf("they took %v, not %v", took, longest)
		}
	})
}

// TestCancelledRequest gives up a request before it arrives, and another after it did.
func TestCancelledRequest(t *testing.T) {
	run(t, slow, func(f *fixture) {
		c := f.Client("operator")
		for n, effect := range []string{"", "PUT " + one} {
			d := slow.Plan.Decide(fault.Call{Actor: "operator", Verb: fault.Update, Path: one, N: n + 1})
			patience := d.There - 1
			if effect != "" {
				patience = d.There + d.Back - 1
			}
			ctx, cancel := context.WithTimeout(f.Context(), patience)
			_, err := c.RoundTrip(f.newRequest(ctx, http.MethodPut, one, "{}"))
			if had := f.had(); !errors.Is(err, context.DeadlineExceeded) || had != effect {
				f.Errorf("the error is %v, the server got %q", err, had)
			}
			cancel()
		}
	})
}
