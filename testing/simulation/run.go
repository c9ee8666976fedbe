package simulation

import (
	"cmp"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/espalier-dev/espalier/testing/internal/random"
	"github.com/espalier-dev/espalier/testing/internal/transport"
)

// testingTB is embedded in World, so that World is a testing.TB.
type testingTB = testing.TB

// Run makes a cluster with an operator, and tells a story in it. The story, the operator and the cluster run in virtual
// time, in a bubble of testing/synctest: a story must not wait for anything outside of it, such as the network. The
// test fails if the story fails by the methods of World, or does not come to its end. It is skipped if the story skips
// it.
func Run(t *testing.T, options Options, story func(w *World)) {
	t.Helper()
	o := attempt(t, options, story)
	if o.holds(t) && o.said != "" {
		t.Log(o.said)
	}
}

// beginSignals has the runtime begin to handle signals outside of all bubbles: in one it would end the test binary.
var beginSignals = sync.OnceFunc(func() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt)
	signal.Stop(signals)
})

// outcome is what came of an attempt.
type outcome struct {
	plan   Plan
	failed bool
	// untold says why the story shows nothing, though it did not fail; it is empty if the story was told to its end.
	// skipped says that it wanted this by itself.
	untold  string
	skipped bool
	// said is what the story said.
	said string
	// happened are the faults that struck.
	happened []Fault
	log      transport.Log
	// requests are those of all actors, and writes those of the operator that had an effect.
	requests transport.Counts
	writes   []written
}

// attempt tells a story once.
func attempt(t *testing.T, options Options, story func(w *World)) (o outcome) {
	t.Helper()
	options, err := options.complete()
	if err != nil {
		t.Fatal(err)
	}
	quietManagers()
	o = outcome{plan: options.Plan}
	random.Seed(options.Plan.Seed)
	beginSignals()
	dog := watch(t)
	defer dog.stop()
	defer func() {
		if reason := recover(); reason != nil {
			o.failed, o.said = true, strings.TrimSpace(o.said+"\n"+dog.left(reason))
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{TB: t}
		defer dog.beat()()
		w, err := newWorld(options, r, dog)
		if err != nil {
			r.Errorf("the simulation does not start: %v", err)
		} else {
			r.tell(func() { story(w) })
			r.cleanUp()
		}
		o.happened, o.log = w.network.Happened(), w.network.Log()
		o.requests, o.writes = w.network.Mark(), w.takeWrites(func(*writes) *int { return new(int) })
		idle := !w.isEarly() && slices.ContainsFunc(o.happened, func(f Fault) bool { return f.Kind == UserDeletes })
		w.end()
		o.failed, o.untold, o.skipped, o.said = r.Failed(), r.untold(), r.Skipped(), r.text()
		if idle && !o.failed {
			o.untold = cmp.Or(o.untold, "there was no resource that the user could delete")
		}
	})
	return o
}

// holds reports whether the story was told to its end and did not fail. Otherwise the test says why.
func (o outcome) holds(t *testing.T) bool {
	t.Helper()
	switch {
	case o.failed:
		t.Error(o.report())
	case o.skipped:
		t.Skip(o.untold)
	case o.untold != "":
		t.Errorf("the story shows nothing: %s\n%s", o.untold, o.summary())
	default:
		return true
	}
	return false
}
