package store

// CollectGarbage does what the controllers of the control plane do in the end: it deletes dependents whose owners are
// gone, ends foreground and orphan deletions, empties and removes terminating namespaces, and deletes the instances of
// definitions that are being deleted. It reports whether something changed. An object with a finalizer stays.
func (s *Store) CollectGarbage() (changed bool) { panic("TODO") }
