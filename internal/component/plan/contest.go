package plan

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/message"
)

// Corrections is what is known of the corrections of one object. A correction is a write that undoes what another
// client has done to the object. The zero value is none.
//
// The first corrections are made at once. If the same one is needed again and again, or too many are, the object is
// contested: another client keeps changing it. It is then corrected after a delay, which doubles with each correction.
// It stays contested until it was left alone for as long as the delay, and for a quiet time at least. Corrections are
// then forgotten.
type Corrections struct {
	// Digest is the digest of the desired object. Corrections do not count for any other desired object.
	Digest string
	// Count is how many corrections there were. Same is how many the last of them were that undid the same, which is
	// Undone.
	Count, Same int
	Undone      string
	// Contested reports whether another client keeps changing the object.
	Contested bool
	// Last is the time of the last one.
	Last time.Time
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
	// immediate is how many corrections of the same are made without a delay, and immediateOfAny how many of any.
	immediate, immediateOfAny = 3, 5
	// firstDelay is the time from the third correction to the next one. It doubles with each correction, up to
	// longestDelay. Each correction is one write, or two if the status of the component changes; the first adoption of
	// an object is recorded before, by another one. With these numbers there are at most 10 writes in the first minute,
	// and then at most one a minute on average.
	firstDelay   = 20 * time.Second
	longestDelay = 8 * firstDelay
	// quietTime is how long an object has to be left alone before corrections are forgotten.
	quietTime = time.Minute
	// namedFields is how many fields, and how many managers, a message names.
	namedFields = 3
)

// delay is how long after the last correction the next one is made.
func (c *Corrections) delay() time.Duration {
	if !c.Contested {
		return 0
	}
	return min(firstDelay<<min(max(c.Count-immediate, 0), 8), longestDelay)
}

// quietUntil is when corrections are forgotten if no other one follows.
func (c *Corrections) quietUntil() time.Time { return c.Last.Add(max(quietTime, c.delay())) }

// Forgotten reports whether the corrections of an object that is as desired do not count any more.
func (c *Corrections) Forgotten(now time.Time) bool { return !now.Before(c.quietUntil()) }

// After returns what is known after another correction.
func (c Corrections) After(o Operation, digest string, now time.Time) Corrections {
	if c.Digest != digest || !c.Contested && c.Forgotten(now) {
		c = Corrections{Digest: digest}
	}
	if c.Undone != o.Undoes {
		c.Same = 0
	}
	c.Count++
	c.Same++
	c.Last, c.Reason, c.Undone = now, o.Reason, o.Undoes
	c.Contested = c.Contested || c.Same >= immediate || c.Count >= immediateOfAny
	return c
}

// Futile returns what is known after a correction that had no effect: the object was not as desired in the answer.
func (c Corrections) Futile() Corrections {
	c.Contested = true
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
	case !known, !c.Contested, c.Digest != it.desired.Digest:
		return
	case it.unwritten, it.failed, it.observed.Presence == PresenceUnknown, it.observed.TypeMissing:
		return
	case it.state == stateHeld, it.state == stateNotOurs, it.state == stateAct && !it.isCorrection():
		return
	}
	next := c.quietUntil()
	if it.state == stateAct {
		next = c.Last.Add(c.delay())
	}
	if !b.in.Now.Before(next) {
		return
	}
	if b.plan.Recheck.IsZero() || next.Before(b.plan.Recheck) {
		b.plan.Recheck = next
	}
	// The record is the same before and after a correction, so that corrections do not write the inventory.
	it.record.Phase, it.record.Generation = apis.PhaseUpdating, 0
	it.setState(stateContested, apis.ObjectFailed, c.message())
}

// message says who keeps changing what, and what would end it.
func (c *Corrections) message() string {
	writers := &c.Writers
	who := "another client or a webhook"
	if names := quoted(writers.Managers); len(names) > 0 {
		who = "the field manager " + message.List(names, namedFields)
	}
	switch {
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
