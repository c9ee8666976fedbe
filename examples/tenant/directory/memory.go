package directory

import (
	"context"
	"sync"
)

var _ Directory = (*Memory)(nil)

// Memory is a directory in memory: it forgets everything when the program ends. The zero value is empty and ready to use.
type Memory struct {
	mu      sync.Mutex
	entries map[string]Entry
}

// Register implements [Directory].
func (m *Memory) Register(_ context.Context, entry Entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known, ok := m.entries[entry.Tenant]; ok && known.UID != entry.UID {
		return ErrTaken
	}
	if m.entries == nil {
		m.entries = map[string]Entry{}
	}
	m.entries[entry.Tenant] = entry
	return nil
}

// Unregister implements [Directory].
func (m *Memory) Unregister(_ context.Context, tenant, uid string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.entries[tenant].UID == uid {
		delete(m.entries, tenant)
	}
	return nil
}

// Lookup returns the entry of a tenant, and whether there is one.
func (m *Memory) Lookup(tenant string) (Entry, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	entry, ok := m.entries[tenant]
	return entry, ok
}
