package simulation

import (
	"fmt"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/testing/simulation/internal/journal"
)

const (
	// hottest is how often the operator may write an object in the same way within a minute. In virtual time, an
	// operator that causes its own next reconcile does so a thousand times in a second, and time hardly passes.
	hottest = 1000
	// warmest is hottest for writes of what is wanted of an object, between two writes of others: controllers act on
	// each of them, which takes real time.
	warmest = 100
	// stormiest is how many events the operator may record about an object within an hour. More give an API server and
	// its readers no rest.
	stormiest = 1000
)

// loops counts what the operator writes within a minute.
type loops struct {
	since time.Time
	// made has all writes, and wanted those since others wrote that change what is wanted of an object.
	made, wanted map[written]int
	// requests has how often another request for an object was asked for, by the text for the object.
	requests tally
	// events has how many there were about an object.
	events tally
}

// tally counts what happens within a time.
type tally struct {
	since time.Time
	made  map[string]int
}

// add counts, and returns how often it did within the time.
func (t *tally) add(key string, now time.Time, within time.Duration) int {
	if t.made == nil || now.Sub(t.since) >= within {
		t.since, t.made = now, map[string]int{}
	}
	t.made[key]++
	return t.made[key]
}

// writes counts a write. It returns how many of its kind there were if these are too many, and else 0.
func (l *loops) writes(w Write) int {
	if l.made == nil || w.Time.Sub(l.since) >= time.Minute {
		l.since, l.made, l.wanted = w.Time, map[written]int{}, map[written]int{}
	}
	key := newWritten(w)
	l.made[key]++
	if w.before != nil && w.after != nil && w.before.Generation != w.after.Generation {
		l.wanted[key]++
	}
	switch {
	case l.wanted[key] == warmest:
		return warmest
	case l.made[key] == hottest:
		return hottest
	}
	return 0
}

// others has others write.
func (l *loops) others() { clear(l.wanted) }

// requeued is told of each request that a reconciler of the operator asks for, with the delay in words, if it has one.
// The story fails if there are too many within a minute: time hardly passes then, and no write shows it.
func (w *World) requeued(actor, object, delay string) {
	w.mu.Lock()
	n := w.loops.requests.add(actor+" "+object, time.Now(), time.Minute)
	w.mu.Unlock()
	if n == hottest {
		text := fmt.Sprintf("%s does not come to rest: it asked for another request for %s %d times within a minute",
			actor, object, n)
		if delay != "" {
			text += ", the last time " + delay
		}
		w.abort(text)
	}
}

// recorded is told of each event that the operator writes. The story fails if there are too many within an hour.
func (w *World) recorded(made journal.Write) {
	if made.After == nil {
		return
	}
	event := made.After.Fields()
	about, ok := event["involvedObject"].(map[string]any)
	if !ok {
		about, _ = event["regarding"].(map[string]any)
	}
	text := func(from map[string]any, field string) string {
		value, _ := from[field].(string)
		return value
	}
	object := text(about, "kind") + " " + strings.TrimPrefix(text(about, "namespace")+"/"+text(about, "name"), "/")
	w.mu.Lock()
	n := w.loops.events.add(made.Actor+" "+object, made.At, time.Hour)
	w.mu.Unlock()
	if n == stormiest {
		w.abort(fmt.Sprintf("%s recorded %d events about %s within an hour, the last one: %s %s: %s", made.Actor, n,
			object, text(event, "type"), text(event, "reason"), text(event, "message")+text(event, "note")))
	}
}
