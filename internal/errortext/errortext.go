// Package errortext keeps the text of an error in a condition from changing in each request.
package errortext

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// interval is how long a text stays in the condition, if only the text changes. A text that differs in each request
// would wake the controller for ever.
const interval = time.Minute

// Text is when the text of one condition changed last. The zero value is ready for use.
type Text struct {
	changed time.Time
}

// Next returns the message for a condition that was previous, nil if there was none: its own, or that of previous if
// only the message differs in this generation of the resource, and has changed less than a minute ago.
func (t *Text) Next(previous *metav1.Condition, condition metav1.Condition, generation int64, now time.Time) string {
	sameError := previous != nil && previous.Status == condition.Status && previous.Reason == condition.Reason &&
		previous.ObservedGeneration == generation
	switch {
	case sameError && previous.Message == condition.Message:
	case sameError && now.Sub(t.changed) < interval:
		return previous.Message
	default:
		t.changed = now
	}
	return condition.Message
}

// Evict reports whether nothing is left to remember, see resourcestate.Evictor.
func (t *Text) Evict(now time.Time) (empty bool) {
	return now.Sub(t.changed) >= interval
}
