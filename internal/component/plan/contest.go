package plan

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/message"
)

// Repetition counts how often a thing is done that should be done once. The zero value is never.
//
// The first times it is done at once. If it is done for the same subject again and again, or too often for any, it is
// persistent: from then on it is done after a delay, which doubles each time. It stays persistent until it was not
// necessary for as long as the delay, and for a quiet time at least. It is then forgotten.
type Repetition struct {
	// Count is how often it was done. Same is how often it was done in a row for the last subject, which is Subject.
	Count, Same int
	Subject     string
	// Persistent reports whether it is done after a delay, and Delayed is how often it was.
	Persistent bool
	Delayed    int
	// Last is when it was done last.
	Last time.Time
}

// Corrections is what is known of the corrections of one object. A correction is a write that undoes what another
// client has done to the object. The subject is what is undone. An object whose corrections are persistent is
// contested: another client keeps changing it. The zero value is none.
type Corrections struct {
	Repetition
	// Digest is the digest of the desired object. Corrections do not count for any other desired object.
	Digest string
	// Reason is the reason of the last one.
	Reason string
	// Writers says who made the corrections necessary. It is not known before the object is contested.
	Writers Writers
}

// Writers are the other clients that change a contested object, and what they change.
type Writers struct {
	// Managers are the names of field managers, sorted. There are none if they are not known.
	Managers []string
	// Fields are the paths of the fields, such as .data.key. There are none if they are not known.
	Fields []string
	// Pointers are JSON pointers to these fields. There are none unless ignoring all of them would end the contest.
	Pointers []string
}

const (
	// immediate is how often a thing is done for one subject without a delay, and corrections how often an object is
	// corrected without one: five edits by hand are no fight.
	immediate, corrections = 3, 6
	// firstDelay is the time from the last of these times to the next one. It doubles each time, up to longestDelay.
	// Each correction is one write, or two if the status of the component changes; the first adoption of an object is
	// recorded before, by another one. With these numbers there are at most 10 writes in the first minute, and then at
	// most one a minute on average.
	firstDelay   = 20 * time.Second
	longestDelay = 8 * firstDelay
	// quietTime is how long a thing must not be necessary before it is forgotten.
	quietTime = time.Minute
	// namedFields is how many fields, and how many managers, a message names.
	namedFields = 3
)

// delay is how long after the last time it is done again.
func (r *Repetition) delay() time.Duration {
	if !r.Persistent {
		return 0
	}
	return min(firstDelay<<min(r.Delayed, 8), longestDelay)
}

// Due is when it may be done again.
func (r *Repetition) Due() time.Time { return r.Last.Add(r.delay()) }

// QuietAt is when it is forgotten if it is not done again.
func (r *Repetition) QuietAt() time.Time { return r.Last.Add(max(quietTime, r.delay())) }

// Forgotten reports whether it does not count any more, provided that it is not necessary now.
func (r *Repetition) Forgotten(now time.Time) bool { return !now.Before(r.QuietAt()) }

// Again returns what is known after it was done once more. It is done without a delay ofAny times for any subject.
func (r Repetition) Again(subject string, now time.Time, ofAny int) Repetition {
	if !r.Persistent && r.Forgotten(now) {
		r = Repetition{}
	}
	if r.Subject != subject {
		r.Same = 0
	}
	r.Count++
	r.Same++
	r.Last, r.Subject = now, subject
	if r.Persistent {
		r.Delayed++
	}
	r.Persistent = r.Persistent || r.Same >= immediate || r.Count >= ofAny
	return r
}

// After returns what is known after another correction.
func (c Corrections) After(o Operation, digest string, now time.Time) Corrections {
	if c.Digest != digest || !c.Persistent && c.Forgotten(now) {
		c = Corrections{Digest: digest}
	}
	c.Repetition, c.Reason = c.Again(o.Undoes, now, corrections), o.Reason
	return c
}

// Futile returns what is known after a correction that had no effect: the object was not as desired in the answer.
func (c Corrections) Futile() Corrections {
	c.Persistent = true
	return c
}

// corrects reports whether a write for that reason undoes what another client has done.
func corrects(reason string) bool {
	switch reason {
	case reasonMissing, reasonUnlabelled, reasonUnknown, reasonDrift, reasonContent:
		return true
	}
	// Where an object of ours was, there is another one.
	return strings.HasPrefix(reason, reasonExists)
}

// isCorrection reports whether the action of the item undoes what another client has done.
func (it *item) isCorrection() bool {
	return it.state == stateAct && it.desired != nil && !it.unwritten && corrects(it.reason)
}

// undoes identifies what the action of the item undoes. It is empty if that is nothing. The same fields that were lost
// leave us the same fields.
func (it *item) undoes() string {
	if !it.isCorrection() {
		return ""
	}
	return it.reason + " " + it.observed.Fields
}

// contest puts off the correction of an object that is contested, and makes the object an obstacle. A wave does not
// wait for it, since it might have to wait for ever.
func (b *builder) contest(it *item) {
	c, known := b.in.Corrections[it.key]
	switch {
	case !known, !c.Persistent, c.Digest != it.desired.Digest:
		return
	case it.unwritten, it.failed, it.observed.Presence == PresenceUnknown, it.observed.TypeMissing:
		return
	case it.state == stateHeld, it.state == stateNotOurs, it.state == stateAct && !it.isCorrection():
		return
	}
	next := c.QuietAt()
	if it.state == stateAct {
		next = c.Due()
	}
	if !b.in.Now.Before(next) {
		return
	}
	b.plan.Recheck = earlier(b.plan.Recheck, next)
	// The record is the same before and after a correction, so that corrections do not write the inventory.
	it.record.Phase, it.record.Generation = apis.PhaseUpdating, 0
	it.setState(stateContested, apis.ObjectFailed, c.message(it.desired.Owners))
}

// message says who keeps changing what, and what would end it. owners are those of the manifest.
func (c *Corrections) message(owners string) string {
	writers := &c.Writers
	who := "another client or a webhook"
	if names := quoted(writers.Managers); len(names) > 0 {
		who = "the field manager " + message.List(names, namedFields)
	}
	switch {
	case c.Reason == reasonMissing && owners != "":
		return "it keeps being deleted, by the garbage collector if an owner that its manifest names does not exist: " +
			owners
	case c.Reason == reasonMissing:
		return "another client keeps deleting it"
	case strings.HasPrefix(c.Reason, reasonExists):
		return "another client keeps replacing it by another object"
	case c.Reason == reasonUnlabelled:
		return "another client or a webhook keeps removing its owner label"
	case len(writers.Fields) == 0:
		return who + " keeps changing it"
	}
	text := fmt.Sprintf("%s keeps changing %s", who, message.List(writers.Fields, namedFields))
	if len(writers.Pointers) > 0 {
		pointers := strings.Join(writers.Pointers[:min(len(writers.Pointers), namedFields)], ",")
		if len(writers.Pointers) > namedFields {
			pointers += ",..."
		}
		text += fmt.Sprintf(" (ignore-fields: %s, or reconcile-policy: once would allow that)", pointers)
	}
	return text
}

func quoted(names []string) []string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = strconv.Quote(name)
	}
	return all
}
