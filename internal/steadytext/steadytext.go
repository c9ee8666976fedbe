// Package steadytext keeps a text in the status of a resource from changing in each request.
package steadytext

import "time"

const (
	// interval is how long a text stays, if only the text changes. A text that differs in each request would wake the
	// controller for ever.
	interval = time.Minute
	// atOnce is how many texts are shown at once after something besides the text has changed: a user who looks then
	// sees the newest one.
	atOnce = 3
	// longest is the longest delay until a text that is not shown yet is asked for again.
	longest = 10 * interval
)

// Text is when one text changed last. The zero value is ready for use.
type Text struct {
	changed time.Time
	// passed counts the texts that were shown at once.
	passed int
	// delay is the time from the last change to the request that shows the next text. It is zero if no text waits.
	delay time.Duration
}

// Next returns the text to show. Shown is the text in the status; nil if something besides the text changes, so that
// the text is shown at once. Text is the newest text. If Next returns shown although text differs, the request has to
// be repeated after again. Text is then shown: of a text that alone changes, the first three changes are shown at once,
// and the others at most once a minute. Each time that it differs again, the delay doubles, up to ten minutes.
func (t *Text) Next(shown *string, text string, now time.Time) (next string, again time.Duration) {
	switch {
	case shown == nil:
		*t = Text{changed: now}
	case *shown == text:
		t.delay = 0
	case t.passed < atOnce:
		t.changed = now
		t.passed++
	case now.Sub(t.changed) >= interval:
		t.changed = now
		t.delay = min(2*t.delay, longest)
	default:
		t.delay = max(t.delay, interval)
		return *shown, t.changed.Add(t.delay).Sub(now)
	}
	return text, 0
}

// Evict reports whether nothing is left to remember, see resourcestate.Evictor.
func (t *Text) Evict(now time.Time) (empty bool) {
	return now.Sub(t.changed) >= max(interval, 2*t.delay)
}
