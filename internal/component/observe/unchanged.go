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
	if !s.settled && s.isSettled(c.Now, w.options.Poll) {
		s.settled = true
		s.shrink()
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
		believed, _ := e.latest(now) // drops a response that does not count any more
		if e.typ.phase != live || e.deletion != nil || e.failure != nil || !e.responseLasts() ||
			e.purpose(believed, now, poll) != noRead {
			return false
		}
	}
	return true
}

// shrink forgets what is not needed while the component is settled: what its own requests returned before the watch has
// shown it.
func (s *componentState) shrink() {
	s.pending = map[*entry]struct{}{}
	for _, e := range s.entries {
		if e.slot == nil {
			continue
		}
		shown := e.slot.shown
		if e.fieldsOf != shown {
			e.fields, e.fieldsOf = "", nil
		}
		if shown != nil && shown.uid == e.uid {
			e.uid = shown.uid
		}
	}
}

// responseLasts reports whether the response, if there is one, counts until there is news: there is no such object, and
// the watch shows none.
func (e *entry) responseLasts() bool {
	return e.response == nil || e.response.snapshot == nil && e.slot.shown == nil
}
