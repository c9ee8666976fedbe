package inventory

// Stale is how many chunks have records that another chunk has newer.
func (s *Objects) Stale() int { return len(s.stale) }

// Unlisted is how many chunks there are that the root does not list.
func (s *Objects) Unlisted() int { return len(s.metas) - len(s.listed) }

// Generation is that of the last save that is known.
func (s *Objects) Generation() int64 { return s.generation }
