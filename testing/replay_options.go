package testing

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/testing/internal/replay"
)

// Replays says how a row is replayed. The zero value is all that a row needs.
type Replays struct {
	// Skip are faults that are left out. In their calls, * stands for any text: Stale("get Lease *"). One without an
	// occurrence is left out at each call of that name.
	Skip []Fault
	// Ignore are differences that do not matter: "ConfigMap default/settings" for an object at the end, and
	// "ConfigMap default/settings: data.token" for a field and what is in it. A * stands for any text.
	//
	// The expectations of the row do not compare such a field either, so they may lack it. It may be another in each
	// run. But once it is written it stays: a replay in which it is written again finds that, unless the row without a
	// fault does so too. Other differences have a word in the place of the field, or after it:
	//
	//	ConfigMap default/one: data.n: rewritten (an ignored field is written again, with another value)
	//	ConfigMap default/one: created           (more or less often; so with deleted)
	//	ConfigMap default/one: written           (although the code does not write it without a fault)
	//	ConfigMap default/one: overwritten       (what somebody else wrote is lost)
	//	get ConfigMap default/one (live): rest   (the call is still made at rest)
	//	external: balance                        (a field of the End of an External)
	//	external 2: balance                      (of the second of several)
	Ignore []string
	// Requests is how many requests a run without a fault may take until it is at rest; 0 is 20. A run with a fault may
	// take twice as many.
	Requests int

	// not says why the row is not replayed.
	not string
}

// NoReplays leaves the replays of a row out. The reason is printed.
func NoReplays(reason string) Replays { return Replays{not: reason} }

// isZero reports whether nothing is set.
func (r Replays) isZero() bool {
	return r.Skip == nil && r.Ignore == nil && r.Requests == 0 && r.not == ""
}

// budget is how long the faults of a row are tried by default. A row of twelve creates takes a tenth of it.
const budget = 5 * time.Second

// options returns the replay options.
func (r Replays) options(mode faultMode, short bool) replay.Options {
	o := replay.Options{Requests: r.Requests, Pairs: mode == faultPairs, Skip: r.skips, Ignore: r.ignored()}
	if mode == faultsDefault {
		o.Budget = budget
	}
	if short {
		o.Share = 3
	}
	return o
}

func (r Replays) skips(f fault.Fault) bool {
	for _, skipped := range r.Skip {
		if skipped.covers(f) {
			return true
		}
	}
	return false
}

// fields returns what says that fields are ignored.
func (r Replays) fields() Replays {
	ofObject := func(pattern string) bool { return !strings.Contains(pattern, ": ") }
	return Replays{Ignore: slices.DeleteFunc(slices.Clone(r.Ignore), ofObject)}
}

// ignored returns ignores; nil if nothing is ignored.
func (r Replays) ignored() fault.Ignore {
	if len(r.Ignore) == 0 {
		return nil
	}
	return r.ignores
}

func (r Replays) ignores(object, path string) bool {
	if field, ok := strings.CutPrefix(path, "stringData"); ok {
		path = "data" + field // It is stored there.
	}
	for _, pattern := range r.Ignore {
		of, below, hasPath := strings.Cut(pattern, ": ")
		if !matchesPattern(of, object) {
			continue
		}
		if !hasPath || matchesPattern(below, path) || matchesPattern(below+".*", path) ||
			matchesPattern(below+"[*", path) {
			return true
		}
	}
	return false
}

// faultMode is which faults rows are replayed with.
type faultMode string

const (
	faultsOff     faultMode = "off"
	faultsDefault faultMode = "default"
	faultPairs    faultMode = "pairs"
)

var faultFlag = faultsDefault

func init() {
	flag.Var(&faultFlag, "rtesting.faults", "replay rows with faults: off, default (one at each call), pairs (two)")
}

var errFaultMode = errors.New("want off, default or pairs")

// Set implements [flag.Value].
func (m *faultMode) Set(text string) error {
	switch mode := faultMode(text); mode {
	case faultsOff, faultsDefault, faultPairs:
		*m = mode
		return nil
	}
	return fmt.Errorf("%q: %w", text, errFaultMode)
}

// String implements [flag.Value].
func (m *faultMode) String() string { return string(*m) }
