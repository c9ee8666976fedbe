package directory

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
)

var _ Directory = (*Memory)(nil)

// Memory is a directory in memory: it forgets everything when the program ends. The zero value is empty and ready to
// use.
type Memory struct {
	mu      sync.Mutex
	outage  bool
	records map[string]*record
}

// record is all that is known of a tenant.
type record struct {
	entry   Entry
	members map[Member]struct{}
}

// SetOutage makes the directory refuse all requests, or answer them again. What it has stays, and can still be looked
// up by [Memory.Lookup].
func (m *Memory) SetOutage(outage bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.outage = outage
}

// Register implements [Directory].
func (m *Memory) Register(_ context.Context, entry Entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, ok := m.records[entry.Tenant]
	switch {
	case m.outage:
		return ErrUnavailable
	case !ok:
		known = &record{members: map[Member]struct{}{}}
	case known.entry.UID != entry.UID:
		return ErrTaken
	}
	known.entry = entry
	if m.records == nil {
		m.records = map[string]*record{}
	}
	m.records[entry.Tenant] = known
	return nil
}

// Unregister implements [Directory].
func (m *Memory) Unregister(_ context.Context, tenant, uid string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.outage {
		return ErrUnavailable
	}
	if known, ok := m.records[tenant]; ok && known.entry.UID == uid {
		delete(m.records, tenant)
	}
	return nil
}

// Members implements [Directory].
func (m *Memory) Members(_ context.Context, tenant, uid string) ([]Member, error) {
	var members []Member
	err := m.withMembers(tenant, uid, func(known map[Member]struct{}) { members = sorted(known) })
	return members, err
}

// Join implements [Directory].
func (m *Memory) Join(_ context.Context, tenant, uid string, member Member) error {
	return m.withMembers(tenant, uid, func(known map[Member]struct{}) { known[member] = struct{}{} })
}

// Leave implements [Directory].
func (m *Memory) Leave(_ context.Context, tenant, uid string, member Member) error {
	return m.withMembers(tenant, uid, func(known map[Member]struct{}) { delete(known, member) })
}

func (m *Memory) withMembers(tenant, uid string, do func(map[Member]struct{})) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, ok := m.records[tenant]
	switch {
	case m.outage:
		return ErrUnavailable
	case !ok || known.entry.UID != uid:
		return ErrNotListed
	}
	do(known.members)
	return nil
}

// Lookup returns the entry of a tenant with its members, and whether there is one.
func (m *Memory) Lookup(tenant string) (Entry, []Member, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, ok := m.records[tenant]
	if !ok {
		return Entry{}, nil, false
	}
	return known.entry, sorted(known.members), true
}

func sorted(members map[Member]struct{}) []Member {
	return slices.SortedFunc(maps.Keys(members), func(a, b Member) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
}
