package transport_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/testing/internal/plan"
	"github.com/espalier-dev/espalier/testing/internal/server"
	"github.com/espalier-dev/espalier/testing/internal/transport"
)

// TestFaults has each kind of fault strike the first update, which is then tried again.
func TestFaults(t *testing.T) {
	for _, row := range []struct {
		kind   fault.Kind
		delay  time.Duration
		status int
		err    error
		effect bool
		// others is how many writes of others the server gets.
		others int
		logged string
	}{
		{fault.Refuses, 0, 0, syscall.ECONNREFUSED, false, 0, "connection refused ! the connection is refused"},
		{fault.Fails, 0, 500, nil, false, 0, "500 ! an internal error, without effect"},
		{fault.LosesAnswer, 0, 0, syscall.ECONNRESET, true, 0, "201 ! the answer is lost"},
		{fault.Conflicts, 0, 201, nil, true, 2, "201 ! a conflict: somebody else wrote the object"},
		{fault.Throttles, 1500 * time.Millisecond, 429, nil, false, 0,
			"429 ! too many requests, without effect, 1.5s"},
	} {
		t.Run(string(row.kind), func(t *testing.T) {
			struck := fault.Fault{Kind: row.kind, Verb: fault.Update, Path: one, Delay: row.delay}
			run(t, with(struck), func(f *fixture) {
				c := f.Client("operator")
				first := f.ask(c, http.MethodPut, one, "{}")
				if first.status != row.status || !errors.Is(first.err, row.err) {
					f.Errorf("the answer is %v", first)
				}
				if had := f.had(); strings.Contains(had, http.MethodPut) != row.effect ||
					strings.Count(had, http.MethodPatch) != row.others {
					f.Errorf("the server got %q", had)
				}
				if after := first.header.Get("Retry-After"); (row.kind == fault.Throttles) != (after == "2") {
					f.Errorf("to be tried again after %q", after)
				}
				if second := f.ask(c, http.MethodPut, one, "{}"); second.status != 201 || second.body != "{}" {
					f.Errorf("the second answer is %v", second)
				}
				f.logged("00:00:00.000 operator update configmaps shop/one → " + row.logged + "\n" +
					"00:00:00.000 operator update configmaps shop/one → 201\n")
				if missed := (plan.Plan{Faults: []fault.Fault{struck}}).Missed(f.Happened()); missed != nil {
					f.Errorf("missed are %v", missed)
				}
			})
		})
	}
}

func TestExpires(t *testing.T) {
	run(t, with(fault.Fault{Kind: fault.Expires, Path: configMaps}), func(f *fixture) {
		c := f.Client("operator")
		for _, query := range []string{"", "?watch=1"} {
			if a := f.ask(c, http.MethodGet, configMaps+query, ""); a.status != 410 {
				f.Errorf("the answer is %v", a)
			}
		}
		if had := f.had(); had != "" {
			f.Errorf("the server got %s", had)
		}
	})
}

func TestDeath(t *testing.T) {
	for kind, effect := range map[fault.Kind]string{fault.DiesBefore: "", fault.DiesAfter: "PUT " + one} {
		t.Run(string(kind), func(t *testing.T) {
			run(t, with(fault.Fault{Kind: kind, Actor: "operator", Verb: fault.Update}), func(f *fixture) {
				c := f.Client("operator")
				f.update(c, true)
				if had := f.had(); had != effect {
					f.Errorf("the server got %q", had)
				}
				<-c.Died()
				f.update(c, true)
				c.Kill()
				f.update(f.Client("kubelet"), false)
				f.update(f.Client("operator"), false)
			})
		})
	}
}

func (f *fixture) update(c http.RoundTripper, dead bool) {
	f.Helper()
	a := f.ask(c, http.MethodPut, one, "{}")
	if dead && !errors.Is(a.err, context.Canceled) || !dead && a.status != http.StatusCreated {
		f.Errorf("the answer is %v", a)
	}
}

