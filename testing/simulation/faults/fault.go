package faults

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Sort is what goes wrong at a call.
type Sort string

// The sorts of faults.
const (
	// Refuses lets the connection be refused. The call has no effect.
	Refuses Sort = "Refuses"
	// Fails answers 500, an internal error. The call has no effect.
	Fails Sort = "Fails"
	// LosesAnswer breaks the connection after the call had its effect.
	LosesAnswer Sort = "LosesAnswer"
	// Conflicts answers 409 to a write of an existing object: somebody else has just written it, by an annotation that
	// is put on and taken off again. The call has no effect.
	Conflicts Sort = "Conflicts"
	// Throttles answers 429. Clients are asked to try again after the delay of the fault, in full seconds and at least
	// one. The call has no effect.
	Throttles Sort = "Throttles"
	// Expires answers 410 to a list or a watch.
	Expires Sort = "Expires"
	// CutsWatch breaks the connection of a watch when it is as old as the delay of the fault.
	CutsWatch Sort = "CutsWatch"
	// DelaysWatch lets each event of a watch arrive late, by the delay of the fault, but for those with which the watch
	// begins: the cache that the watch feeds is stale.
	DelaysWatch Sort = "DelaysWatch"
	// DiesBefore ends the process of the actor. The call has no effect.
	DiesBefore Sort = "DiesBefore"
	// DiesAfter ends the process of the actor after the call had its effect, before the answer arrives.
	DiesAfter Sort = "DiesAfter"
	// Restarts restarts the API server. All connections break, and new ones are refused, that of the call too, until
	// the delay of the fault is over. The call has no effect.
	Restarts Sort = "Restarts"
)

// Sorts are all sorts of faults.
var Sorts = []Sort{
	Refuses, Fails, LosesAnswer, Conflicts, Throttles, Expires, CutsWatch, DelaysWatch, DiesBefore, DiesAfter, Restarts,
}

// Fits reports whether calls of a verb can go wrong so. To discovery nothing happens after which clients wait and try
// again, for they do so while they hold locks.
func (s Sort) Fits(verb string) bool {
	switch s {
	case LosesAnswer:
		return verb != Discover && verb != Watch
	case Throttles:
		return verb != Discover
	case Conflicts:
		return slices.Contains([]string{Update, Patch, Apply, Delete}, verb)
	case Expires:
		return verb == List || verb == Watch
	case CutsWatch, DelaysWatch:
		return verb == Watch
	}
	return true
}

// Fault is what goes wrong at some calls.
type Fault struct {
	Sort Sort
	// Actor is who makes the calls. Empty stands for everybody.
	Actor string
	// Verb is that of the calls. Empty stands for all that the sort fits.
	Verb string
	// Path is that of the calls. A star stands for any text without a slash: "/api/v1/pods*" is pods with any query.
	// Empty stands for all paths.
	Path string
	// Nth is 1 for the first call of its actor, verb and path. With a star or an empty field, calls of each of them are
	// counted apart. 0 is 1.
	Nth int
	// Times is how many of these calls it strikes in a row. 0 is 1.
	Times int
	// Delay belongs to some sorts.
	Delay time.Duration
}

// At returns the fault that strikes one call.
func At(c Call, s Sort, delay time.Duration) Fault {
	return Fault{Sort: s, Actor: c.Actor, Verb: c.Verb, Path: c.Path, Nth: c.N, Delay: delay}
}

func (f Fault) strikes(c Call) bool {
	first := max(f.Nth, 1)
	return first <= c.N && c.N < first+max(f.Times, 1) &&
		(f.Actor == "" || f.Actor == c.Actor) &&
		(f.Verb == "" || f.Verb == c.Verb) && f.Sort.Fits(c.Verb) &&
		(f.Path == "" || matches(f.Path, c.Path))
}

// call returns the call that a fault of one call strikes.
func (f Fault) call() Call { return Call{Actor: f.Actor, Verb: f.Verb, Path: f.Path, N: max(f.Nth, 1)} }

// matches reports whether a path is one of those of a pattern.
func matches(pattern, path string) bool {
	before, after, star := strings.Cut(pattern, "*")
	rest, ok := strings.CutPrefix(path, before)
	if !ok || !star {
		return ok && rest == ""
	}
	for {
		if matches(after, rest) {
			return true
		}
		if rest == "" || rest[0] == '/' {
			return false
		}
		rest = rest[1:]
	}
}

func (f Fault) validate() error {
	switch {
	case !slices.Contains(Sorts, f.Sort):
		return fmt.Errorf("there is no sort %q", f.Sort)
	case f.Verb != "" && !f.Sort.Fits(f.Verb):
		return fmt.Errorf("%s does not happen to %s", f.Sort, f.Verb)
	case f.Path != "" && f.Path[0] != '/' && f.Path[0] != '*':
		return errors.New("the path does not begin with a slash")
	case f.Nth < 0 || f.Times < 0 || f.Delay < 0:
		return errors.New("a number is negative")
	}
	return nil
}
