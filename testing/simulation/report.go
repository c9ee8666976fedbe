package simulation

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/testing/internal/transport"
)

// report says why a story failed, and what happened.
func (o outcome) report() string {
	return fmt.Sprintf("%s\nWhat happened:\n(reads that found something are left out)\n%s", o.summary(), tell(o.log))
}

// summary says why a story failed, and under which plan.
func (o outcome) summary() string {
	text := o.said + "\n"
	plan := o.plan
	if plan.Latency == 0 && len(plan.Chances) == 0 {
		plan.Seed, plan.Actors = 0, nil // nothing is drawn
	}
	if plan.Latency > 0 || len(plan.Chances)+len(plan.Faults)+len(plan.Clocks) > 0 {
		text += "\nThis happens with Options.Plan:\n" + plan.Code() + "\n"
	}
	return text
}

// head and tail are how many lines are printed of what happened, at its beginning and at its end.
const head, tail = 40, 160

// tell returns what happened in lines that a person can read.
func tell(log transport.Log) string {
	lines := repeat(merge(log.Entries))
	var text strings.Builder
	cut := max(len(lines)-head-tail, 0)
	for i, l := range lines {
		switch {
		case cut > 0 && i == head:
			fmt.Fprintf(&text, "(%d lines are left out)\n", cut)
		case i < head || i >= head+cut:
			text.WriteString(l.String() + "\n")
		}
	}
	if log.Dropped > 0 {
		return fmt.Sprintf("(%d requests before are not kept)\n", log.Dropped) + text.String()
	}
	return text.String()
}

// seen reports whether a call is one of those with which the controllers of the cluster see what there is.
func seen(c fault.Call) bool {
	reads := []string{fault.Discover, fault.Get, fault.List, fault.Watch}
	return c.Actor == cluster && slices.Contains(reads, c.Verb)
}

// silent reports whether an entry says nothing: a read that found something, watches too, unless the user makes it.
// Those of the user show where in the story something happened.
func silent(e transport.Entry) bool {
	if e.Note != "" || e.End != "" || e.Fault.Kind != "" {
		return false
	}
	switch e.Call.Verb {
	case fault.Discover, fault.Watch:
		return succeeded(e)
	case fault.Get, fault.List:
		return succeeded(e) && e.Call.Actor != user
	}
	return false
}

func succeeded(e transport.Entry) bool {
	return e.Error == "" && e.Status >= http.StatusOK && e.Status < http.StatusMultipleChoices
}

// passing reports whether an entry is one that others repeat if nothing is done between them: a request that failed, an
// error, and what the controllers of the cluster do.
func passing(e transport.Entry) bool {
	switch {
	case e.Note != "":
		return strings.Contains(e.Note, problem)
	case e.Fault.Kind != "":
		return false
	}
	return e.End != "" || e.Call.Actor == cluster || !succeeded(e)
}

// line is what is printed of one entry, or of several that say the same.
type line struct {
	// at is when the first one was, until when the last one was.
	at, until string
	// text is what they say.
	text string
	// times is how many there are, block how many lines it is that are repeated, with the lines before.
	times, block int
}

func newLine(e transport.Entry) line {
	at, text, _ := strings.Cut(e.String(), " ")
	return line{at: at, until: at, text: text, times: 1, block: 1}
}

// String returns the line, such as "00:00:02.000 user create Pod shop/a → connection refused (12 times until
// 00:01:02.000)".
func (l line) String() string {
	switch {
	case l.text == "":
		return fmt.Sprintf("(the last %d lines %d times more until %s)", l.block, l.times, l.until)
	case l.times > 1:
		return fmt.Sprintf("%s %s (%d times until %s)", l.at, l.text, l.times, l.until)
	}
	return l.at + " " + l.text
}

// merge returns the lines of entries that say something. An entry that follows one of the same text is counted there.
// So is a passing one if none but passing ones are between them.
func merge(entries []transport.Entry) []line {
	var lines []line
	// since are the indexes of the lines after the last one that was not passing, by their text.
	since := map[string]int{}
	renewed := leases{}
	for _, e := range entries {
		if silent(e) || renewed.silent(e) {
			continue
		}
		l := newLine(e)
		known, ok := since[l.text]
		if ok && (passing(e) || known == len(lines)-1) {
			lines[known].times++
			lines[known].until = l.at
			continue
		}
		if !passing(e) {
			clear(since)
		}
		since[l.text] = len(lines)
		lines = append(lines, l)
	}
	return lines
}

// leases are who holds them, by their name.
type leases map[string]string

// silent reports whether an entry renews a lease, and notes who holds it.
func (l leases) silent(e transport.Entry) bool {
	if e.Kind != "Lease" || e.Fault.Kind != "" || !succeeded(e) {
		return false
	}
	name := e.Namespace + "/" + e.Name
	renews := l[name] == e.Call.Actor && e.Call.Verb == fault.Update
	l[name] = e.Call.Actor
	return renews
}

// longestBlock is of how many lines a sequence is found that repeats itself: two actors who undo what the other does
// need four.
const longestBlock = 4

// repeat prints a sequence of lines once that follows itself at least twice.
func repeat(lines []line) []line {
	var kept []line
	for i := 0; i < len(lines); {
		block, times := repetition(lines[i:])
		if times < 3 {
			kept = append(kept, lines[i])
			i++
			continue
		}
		end := i + block*times
		kept = append(kept, lines[i:i+block]...)
		kept = append(kept, line{until: lines[end-1].until, times: times - 1, block: block})
		i = end
	}
	return kept
}

// repetition returns how long the shortest sequence is with which lines begin and which follows itself twice, and how
// many times it is there.
func repetition(lines []line) (block, times int) {
	same := func(a, b line) bool { return a.text == b.text }
	for block = 2; block <= longestBlock && 3*block <= len(lines); block++ {
		times = 1
		for rest := lines[block:]; len(rest) >= block && slices.EqualFunc(lines[:block], rest[:block], same); times++ {
			rest = rest[block:]
		}
		if times >= 3 {
			return block, times
		}
	}
	return 1, 1
}
