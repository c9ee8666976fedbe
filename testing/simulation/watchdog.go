package simulation

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/testing/internal/transport"
)

var stillness = flag.Duration("simulation.stillness", time.Minute,
	"how long, in real time, nothing may happen in a simulation before the test is ended")

// watchdog sees whether a simulation can go on. It ends the test binary with a panic if not: what waits in a bubble
// cannot be ended in another way.
//
// Virtual time passes only while all goroutines of the bubble wait for something in the bubble. A goroutine that waits
// for a mutex, or for something outside, holds it up, if need be for ever. This is seen outside of the bubble and in
// real time. If all wait, and what the story waits for never comes, time passes for ever. This is seen in the bubble.
type watchdog struct {
	test string
	// network is that of the simulation, once its API server serves. Nothing counts as standing still before: what runs
	// until then is ours and waits for nothing, and takes long on a busy machine.
	network atomic.Pointer[transport.Network]
	// bubble is the number of the bubble.
	bubble atomic.Pointer[string]
	// beats counts the intervals of virtual time that passed.
	beats atomic.Int64
	ended chan struct{}
}

const (
	// interval is the virtual time between two beats.
	interval = 10 * time.Minute
	// longestWait is the virtual time after which a story fails that waits for nothing that is bound to come.
	longestWait = 30 * 24 * time.Hour
	// margin is how long before the deadline of the test binary it is ended, so that it can say why.
	margin = 3 * time.Second
)

// watch watches a simulation until stop is called. It is called outside of the bubble.
func watch(t *testing.T) *watchdog {
	d := &watchdog{test: t.Name(), ended: make(chan struct{})}
	var deadline <-chan time.Time
	if at, ok := t.Deadline(); ok {
		deadline = time.After(time.Until(at) - margin)
	}
	go d.run(deadline)
	return d
}

func (d *watchdog) stop() { close(d.ended) }

func (d *watchdog) run(deadline <-chan time.Time) {
	timer := time.NewTicker(*stillness)
	defer timer.Stop()
	var last string
	for {
		select {
		case <-d.ended:
			return
		case <-deadline:
			panic(d.report("the time of the test binary is over. The story is here:", func(s stack) bool {
				return s.ours()
			}))
		case <-timer.C:
		}
		if d.network.Load() == nil {
			continue
		}
		now := d.progress()
		if now == last {
			why, shows := d.holds()
			const still = "the simulation stands still: nothing happened for %v. %s"
			panic(d.report(fmt.Sprintf(still, *stillness, why), shows))
		}
		last = now
	}
}

// holds returns what holds up virtual time, and whether a goroutine shows it. What runs without end goes before what
// waits, which may wait for it.
func (d *watchdog) holds() (why string, shows func(stack) bool) {
	if id := d.bubble.Load(); id != nil && slices.ContainsFunc(stacks(*id), stack.runs) {
		return "A goroutine runs without end and without waiting for anything that takes time, such as a loop that " +
			"tries again at once, and virtual time waits for it.", stack.runs
	}
	return "A goroutine waits for a mutex, or for something that is not in the simulation, such as the network, and " +
		"virtual time waits for it.", stack.holds
}

// progress differs if something happened. The API server serves.
func (d *watchdog) progress() string {
	return fmt.Sprint(d.beats.Load()) + "\n" + d.network.Load().Mark().String()
}

// beat lets the watchdog see in a bubble that time passes, until the function is called that it returns.
func (d *watchdog) beat() (end func()) {
	id := bubble()
	d.bubble.Store(&id)
	ended := make(chan struct{})
	go func() {
		var last string
		since := time.Now()
		for {
			select {
			case <-ended:
				return
			case <-time.After(interval):
			}
			d.beats.Add(1)
			if now := d.steps(); now != last {
				last, since = now, time.Now()
			}
			if time.Since(since) < longestWait {
				continue
			}
			since = time.Now()
			if forEver(stacks(id)) {
				panic(d.report(fmt.Sprintf("the story waits for something that does not come: it did nothing for %v "+
					"of virtual time.", longestWait), stack.ours))
			}
		}
	}()
	return func() { close(ended) }
}

// steps differs if somebody made a request who is neither the operator nor the cluster.
func (d *watchdog) steps() string {
	network := d.network.Load()
	if network == nil {
		return ""
	}
	made := network.Mark()
	for counted := range made {
		if counted.Actor == cluster || strings.HasPrefix(counted.Actor, Operator) {
			delete(made, counted)
		}
	}
	return made.String()
}

// left says which goroutines are left after the end of a simulation, for which the bubble panicked with a reason.
// Another panic goes on.
func (d *watchdog) left(reason any) string {
	if id := d.bubble.Load(); id != nil {
		if all := stacks(*id); len(all) > 0 && strings.Contains(fmt.Sprint(reason), "goroutines remain") {
			const why = "the operator has ended, and the goroutines below have not. They must end with the context " +
				"of Options.Operator or of the request. Leave what waits for signals to the main function: " +
				"ctrl.SetupSignalHandler and signal.Notify."
			return d.report(why, func(stack) bool { return true })
		}
	}
	panic(reason)
}

// report says why the simulation cannot go on, with the stacks that show it.
func (d *watchdog) report(why string, shows func(stack) bool) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %s\n", d.test, why)
	if network := d.network.Load(); network != nil {
		for _, e := range network.Open() {
			if e.Call.Verb != "watch" {
				fmt.Fprintf(&text, "\nrequest without an answer: %s", e)
			}
		}
	}
	if id := d.bubble.Load(); id != nil {
		for _, s := range stacks(*id) {
			if shows(s) {
				text.WriteString("\n" + string(s) + "\n")
			}
		}
	}
	return text.String()
}
