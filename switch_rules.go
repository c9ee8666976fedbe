package espalier

import (
	"fmt"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/reconcilers"
)

// switchName is the name of a switch, for errors and for the printed tree.
type switchName string

// The switches whose combination is checked.
const (
	gated         switchName = "Gate"
	readOnly      switchName = "ReadOnly"
	optional      switchName = "Optional"
	absent        switchName = "Absent"
	unowned       switchName = "Unowned"
	anyNamespace  switchName = "AnyNamespace"
	createOnly    switchName = "CreateOnly"
	takeOverFrom  switchName = "TakeOverFrom"
	recreates     switchName = "Recreates"
	labeled       switchName = "Labeled"
	unwatched     switchName = "Unwatched"
	auxiliary     switchName = "Auxiliary"
	unchecked     switchName = "Unchecked"
	hasHealth     switchName = "Health"
	hasSuspension switchName = "Suspension"
	guarded       switchName = "Guard"
	needsData     switchName = "Needs"
	isAfter       switchName = "After"
	independent   switchName = "Independent"
	yieldsData    switchName = "Yield"
	observes      switchName = "Observes"
	retries       switchName = "RetryAfter"
)

// contradictions are the switches that cannot be together with another one.
var contradictions = map[switchName][]switchName{
	readOnly: {
		absent, unowned, anyNamespace, createOnly, recreates, labeled, hasSuspension,
	},
	absent: {
		gated, createOnly, recreates, guarded, needsData, isAfter, independent, yieldsData,
	},
	unwatched:    {unowned, anyNamespace, recreates},
	unowned:      {anyNamespace},
	takeOverFrom: {readOnly, absent, unowned, anyNamespace, createOnly},
	createOnly:   {recreates},
	independent:  {needsData, isAfter},
	unchecked:    {hasHealth},
}

// required are pairs of a switch, and the switch that it needs.
var required = [][2]switchName{{optional, readOnly}}

// repeatable are the switches that may be used more than once.
var repeatable = []switchName{needsData, isAfter, yieldsData}

// described are the switches that the printed tree shows.
var described = []switchName{
	gated, readOnly, optional, absent, unowned, anyNamespace, createOnly, takeOverFrom, unwatched, auxiliary,
	unchecked, guarded, independent,
}

// rules are what the author said about a node, but for functions.
type rules struct {
	// word is the function that made the node.
	word string
	name string
	// kind is the name of the Go type of the objects.
	kind string
	// many is true if the node keeps any number of objects.
	many bool
	// desires is true if there is a function that returns the objects.
	desires bool
	// switches are in the order in which they were used.
	switches []switchName
	// missing are the switches whose function is nil.
	missing []switchName
	order   reconcilers.Order
}

func (r *rules) use(s switchName) { r.switches = append(r.switches, s) }

func (r *rules) has(s switchName) bool { return slices.Contains(r.switches, s) }

// errorf returns an error of the node.
func (r *rules) errorf(format string, args ...any) error {
	return fmt.Errorf("%s %q "+format, append([]any{r.word, r.name}, args...)...)
}

// check returns an error if the rules contradict each other.
func (r *rules) check() error {
	if r.name == "" {
		return r.errorf("must have a name")
	}
	for i, s := range r.switches {
		if slices.Contains(r.switches[:i], s) && !slices.Contains(repeatable, s) {
			return r.errorf("must not use %s twice", s)
		}
		for _, other := range contradictions[s] {
			if r.has(other) {
				return r.errorf("must not be both %s and %s", s, other)
			}
		}
	}
	for _, pair := range required {
		if r.has(pair[0]) && !r.has(pair[1]) {
			return r.errorf("must be %s to be %s", pair[1], pair[0])
		}
	}
	switch {
	case len(r.missing) > 0:
		return r.errorf("must not have nil for %s", r.missing[0])
	case !r.desires && (!r.has(absent) || r.has(unwatched)):
		return r.errorf("must have a function that returns what is desired")
	}
	return nil
}

// describe returns the kind, the switches, and what the node yields and waits for.
func (r *rules) describe() string {
	words := []string{r.kind}
	for _, s := range described {
		if r.has(s) {
			words = append(words, string(s))
		}
	}
	text := strings.Join(words, " ")
	add := func(verb string, names []string) {
		if len(names) > 0 {
			text += ", " + verb + " " + strings.Join(names, ", ")
		}
	}
	add("yields", quoted(r.order.Yields))
	add("needs", quoted(r.order.Needs))
	add("after", quoted(r.order.After))
	return text
}

func quoted[Text ~string](texts []Text) []string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = fmt.Sprintf("%q", text)
	}
	return quoted
}
