package tracker

// renewLease lets an interest expire one lease from now.
func (s *store) renewLease(i *interest) {
	if s.lease <= 0 {
		return
	}
	i.expires = s.now().Add(s.lease)
	if i.leased == nil {
		i.leased = s.leases.PushBack(i)
	} else {
		s.leases.MoveToBack(i.leased)
	}
}

// endLease lets an interest last until it is dropped.
func (s *store) endLease(i *interest) {
	if i.leased != nil {
		s.leases.Remove(i.leased)
		i.leased = nil
	}
}

// expire drops all interests whose lease has ended. Every access to the store begins with it, so that an expired
// interest is freed even if there is never again an event for its object. Each interest is dropped once.
func (s *store) expire() {
	if s.leases.Len() == 0 {
		return
	}
	now := s.now()
	for front := s.leases.Front(); front != nil; front = s.leases.Front() {
		i, ok := front.Value.(*interest)
		if !ok || !now.After(i.expires) {
			return
		}
		s.drop(i)
		s.release(i.watcher)
	}
}
