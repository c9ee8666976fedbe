package fault

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Call is a call as faults see it.
type Call struct {
	// Actor is who makes the call, such as "operator". It is empty in a row, where only the code under test does.
	Actor string
	// Verb is one of the verbs above. It is empty in a row.
	Verb string
	// Path is that of the URL. To that of a create, the name of the object or its generateName is added. To that of a
	// list or a watch, what makes two of them differ is added as a query, such as
	// "/api/v1/pods?labelSelector=app%3Dweb". That of a call outside of the cluster is its name. In a row it is all of
	// the call, as in "create ConfigMap ns/one".
	Path string
	// N is 1 for the first call of this actor, verb and path.
	N int
	// At is when the call is made, since the simulation began.
	At time.Duration
}

// Fault is what goes wrong at some calls.
type Fault struct {
	Kind Kind
	// Actor is who makes the calls. Empty stands for everybody.
	Actor string
	// Verb is that of the calls. Empty stands for all that the kind fits.
	Verb string
	// Path is that of the calls. A star stands for any text without a slash: "/api/v1/pods*" is pods with any query.
	// Empty stands for all paths.
	Path string
	// Nth is 1 for the first call of its actor, verb and path. With a star or an empty field, calls of each of them are
	// counted apart. 0 is 1.
	Nth int
	// Times is how many of these calls it strikes in a row. 0 is 1.
	Times int
	// Delay belongs to some kinds.
	Delay time.Duration
}

// At returns the fault that strikes one call.
func At(c Call, k Kind, delay time.Duration) Fault {
	return Fault{Kind: k, Actor: c.Actor, Verb: c.Verb, Path: c.Path, Nth: c.N, Delay: delay}
}

// Call returns the call that a fault of one call strikes.
func (f Fault) Call() Call { return Call{Actor: f.Actor, Verb: f.Verb, Path: f.Path, N: max(f.Nth, 1)} }

// Strikes reports whether the fault is at a call.
func (f Fault) Strikes(c Call) bool {
	first := max(f.Nth, 1)
	return first <= c.N && c.N < first+max(f.Times, 1) &&
		(f.Actor == "" || f.Actor == c.Actor) &&
		(f.Verb == "" || f.Verb == c.Verb) && f.Kind.Fits(c.Verb) &&
		(f.Path == "" || Matches(f.Path, c.Path, "/"))
}

// Matches reports whether a text is one of those of a pattern, in which a star stands for any text without one of the
// characters of until.
func Matches(pattern, text, until string) bool {
	before, after, star := strings.Cut(pattern, "*")
	rest, ok := strings.CutPrefix(text, before)
	if !ok || !star {
		return ok && rest == ""
	}
	for !Matches(after, rest, until) {
		if rest == "" || strings.IndexByte(until, rest[0]) >= 0 {
			return false
		}
		rest = rest[1:]
	}
	return true
}

// Validate returns an error if the fault is none of the given kinds, or can have no effect.
func (f Fault) Validate(kinds []Kind) error {
	switch {
	case !slices.Contains(kinds, f.Kind):
		return fmt.Errorf("there is no kind %q", f.Kind)
	case f.Verb != "" && !f.Kind.Fits(f.Verb):
		return fmt.Errorf("%s does not happen to %s", f.Kind, f.Verb)
	case f.Path != "" && f.Path[0] != '/' && f.Path[0] != '*' && f.Verb != Outside:
		return errors.New("the path does not begin with a slash")
	case f.Nth < 0 || f.Times < 0 || f.Delay < 0:
		return errors.New("a number is negative")
	}
	return nil
}

// String returns the fault as in Go source of a table row: DiesAfter("create ConfigMap ns/one"), or
// DiesAfter("create ConfigMap ns/one", 2).
func (f Fault) String() string {
	words := slices.DeleteFunc([]string{f.Actor, f.Verb, f.Path}, func(word string) bool { return word == "" })
	call := strings.Join(words, " ")
	if f.Nth > 1 {
		return fmt.Sprintf("%s(%q, %d)", f.Kind, call, f.Nth)
	}
	return fmt.Sprintf("%s(%q)", f.Kind, call)
}

// Effect returns in words what the fault does.
func (f Fault) Effect() string {
	if f.Delay > 0 {
		return f.Kind.words() + ", " + f.Delay.String()
	}
	return f.Kind.words()
}
