package inventory

import "github.com/espalier-dev/espalier/internal/digest"

// Version implements [Store]. It is a digest of the records in the status.
func (s *Status) Version() uint64 {
	sum, known := digest.Of(s.status.Inventory)
	if !known {
		return 0
	}
	return sum | 1
}

// Version implements [Store]. It counts how often the store has read and written.
func (s *Objects) Version() uint64 {
	if !s.known {
		return 0
	}
	return s.version
}

// Version implements [Store]. Nothing is known as long as records move.
func (m *Move) Version() uint64 { return 0 }
