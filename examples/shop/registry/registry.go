// Package registry is what the shop operator knows of the registry of hosts, which is outside the cluster: each host
// belongs to one owner.
package registry

import (
	"context"
	"fmt"
	"sync"
)

// Registry registers hosts. Its methods are idempotent and safe for concurrent use.
type Registry interface {
	// Register registers a host for an owner, and releases any other host of that owner. The host of somebody else
	// stays as it is; the error is a *TakenError then.
	Register(ctx context.Context, owner, host string) error
	// Unregister releases the host of an owner. It is no error if there is none.
	Unregister(ctx context.Context, owner string) error
}

// TakenError says that a host belongs to somebody else.
type TakenError struct {
	Host, Owner string
}

// Error names the host and its owner.
func (e *TakenError) Error() string { return fmt.Sprintf("the host %s belongs to %s", e.Host, e.Owner) }

// Memory is a registry in the memory of this process. The zero value is empty.
type Memory struct {
	mu    sync.Mutex
	hosts map[string]string
	err   error
	calls int
}

var _ Registry = (*Memory)(nil)

// Register registers a host for an owner.
func (m *Memory) Register(_ context.Context, owner, host string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	if m.err != nil {
		return m.err
	}
	for other, taken := range m.hosts {
		if taken == host && other != owner {
			return &TakenError{Host: host, Owner: other}
		}
	}
	if m.hosts == nil {
		m.hosts = map[string]string{}
	}
	m.hosts[owner] = host
	return nil
}

// Unregister releases the host of an owner.
func (m *Memory) Unregister(_ context.Context, owner string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	if m.err != nil {
		return m.err
	}
	delete(m.hosts, owner)
	return nil
}

// Fail has all calls fail with an error from now on. Nil ends that.
func (m *Memory) Fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

// HostOf returns the host of an owner, or an empty string.
func (m *Memory) HostOf(owner string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.hosts[owner]
}

// Calls returns how often the registry was called.
func (m *Memory) Calls() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls
}
