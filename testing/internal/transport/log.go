package transport

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/internal/fault"
)

// Entry is a line of the log.
type Entry struct {
	// At is when the request arrived at the server, or failed before, since the network began.
	At time.Duration
	// Call is the request as the plan sees it.
	Call fault.Call
	// Resource is empty if the request is not for one.
	Resource schema.GroupResource
	// Kind is empty if it is not known.
	Kind string
	// Subresource, Namespace and Name are empty if the request has none. The name of a create may be a generateName.
	Subresource, Namespace, Name string
	// Selection is what makes two lists or watches of a resource differ.
	Selection string
	// Status is that of the answer, 0 if there is none yet.
	Status int
	// Error is why no answer arrived.
	Error string
	// Fault is what went wrong. Its kind is empty if nothing did.
	Fault fault.Fault
	// End is set in a line of its own that says why a watch ended, if its connection was broken.
	End string
	// Note is set in a line that is not about a request.
	Note string
}

// Counted is what requests are counted by.
type Counted struct {
	Actor, Verb string
	// Kind is the resource if the kind is not known.
	Kind string
}

// Counts are numbers of requests.
type Counts map[Counted]int

// Of returns how many requests an actor made with one of the verbs, or with any if none is given.
func (c Counts) Of(actor string, verbs ...string) int {
	n := 0
	for counted, m := range c {
		if counted.Actor == actor && (len(verbs) == 0 || slices.Contains(verbs, counted.Verb)) {
			n += m
		}
	}
	return n
}

// log keeps the last lines, twice as many at times, and counts all requests. It does not grow with time: counts do with
// the number of kinds.
type log struct {
	lines   int
	entries []*Entry
	// dropped is how many entries are not kept.
	dropped int
	counts  Counts
}

func newLog(lines int) log { return log{lines: lines, counts: Counts{}} }

func (l *log) add(e *Entry) {
	if len(l.entries) >= 2*l.lines {
		l.entries = slices.Clone(l.kept())
		l.dropped += l.lines
	}
	l.entries = append(l.entries, e)
}

// kept returns the last entries.
func (l *log) kept() []*Entry { return l.entries[max(len(l.entries)-l.lines, 0):] }

// Log returns what happened, as far back as it is kept.
func (n *Network) Log() Log {
	n.mu.Lock()
	defer n.mu.Unlock()
	kept := n.log.kept()
	l := Log{Dropped: n.log.dropped + len(n.log.entries) - len(kept)}
	for _, e := range kept {
		l.Entries = append(l.Entries, *e)
	}
	return l
}

// Open returns the requests that have no answer yet, also those that have not arrived at the server.
func (n *Network) Open() []Entry {
	n.mu.Lock()
	defer n.mu.Unlock()
	var open []Entry
	for _, x := range n.open {
		if x.entry.Status == 0 && x.entry.Error == "" {
			open = append(open, *x.entry)
		}
	}
	return open
}

// Mark returns how many requests there were up to now.
func (n *Network) Mark() Counts {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.log.counts)
}

// Since returns how many requests there were after a mark. Nil is the mark at the beginning. Requests count when they
// arrive.
func (n *Network) Since(mark Counts) Counts {
	since := n.Mark()
	for counted, m := range mark {
		if since[counted] -= m; since[counted] == 0 {
			delete(since, counted)
		}
	}
	return since
}

// Clock returns how much time has passed, as it is in the log.
func (n *Network) Clock() string { return clock(n.now()) }

// Note adds a line of the caller to the log, such as the next step of a story.
func (n *Network) Note(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.log.add(&Entry{At: n.now(), Note: text})
}

// logArrival notes that the request is at the server, or meets a fault instead.
func (x *exchange) logArrival(struck fault.Fault) {
	n := x.network
	n.mu.Lock()
	defer n.mu.Unlock()
	x.entry.At, x.entry.Fault = n.now(), struck
	if struck.Kind != "" {
		n.happened = append(n.happened, struck)
		n.struck = time.Now()
	}
	if n.options.Unlogged == nil || struck.Kind != "" || !n.options.Unlogged(x.call) {
		n.log.add(x.entry)
	}
	n.log.counts[Counted{x.call.Actor, x.call.Verb, x.entry.kind()}]++
}

// logAnswer notes what the client gets.
func (x *exchange) logAnswer(status int, err error) {
	x.network.mu.Lock()
	defer x.network.mu.Unlock()
	x.entry.Status = status
	if err != nil {
		x.entry.Error = short(err)
	}
}

// logEnd notes why a watch ended.
func (x *exchange) logEnd(err error) {
	n := x.network
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.options.Unlogged != nil && n.options.Unlogged(x.call) {
		return
	}
	ended := *x.entry
	ended.At, ended.End, ended.Fault = n.now(), short(err), fault.Fault{}
	n.log.add(&ended)
}

// Only returns the requests of an actor.
func (c Counts) Only(actor string) Counts {
	only := Counts{}
	for counted, n := range c {
		if counted.Actor == actor {
			only[counted] = n
		}
	}
	return only
}
