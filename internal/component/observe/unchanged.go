package observe

import "time"

// Unchanged implements [Observer]. It looks at all entries once, and then not again until something happens.
func (w *Watching) Unchanged(c Component) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.lookUp(&c)
	if w.stopped || s == nil || !s.observed || len(s.pending) > 0 || s.pendingLow {
		return false
	}
	if !s.settled {
		s.settled = s.isSettled(c.Now, w.options.Poll)
	}
	return s.settled
}

// Unchanged implements [Observer]. Only a request shows whether anything has changed.
func (d *Direct) Unchanged(Component) bool { return false }

// isSettled reports whether what is believed of all objects is what watches show, and stays so until there is news.
func (s *componentState) isSettled(now time.Time, poll time.Duration) bool {
	for _, e := range s.entries {
		if e.slot == nil {
			// Two entries of one object may end together.
			continue
		}
		if e.typ.phase != live || e.deletion != nil || e.failure != nil || !e.responseLasts() {
			return false
		}
		believed, _ := e.latest(now)
		if e.purpose(believed, now, poll) != noRead {
			return false
		}
	}
	return true
}

// responseLasts reports whether the response, if there is one, counts until there is news: there is no such object, and
// the watch shows none.
func (e *entry) responseLasts() bool {
	return e.response == nil || e.response.snapshot == nil && e.slot.shown == nil
}
