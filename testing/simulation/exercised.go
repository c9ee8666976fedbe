package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/espalier-dev/espalier/internal/fault"
)

// exercised is what drawn stories have exercised. The zero value is that of none.
type exercised struct {
	mu sync.Mutex
	// stories is how many were told, steps how often each was accepted, and refused how many were not.
	stories, refused int
	steps            map[string]int
	// requests are those of the operator, asked those of them that ask for a write, and outside its calls of what is no
	// cluster.
	requests, asked, outside int
	// made and written are the objects that the operator has created, and its writes, by their kind, and watched the
	// kinds that it watches.
	made, written, watched map[string]int
}

// add counts what a story has exercised under options.
func (e *exercised) add(drawn script, found told, options Options) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stories++; e.stories == 1 {
		e.steps, e.made, e.written, e.watched = map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	}
	for _, step := range found.script {
		e.steps[step.verb]++
	}
	if !found.failed {
		e.refused += len(drawn) - len(found.script)
	}
	for counted, n := range found.requests {
		switch {
		case !options.isOperator(counted.Actor):
			continue
		case counted.Verb == fault.Outside:
			e.outside += n
			continue
		case counted.Verb == fault.Watch:
			e.watched[options.kindOf(counted.Kind)] += n
		case fault.Writes(counted.Verb) && counted.Kind != "Lease" && counted.Kind != "Event":
			e.asked += n
		}
		e.requests += n
	}
	for _, w := range found.writes {
		e.written[w.key.Kind.Kind]++
		if w.verb == "create" {
			e.made[w.key.Kind.Kind]++
		}
	}
}

// report says what was exercised, and fails the test if that is nothing.
func (e *exercised) report(t *testing.T, kind string) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stories == 0 {
		return
	}
	text := fmt.Sprintf("%d stories: %s was created %d, replaced %d and deleted %d times, and %d steps were refused; "+
		"the operator made %d requests, %d of them to write, and %d calls outside of the cluster; it created %s, and "+
		"wrote %s", e.stories, kind, e.steps[doCreate], e.steps[doReplace], e.steps[doDelete], e.refused, e.requests,
		e.asked, e.outside, numbers(e.made), numbers(e.written))
	if never := e.neverWritten(); len(never) > 0 {
		text += "; of the kinds that it watches it never wrote " + strings.Join(never, ", ")
	}
	const hint = "Set Exploration.Hints for fields of which the schema does not say what they must be"
	switch {
	case t.Failed():
		t.Log(text)
	case e.steps[doCreate] == 0:
		t.Errorf("the exploration shows nothing, since the API server has refused all resources. %s.\n%s", hint, text)
	case e.asked+e.outside == 0:
		t.Errorf("the exploration shows nothing, since the operator has asked for no write. %s.\n%s", hint, text)
	default:
		t.Log(text)
	}
}

// neverWritten are the kinds that the operator watches and has never written.
func (e *exercised) neverWritten() []string {
	var never []string
	for _, kind := range slices.Sorted(maps.Keys(e.watched)) {
		if e.written[kind] == 0 {
			never = append(never, kind)
		}
	}
	return never
}

// kindOf returns the kind of a resource that is called so, if a definition says, and else the name. The scheme need not
// have a Go type for a kind.
func (o Options) kindOf(name string) string {
	for _, d := range o.Definitions {
		if d.Spec.Names.Plural == name {
			return d.Spec.Names.Kind
		}
	}
	return name
}

// numbers returns numbers by name in a text, such as "ConfigMap 3, Secret 1".
func numbers(of map[string]int) string {
	if len(of) == 0 {
		return "nothing"
	}
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		texts = append(texts, fmt.Sprintf("%s %d", name, of[name]))
	}
	return strings.Join(texts, ", ")
}
