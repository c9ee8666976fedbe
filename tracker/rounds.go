package tracker

func (s *store) beginRound(key watcherKey) {
	s.mu.Lock()
	defer s.mu.Unlock()

	w := s.watcher(key)
	w.round++
	if !w.open {
		w.since = w.round
	}
	w.open = true
}

func (s *store) endRound(key watcherKey, complete bool) {
	s.mu.Lock()
	defer s.mu.Unlock()

	w, ok := s.watchers[key]
	if !ok || !w.open {
		return
	}
	w.open = false
	if complete {
		for _, i := range w.interests {
			if i.round < w.since {
				s.drop(i)
			}
		}
	}
	s.release(w)
}

func (s *store) forget(key watcherKey) {
	s.mu.Lock()
	defer s.mu.Unlock()

	w, ok := s.watchers[key]
	if !ok {
		return
	}
	for _, i := range w.interests {
		s.drop(i)
	}
	w.open = false
	s.release(w)
}
