package dependents

import (
	"fmt"
	"slices"
	"strings"
)

// switchName is the name of a switch, for errors and for the graph.
type switchName string

// The switches, in the order of the table of the package.
const (
	gated          switchName = "Gate"
	readOnly       switchName = "ReadOnly"
	blockOnAbsence switchName = "BlockOnAbsence"
	ignoreAbsent   switchName = "IgnoreAbsent"
	absent         switchName = "Absent"
	orphanWhen     switchName = "OrphanWhen"
	unowned        switchName = "Unowned"
	createOnly     switchName = "CreateOnly"
	auxiliary      switchName = "Auxiliary"
	unchecked      switchName = "Unchecked"
	guarded        switchName = "Guard"
	needsData      switchName = "Needs"
	isAfter        switchName = "After"
	yieldsData     switchName = "Yield"
)

// contradictions are pairs of switches that cannot be together.
var contradictions = [][2]switchName{
	{gated, readOnly}, {gated, absent}, {gated, orphanWhen},
	{readOnly, absent}, {readOnly, orphanWhen}, {readOnly, unowned}, {readOnly, createOnly},
	{blockOnAbsence, ignoreAbsent},
	{absent, orphanWhen}, {absent, createOnly},
	{absent, guarded}, {absent, needsData}, {absent, isAfter}, {absent, yieldsData},
	{orphanWhen, unowned},
}

// needed are pairs of a switch, and the switch that it needs.
var needed = [][2]switchName{{blockOnAbsence, readOnly}, {ignoreAbsent, readOnly}}

// repeatable are the switches that may be used more than once.
var repeatable = []switchName{needsData, isAfter, yieldsData}

// plan is what the author said about a dependent, but for functions.
type plan struct {
	name string
	// kind is the name of the Go type of the object.
	kind string
	// switches are in the order in which they were used.
	switches []switchName
	// missing are the switches whose function is nil.
	missing []switchName
	// needs and yields are cells, after the names of other dependents.
	needs, yields []AnyCell
	after         []string
}

func (p *plan) set(s switchName) {
	p.switches = append(p.switches, s)
}

func (p *plan) has(s switchName) bool {
	return slices.Contains(p.switches, s)
}

// check returns an error if the plan contradicts itself.
func (p *plan) check() error {
	for i, s := range p.switches {
		if slices.Contains(p.switches[:i], s) && !slices.Contains(repeatable, s) {
			return p.errorf("must not use %s twice", s)
		}
	}
	for _, pair := range contradictions {
		if p.has(pair[0]) && p.has(pair[1]) {
			return p.errorf("must not be both %s and %s", pair[0], pair[1])
		}
	}
	for _, pair := range needed {
		if p.has(pair[0]) && !p.has(pair[1]) {
			return p.errorf("must be %s to be %s", pair[1], pair[0])
		}
	}
	if len(p.missing) > 0 {
		return p.errorf("must have a function for %s", p.missing[0])
	}
	if slices.ContainsFunc(p.needs, isNilCell) || slices.ContainsFunc(p.yields, isNilCell) {
		return p.errorf("must have no nil cell")
	}
	return nil
}

func (p *plan) errorf(format string, args ...any) error {
	return fmt.Errorf("dependent %q "+format, append([]any{p.name}, args...)...)
}

// describe returns the kind, the switches, and what the dependent waits for and yields.
func (p *plan) describe() string {
	words := []string{p.kind}
	listed := []switchName{gated, readOnly, ignoreAbsent, absent, orphanWhen, unowned, createOnly, auxiliary,
		unchecked, guarded}
	for _, s := range listed {
		if p.has(s) {
			words = append(words, string(s))
		}
	}
	text := strings.Join(words, " ")
	for _, part := range []struct {
		verb  string
		names []string
	}{{"yields", cellNames(p.yields)}, {"needs", cellNames(p.needs)}, {"after", p.after}} {
		if len(part.names) > 0 {
			text += ", " + part.verb + " " + quoted(part.names)
		}
	}
	return text
}

// cellNames returns the names of cells, without nil ones.
func cellNames(cells []AnyCell) []string {
	var names []string
	for _, c := range cells {
		if !isNilCell(c) {
			names = append(names, c.cellName())
		}
	}
	return names
}

func quoted(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = fmt.Sprintf("%q", name)
	}
	return strings.Join(quoted, ", ")
}
