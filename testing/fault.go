package testing

import (
	"cmp"
	"fmt"

	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/testing/internal/literal"
	"github.com/espalier-dev/espalier/testing/internal/words"
)

// Fault is what goes wrong at one call of a row. The zero Fault is none.
//
// The call is named as in ExpectOrder, reads included:
//
//	get Widget default/gadget
//	list ConfigMap default
//	create ConfigMap default/settings-*      (a name to be generated)
//	update Widget/status default/gadget
//	POST api.example.com/buckets             (see HTTP)
//	get ConfigMap default/settings (live)    (a read through the APIReader)
//	create ConfigMap default/one (dry run)
//	create ConfigMap settings in remote      (an additional config)
//
// The occurrence says which of several calls of that name is meant, in all requests of a replay: 1, the default, is the
// first. There is at most one occurrence; to give more, or one below 1, is an error of the row.
type Fault struct {
	faults []fault.Fault
	// problem is what is wrong with an occurrence; empty if nothing is.
	problem string
}

// DiesBefore ends the process before a call. A new instance of the code starts, which knows nothing of the old one.
func DiesBefore(call string, occurrence ...int) Fault {
	return newFault(fault.DiesBefore, call, occurrence)
}

// DiesAfter ends the process after a call, before the answer arrives.
func DiesAfter(call string, occurrence ...int) Fault {
	return newFault(fault.DiesAfter, call, occurrence)
}

// Fails lets a call fail without an effect. A request of [HTTP] is answered with 503 Service Unavailable.
func Fails(call string, occurrence ...int) Fault { return newFault(fault.Fails, call, occurrence) }

// LosesAnswer lets a call fail that had its effect.
func LosesAnswer(call string, occurrence ...int) Fault {
	return newFault(fault.LosesAnswer, call, occurrence)
}

// Conflicts lets somebody else write the object just before a call that changes or deletes it.
func Conflicts(call string, occurrence ...int) Fault {
	return newFault(fault.Conflicts, call, occurrence)
}

// Stale answers a read from a cache that has not seen the last change of the kind, until the request ends.
func Stale(call string, occurrence ...int) Fault { return newFault(fault.Stale, call, occurrence) }

// UserDeletes has the user delete the resource just before a call that writes, or that is made with [Call] or [HTTP]. The
// replay must leave nothing behind that is not left behind either if the resource is deleted at rest.
func UserDeletes(call string, occurrence ...int) Fault {
	return newFault(fault.UserDeletes, call, occurrence)
}

func newFault(kind fault.Kind, call string, occurrence []int) Fault {
	one := fault.Fault{Kind: kind, Path: call}
	if len(occurrence) == 1 {
		one.Nth = occurrence[0]
	}
	f := Fault{faults: []fault.Fault{one}}
	if len(occurrence) > 1 || len(occurrence) == 1 && occurrence[0] < 1 {
		f.problem = fmt.Sprintf("%s(%q): want one occurrence, 1 or more, not %v", kind, call, occurrence)
	}
	return f
}

// And returns both faults, in one replay.
func (f Fault) And(other Fault) Fault {
	return Fault{
		faults:  append(f.faults[:len(f.faults):len(f.faults)], other.faults...),
		problem: cmp.Or(f.problem, other.problem),
	}
}

// String returns the fault as it is written in a row, without the name of this package.
func (f Fault) String() string {
	if len(f.faults) == 0 {
		return "Fault{}"
	}
	text := f.faults[0].String()
	for _, other := range f.faults[1:] {
		text += ".And(" + other.String() + ")"
	}
	return text
}

func (f Fault) isZero() bool { return len(f.faults) == 0 }

// expression returns how a fault that is not zero is written.
func (f Fault) expression() literal.Call {
	first := f.faults[0]
	call := literal.Call{Package: words.Harness, Func: string(first.Kind), Args: []any{first.Path}}
	if first.Nth > 1 {
		call.Args = append(call.Args, first.Nth)
	}
	if others := f.faults[1:]; len(others) > 0 {
		call.Method, call.MethodArgs = "And", []any{Fault{faults: others}.expression()}
	}
	return call
}

// covers reports whether one of the faults of f, in which * stands for any text, is the other. An occurrence that f was
// not given stands for any.
func (f Fault) covers(other fault.Fault) bool {
	for _, mine := range f.faults {
		if mine.Kind == other.Kind && matchesPattern(mine.Path, other.Path) &&
			(mine.Nth == 0 || mine.Nth == max(1, other.Nth)) {
			return true
		}
	}
	return false
}

// matchesPattern reports whether a text is a pattern, in which * stands for any text.
func matchesPattern(pattern, text string) bool { return fault.Matches(pattern, text, "") }