// TestDeathEndsWhatIsUnderWay kills a process with a request that has not arrived, one whose answer has not arrived,
// and none of another process.
func TestDeathEndsWhatIsUnderWay(t *testing.T) {
	p := plan.Plan{Seed: 1, Latency: time.Minute, Actors: []string{"operator"}}
	first := p.Decide(fault.Call{Actor: "operator", Verb: fault.Update, Path: one, N: 1})
	run(t, transport.Options{Plan: p}, func(f *fixture) {
		c, other := f.Client("operator"), f.Client("operator-2")
		go f.update(c, true)
		watch := f.open(other)
		time.Sleep(first.There + 1)
		go f.update(c, true)
		synctest.Wait()
		if open := f.Open(); len(open) != 1 || open[0].Call.N != 2 {
			f.Errorf("without answer are %v", open)
		}
		c.Kill()
		synctest.Wait()
		if had := f.had(); had != "GET "+configMaps+", PUT "+one {
			f.Errorf("the server got %s", had)
		}
		if open := f.Open(); len(open) != 0 {
			f.Errorf("without answer are %v", open)
		}
		time.Sleep(time.Minute)
		if _, err := io.ReadAll(watch); err != nil {
			f.Errorf("the watch of another process: %v", err)
		}
		f.logged(`
00:00:00.000 operator-2 watch configmaps shop/* → 200
00:00:00.446 operator update configmaps shop/one → 201, dead
`)
	})
}

// TestDeathIsWhyRequestsEnd has a process give up a request in the moment in which it dies.
func TestDeathIsWhyRequestsEnd(t *testing.T) {
	run(t, slow, func(f *fixture) {
		c := f.Client("operator")
		ctx, giveUp := context.WithCancel(f.Context())
		go func() { _, _ = c.RoundTrip(f.newRequest(ctx, http.MethodPut, one, "{}")) }()
		synctest.Wait()
		giveUp()
		c.Kill()
		synctest.Wait()
		f.logged("")
	})
}

// TestRestart restarts the server while there are a watch and a request whose answer has not arrived.
func TestRestart(t *testing.T) {
	var f *fixture
	options := with(fault.Fault{Kind: fault.Restarts, Actor: "user", Delay: 10 * time.Second})
	options.Plan.Latency, options.Plan.Actors = time.Hour, []string{"slow"}
	stopped := make(chan struct{}, 1)
	options.Restart = func() {
		stopped <- struct{}{}
		time.Sleep(time.Second)
		f.Serve(server.RoundTripper(http.HandlerFunc(f.handle)))
	}
	run(t, options, func(running *fixture) {
		f = running
		c := f.Client("operator")
		watch := f.open(c)
		slow := make(chan error)
		go func() { slow <- f.get(f.Client("slow")).err }()
		synctest.Wait()
		f.isRefused(f.get(f.Client("user")).err)
		_, err := io.ReadAll(watch)
		f.isReset(err)
		f.isRefused(f.get(c).err)
		f.isRefused(f.ask(c, http.MethodGet, "/apis", "").err)
		time.Sleep(9 * time.Second)
		f.isRefused(f.get(c).err)
		time.Sleep(time.Second)
		if a := f.get(c); a.status != 200 {
			f.Errorf("the answer is %v", a)
		}
		<-stopped
		f.isReset(<-slow)
		f.logged(`
00:00:00.000 operator watch configmaps shop/* → 200
00:00:00.000 user get configmaps shop/one → connection refused ! the API server restarts, 10s
00:00:00.000 operator watch configmaps shop/* ends: connection reset by peer
00:00:00.000 operator get configmaps shop/one → connection refused
00:00:00.000 operator discover /apis → connection refused
00:00:09.000 operator get configmaps shop/one → connection refused
00:00:10.000 operator get configmaps shop/one → 200
00:27:07.283 slow get configmaps shop/one → connection reset by peer
`)
	})
}

// TestRefusedUntilServed restarts a server that takes longer to start than it was to be down.
func TestRefusedUntilServed(t *testing.T) {
	run(t, transport.Options{Restart: func() {}}, func(f *fixture) {
		c := f.Client("operator")
		f.Restart(time.Second)
		time.Sleep(time.Minute)
		f.isRefused(f.get(c).err)
		f.Serve(server.RoundTripper(http.HandlerFunc(f.handle)))
		if a := f.get(c); a.status != 200 {
			f.Errorf("the answer is %v", a)
		}
	})
}

// TestRestartOfWhatRestarts has the server restart again while it does.
func TestRestartOfWhatRestarts(t *testing.T) {
	restarts := make(chan struct{}, 3)
	run(t, transport.Options{Restart: func() { restarts <- struct{}{} }}, func(f *fixture) {
		f.Restart(time.Second)
		time.Sleep(time.Millisecond)
		f.Restart(2 * time.Second)
		synctest.Wait()
		f.Serve(server.RoundTripper(http.HandlerFunc(f.handle)))
		time.Sleep(1900 * time.Millisecond)
		f.isRefused(f.get(f.Client("operator")).err)
		time.Sleep(100 * time.Millisecond)
		f.get(f.Client("operator"))
		f.Restart(time.Second)
		synctest.Wait()
		if n := len(restarts); f.had() != "GET "+one || n != 2 {
			f.Errorf("the server has been restarted %d times", n)
		}
	})
}
