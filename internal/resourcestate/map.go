package resourcestate

import (
	"sync"
	"time"
)

// maxIdleRequests is for how many requests in a row an entry may go unused before it is dropped. An error or a halt keeps a
// request from using all of them, and the next requests use them again.
const maxIdleRequests = 64

// Map is a table of entries of one resource. An entry that is not used in 64 requests in a row is dropped: its object is gone,
// or not managed by the tree any more. It is safe for concurrent use.
type Map[K comparable, V any] struct {
	mu      sync.Mutex
	entries map[K]mapEntry[V]
	limit   int
	request uint64
}

type mapEntry[V any] struct {
	value V
	used  uint64
}

// NewMap returns an empty table. A table that is not part of a [State] hears of no requests; limit bounds it: when it has more
// entries, it drops all but the newest. Zero means no limit.
func NewMap[K comparable, V any](limit int) *Map[K, V] {
	return &Map[K, V]{entries: map[K]mapEntry[V]{}, limit: limit}
}

// Get returns the value of an entry, or the zero value.
func (m *Map[K, V]) Get(key K) V {
	m.mu.Lock()
	defer m.mu.Unlock()
	entry, ok := m.entries[key]
	if ok && entry.used != m.request {
		entry.used = m.request
		m.entries[key] = entry
	}
	return entry.value
}

// Put stores an entry.
func (m *Map[K, V]) Put(key K, value V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.limit > 0 && len(m.entries) >= m.limit {
		clear(m.entries)
	}
	m.entries[key] = mapEntry[V]{value: value, used: m.request}
}

// Delete drops an entry.
func (m *Map[K, V]) Delete(key K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.entries, key)
}

// Len returns the number of entries.
func (m *Map[K, V]) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.entries)
}

func (m *Map[K, V]) evict(time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, entry := range m.entries {
		if m.request-entry.used > maxIdleRequests {
			delete(m.entries, key)
		}
	}
	m.request++
	return len(m.entries) == 0
}
