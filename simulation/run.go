package simulation

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/espalier-dev/espalier/simulation/faults"
	"github.com/espalier-dev/espalier/simulation/internal/transport"
)

// testingTB is embedded in World, so that World is a testing.TB.
type testingTB = testing.TB

// Run makes a cluster with an operator, and tells a story in it. The story, the operator and the cluster run in virtual
// time, in a bubble of testing/synctest: a story must not wait for anything outside of it, such as the network. The
// test fails if the story fails by the methods of World.
func Run(t *testing.T, options Options, story func(w *World)) {
	t.Helper()
	o := attempt(t, options, story)
	if o.failed {
		t.Errorf("%s", o.report())
		return
	}
	if o.said != "" {
		t.Log(o.said)
	}
}

// outcome is what came of an attempt.
type outcome struct {
	plan   faults.Plan
	failed bool
	// said is what the story said.
	said string
	// happened are the faults that struck.
	happened []faults.Fault
	log      transport.Log
}

// attempt tells a story once.
func attempt(t *testing.T, options Options, story func(w *World)) outcome {
	t.Helper()
	options, err := options.complete()
	if err != nil {
		t.Fatal(err)
	}
	o := outcome{plan: options.Plan}
	dog := watch(t.Name())
	defer dog.stop()
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{TB: t}
		defer dog.beat()()
		w, err := newWorld(options, r)
		dog.network.Store(w.network)
		if err != nil {
			r.Errorf("the simulation does not start: %v", err)
		} else {
			r.run(func() { story(w) })
			r.cleanUp()
		}
		w.end()
		o.failed, o.said = r.Failed(), r.text()
		o.happened, o.log = w.network.Happened(), w.network.Log()
	})
	return o
}

// longest is how many lines of a log are printed.
const longest = 200

// report says why a story failed, and what happened.
func (o outcome) report() string {
	return fmt.Sprintf("%s\nWhat happened:\n%s", o.summary(), readable(o.log))
}

// summary says why a story failed, and under which plan.
func (o outcome) summary() string {
	text := o.said + "\n"
	plan := o.plan
	if plan.Latency == 0 && len(plan.Chances) == 0 {
		plan.Seed, plan.Actors = 0, nil // nothing is drawn
	}
	if plan.Latency > 0 || len(plan.Chances)+len(plan.Faults)+len(plan.Clocks) > 0 {
		text += "\nThis happens with Options.Plan:\n" + plan.Code("faults") + "\n"
	}
	return text
}

// readable returns the last lines of a log that tell the story: no discovery, and of the cluster its writes.
func readable(log transport.Log) transport.Log {
	log.Entries = slices.DeleteFunc(slices.Clone(log.Entries), func(e transport.Entry) bool {
		switch e.Call.Verb {
		case faults.Discover:
			return e.Note == ""
		case faults.Get, faults.List, faults.Watch:
			return e.Call.Actor == cluster
		}
		return false
	})
	if dropped := len(log.Entries) - longest; dropped > 0 {
		log.Dropped += dropped
		log.Entries = log.Entries[dropped:]
	}
	return log
}
