// Package registry is what the mirror operator knows of the registry of mirrors, which is outside the cluster, and
// takes its time.
package registry

import (
	"context"
	"errors"
	"maps"
	"sync"
)

// ErrPending says that the registry needs more time.
var ErrPending = errors.New("the registry has not confirmed it yet")

// Registry registers mirrors. Its methods are idempotent and safe for concurrent use. They return [ErrPending] until
// what was asked for is done.
type Registry interface {
	// Register has users of a site sent to a mirror.
	Register(ctx context.Context, mirror, upstream string) error
	// Unregister undoes that. It is no error if there is nothing to undo.
	Unregister(ctx context.Context, mirror string) error
}

// Memory is a registry in the memory of this process, which confirms at the second call. The zero value is empty.
type Memory struct {
	mu sync.Mutex
	// sites are those of mirrors, and asked is what was asked for of a mirror but not confirmed.
	sites, asked map[string]string
	calls        int
}

var _ Registry = (*Memory)(nil)

// Register registers a mirror.
func (m *Memory) Register(_ context.Context, mirror, upstream string) error {
	return m.confirm(mirror, upstream)
}

// Unregister forgets a mirror.
func (m *Memory) Unregister(_ context.Context, mirror string) error { return m.confirm(mirror, "") }

func (m *Memory) confirm(mirror, upstream string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	if m.sites == nil {
		m.sites, m.asked = map[string]string{}, map[string]string{}
	}
	if m.sites[mirror] == upstream {
		return nil
	}
	if asked, ok := m.asked[mirror]; !ok || asked != upstream {
		m.asked[mirror] = upstream
		return ErrPending
	}
	delete(m.asked, mirror)
	m.sites[mirror] = upstream
	if upstream == "" {
		delete(m.sites, mirror)
	}
	return nil
}

// Reset makes the registry empty.
func (m *Memory) Reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sites, m.asked = nil, nil
}

// Sites returns the sites of all mirrors.
func (m *Memory) Sites() map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.sites)
}

// Calls returns how often the registry was called.
func (m *Memory) Calls() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls
}
