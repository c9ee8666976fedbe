package inventory

// Stale is how many chunks have records that another chunk has newer.
func (s *Objects) Stale() int { return len(s.stale) }
