package transport_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/testing/internal/plan"
	"github.com/espalier-dev/espalier/testing/internal/transport"
)

// arrivals reads a watch to its end, and returns each event with the seconds that have passed, to a hundredth.
func arrivals(body io.ReadCloser) (string, error) {
	defer func() { _ = body.Close() }()
	began := time.Now()
	var all []string
	lines := bufio.NewReader(body)
	for {
		line, err := lines.ReadString('\n')
		if err == io.EOF {
			return strings.Join(all, " "), nil
		}
		if err != nil {
			return strings.Join(all, " "), err
		}
		all = append(all, fmt.Sprintf("%s@%v", strings.TrimSpace(line), time.Since(began).Round(10*time.Millisecond).Seconds()))
	}
}

func TestWatchIsCut(t *testing.T) {
	struck := fault.Fault{Kind: fault.CutsWatch, Actor: "operator", Delay: 2500 * time.Millisecond}
	run(t, with(struck), func(f *fixture) {
		c := f.Client("operator")
		got, err := arrivals(f.open(c))
		f.isReset(err)
		if got != "0@0 1@1 2@2" {
			f.Errorf("the events are %s", got)
		}
		got, err = arrivals(f.open(c))
		if want := "18@18 19@19"; err != nil || !strings.HasSuffix(got, want) {
			f.Errorf("after it, the events are %s and %v", got, err)
		}
		f.logged(`
00:00:00.000 operator watch configmaps shop/* → 200 ! the watch is cut, 2.5s
00:00:02.500 operator watch configmaps shop/* ends: connection reset by peer
00:00:02.500 operator watch configmaps shop/* → 200
`)
	})
}

func TestWatchIsDelayed(t *testing.T) {
	run(t, with(fault.Fault{Kind: fault.DelaysWatch, Delay: 10 * time.Minute}), func(f *fixture) {
		got, err := arrivals(f.open(f.Client("operator")))
		if err != nil || !strings.HasPrefix(got, "0@0 1@601 2@602 ") || !strings.HasSuffix(got, " 19@619") {
			f.Errorf("the events are %s and %v", got, err)
		}
	})
}

// TestCutOfDelayedWatch loses the events that are under way.
func TestCutOfDelayedWatch(t *testing.T) {
	run(t, with(fault.Fault{Kind: fault.DelaysWatch, Delay: 5 * time.Second}), func(f *fixture) {
		body := f.open(f.Client("operator"))
		time.AfterFunc(7500*time.Millisecond, func() { f.Restart(0) })
		got, err := arrivals(body)
		f.isReset(err)
		if got != "0@0 1@6 2@7" {
			f.Errorf("the events are %s", got)
		}
	})
}

// TestClosedWatch closes watches in each state, which ends the goroutines of the bubble.
func TestClosedWatch(t *testing.T) {
	for _, delay := range []time.Duration{0, time.Hour} {
		for _, wait := range []time.Duration{0, 2500 * time.Millisecond} {
			run(t, with(fault.Fault{Kind: fault.DelaysWatch, Delay: delay}), func(f *fixture) {
				body := f.open(f.Client("operator"))
				time.Sleep(wait)
				if err := body.Close(); err != nil {
					f.Error(err)
				}
				if _, err := io.ReadAll(body); err == nil || errors.Is(err, io.EOF) {
					f.Errorf("a closed watch is read with %v", err)
				}
			})
		}
	}
}

func TestCancelledWatch(t *testing.T) {
	p := plan.Plan{Latency: time.Second, Faults: []fault.Fault{{Kind: fault.CutsWatch, Delay: time.Hour}}}
	run(t, transport.Options{Plan: p}, func(f *fixture) {
		ctx, cancel := context.WithCancel(f.Context())
		time.AfterFunc(3500*time.Millisecond, cancel)
		response, err := f.Client("operator").RoundTrip(f.newRequest(ctx, http.MethodGet, configMaps+"?watch=1", ""))
		if err != nil {
			f.Fatal(err)
		}
		if _, err := arrivals(response.Body); !errors.Is(err, context.Canceled) {
			f.Errorf("the error is %v", err)
		}
	})
}

// TestTimeoutsOfWatches has the seed decide about timeouts that reflectors draw, and about none else.
func TestTimeoutsOfWatches(t *testing.T) {
	run(t, transport.Options{}, func(f *fixture) {
		var got []string
		f.Serve(roundTripperFunc(func(r *http.Request) (*http.Response, error) {
			got = append(got, r.URL.Query().Get("timeoutSeconds"))
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
		}))
		for _, timeout := range []string{"300", "600", "601", "30"} {
			f.ask(f.Client("operator"), http.MethodGet, configMaps+"?watch=1&timeoutSeconds="+timeout, "")
		}
		var want []string
		for n := range 2 {
			timeout := plan.Plan{}.WatchTimeout(fault.Call{
				Actor: "operator", Verb: fault.Watch, Path: configMaps, N: n + 1,
			})
			want = append(want, fmt.Sprint(timeout.Seconds()))
		}
		want = append(want, "601", "30")
		if fmt.Sprint(got) != fmt.Sprint(want) {
			f.Errorf("the timeouts are %v, not %v", got, want)
		}
	})
}

type roundTripperFunc func(*http.Request) (*http.Response, error)

// RoundTrip implements [http.RoundTripper].
func (f roundTripperFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
