package simulation

import (
	"bytes"
	"flag"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/espalier-dev/espalier/simulation/internal/transport"
)

var stillness = flag.Duration("simulation.stillness", time.Minute,
	"how long, in real time, nothing may happen in a simulation before the test is ended")

// watchdog sees, outside of a bubble and in real time, whether a simulation stands still.
//
// Virtual time passes only while all goroutines of the bubble wait for something in the bubble. A goroutine that waits
// for a mutex, or for something outside, holds it up, if need be for ever.
type watchdog struct {
	test    string
	network atomic.Pointer[transport.Network]
	// beats counts the intervals of virtual time that passed.
	beats atomic.Int64
	ended chan struct{}
}

// interval is the virtual time between two beats.
const interval = 10 * time.Minute

// watch watches a simulation until stop is called. It is called outside of the bubble.
func watch(test string) *watchdog {
	d := &watchdog{test: test, ended: make(chan struct{})}
	go d.run()
	return d
}

func (d *watchdog) stop() { close(d.ended) }

func (d *watchdog) run() {
	timer := time.NewTicker(*stillness)
	defer timer.Stop()
	var last string
	for {
		select {
		case <-d.ended:
			return
		case <-timer.C:
		}
		now := d.progress()
		if now == last {
			panic(d.report())
		}
		last = now
	}
}

// progress differs if something happened.
func (d *watchdog) progress() string {
	text := fmt.Sprint(d.beats.Load())
	if network := d.network.Load(); network != nil {
		text += "\n" + network.Mark().String()
	}
	return text
}

// beat lets the watchdog see in a bubble that time passes, until the function is called that it returns.
func (d *watchdog) beat() (end func()) {
	ended := make(chan struct{})
	go func() {
		for {
			select {
			case <-ended:
				return
			case <-time.After(interval):
				d.beats.Add(1)
			}
		}
	}()
	return func() { close(ended) }
}

// report says what holds up time.
func (d *watchdog) report() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s: the simulation stands still: nothing happened for %v. A goroutine waits for a mutex, or "+
		"for something that is not in the simulation, such as the network, and virtual time waits for it.\n",
		d.test, *stillness)
	if network := d.network.Load(); network != nil {
		for _, e := range network.Open() {
			if e.Call.Verb != "watch" {
				fmt.Fprintf(&text, "\nrequest without an answer: %s", e)
			}
		}
	}
	text.WriteString("\nWhat holds up time:\n")
	for _, stack := range holding() {
		text.WriteString("\n" + stack + "\n")
	}
	return text.String()
}

// header is the first line of the stack of a goroutine in a bubble.
var header = regexp.MustCompile(`^goroutine \d+.*synctest bubble \d+`)

// holding returns the stacks of goroutines in bubbles that hold up time: those that do not wait for something in it.
func holding() []string {
	buffer := make([]byte, 16<<20)
	buffer = buffer[:runtime.Stack(buffer, true)]
	var stacks []string
	for stack := range bytes.SplitSeq(buffer, []byte("\n\n")) {
		first, _, _ := bytes.Cut(stack, []byte("\n"))
		if header.Match(first) && !bytes.Contains(first, []byte("(durable)")) {
			stacks = append(stacks, string(stack))
		}
	}
	return stacks
}
