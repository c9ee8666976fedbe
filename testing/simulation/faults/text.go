package faults

import (
	"fmt"
	"strings"
)

// String returns the plan with one line for each thing that goes wrong.
func (p Plan) String() string {
	var lines []string
	if p.Latency > 0 || len(p.Chances) > 0 {
		lines = append(lines, fmt.Sprintf("seed %d%s", p.Seed, concerning(p.Actors)))
	}
	if p.Latency > 0 {
		lines = append(lines, fmt.Sprintf("latency up to %v", p.Latency))
	}
	for _, c := range p.Clocks {
		lines = append(lines, c.String())
	}
	for _, c := range p.Chances {
		lines = append(lines, c.String())
	}
	if p.Calm > 0 && len(p.Chances) > 0 {
		lines = append(lines, fmt.Sprintf("calm after %v", p.Calm))
	}
	for _, f := range p.Faults {
		lines = append(lines, f.String())
	}
	if len(lines) == 0 {
		return "nothing goes wrong"
	}
	return strings.Join(lines, "\n")
}

func concerning(actors []string) string {
	if len(actors) == 0 {
		return ""
	}
	return " for " + strings.Join(actors, ", ")
}

// String returns the clock in words.
func (c Clock) String() string {
	if c.Ahead < 0 {
		return fmt.Sprintf("the clock of %s is %v behind", c.Actor, -c.Ahead)
	}
	return fmt.Sprintf("the clock of %s is %v ahead", c.Actor, c.Ahead)
}

// String returns the chance in words.
func (c Chance) String() string {
	text := fmt.Sprintf("one in %d: %s", c.OneIn, c.Sort.words())
	if c.Delay > 0 {
		text += fmt.Sprintf(", up to %v", c.Delay)
	}
	return text
}

// String returns the fault in words.
func (f Fault) String() string {
	return fmt.Sprintf("%s %s %s%s: %s",
		orAny(f.Actor, "anybody"), orAny(f.Verb, "any verb"), orAny(f.Path, "any path"), f.which(), f.Effect())
}

// Effect returns in words what the fault does.
func (f Fault) Effect() string {
	if f.Delay > 0 {
		return f.Sort.words() + ", " + f.Delay.String()
	}
	return f.Sort.words()
}

func orAny(text, any string) string {
	if text == "" {
		return any
	}
	return text
}

// which says which calls of a path are struck.
func (f Fault) which() string {
	first := max(f.Nth, 1)
	switch {
	case f.Times > 1:
		return fmt.Sprintf(" #%d-%d", first, first+f.Times-1)
	case first > 1:
		return fmt.Sprintf(" #%d", first)
	}
	return ""
}

func (s Sort) words() string {
	switch s {
	case Refuses:
		return "the connection is refused"
	case Fails:
		return "an internal error, without effect"
	case LosesAnswer:
		return "the answer is lost"
	case Conflicts:
		return "a conflict: somebody else wrote the object"
	case Throttles:
		return "too many requests, without effect"
	case Expires:
		return "the version is too old"
	case CutsWatch:
		return "the watch is cut"
	case DelaysWatch:
		return "the events are late"
	case DiesBefore:
		return "the actor dies before it"
	case DiesAfter:
		return "the actor dies after it"
	case Restarts:
		return "the API server restarts"
	}
	return string(s)
}
