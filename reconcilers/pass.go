package reconcilers

import (
	"context"
	"reflect"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pass is the state of one request of a root: what its nodes found out that others may use, and where what failed.
type pass struct {
	// memory is what the root remembers of the resource from request to request.
	memory *memory

	mu       sync.Mutex
	failures []failure
	families map[familyKey]*family
	// ownerRef refers to owner, the resource whose children were made last.
	owner    ownerIdentity
	ownerRef metav1.OwnerReference
}

// failure is an error at the node that met it first.
type failure struct {
	err    error
	path   string
	object string
}

// fail notes that err came up at the node of p while it dealt with object. The first note of an error stays: the deepest
// node knows best.
func (p *pass) fail(at *position, object string, err error) {
	if p == nil || err == nil || !comparableError(err) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.failures {
		if f.err == err {
			return
		}
	}
	p.failures = append(p.failures, failure{err: err, path: at.String(), object: object})
}

// locate finds where err, or the first of the errors that it wraps or joins, came up.
func (p *pass) locate(err error) (failure, bool) {
	if p == nil || err == nil {
		return failure{}, false
	}
	if comparableError(err) {
		for _, f := range p.failures {
			if f.err == err {
				return f, true
			}
		}
	}
	switch wrapper := err.(type) {
	case interface{ Unwrap() error }:
		return p.locate(wrapper.Unwrap())
	case interface{ Unwrap() []error }:
		for _, member := range wrapper.Unwrap() {
			if f, ok := p.locate(member); ok {
				return f, true
			}
		}
	}
	return failure{}, false
}

// comparableError guards == on errors, which panics for an error value that holds a slice or a map.
func comparableError(err error) bool {
	return reflect.ValueOf(err).Comparable()
}

// memory is what a root remembers of one resource, for as long as the resource exists. It only ever saves work: a node that
// finds nothing in it does the same, with more reads.
type memory struct {
	mu     sync.Mutex
	uid    types.UID
	values map[any]any
}

// recall returns the value that a node keeps under key, made by empty at the first call.
func recall[T any](m *memory, key any, empty func() T) T {
	m.mu.Lock()
	defer m.mu.Unlock()
	if value, ok := m.values[key].(T); ok {
		return value
	}
	value := empty()
	if m.values == nil {
		m.values = map[any]any{}
	}
	m.values[key] = value
	return value
}

// sweeper is a value in a memory that can tell what of it is still used.
type sweeper interface {
	// sweep drops what was not used since the last sweep, and tells whether anything is left.
	sweep() bool
}

// sweep drops what the request did not use. It is called when the whole tree has run.
func (m *memory) sweep() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, value := range m.values {
		if s, ok := value.(sweeper); ok && !s.sweep() {
			delete(m.values, key)
		}
	}
}

// memories are those of all resources of a root.
type memories struct {
	mu sync.Mutex
	by map[types.NamespacedName]*memory
}

// of returns the memory of resource. A resource of the same name with another UID starts with an empty one.
func (m *memories) of(resource client.Object) *memory {
	key := client.ObjectKeyFromObject(resource)
	m.mu.Lock()
	defer m.mu.Unlock()
	if known, ok := m.by[key]; ok && known.uid == resource.GetUID() {
		return known
	}
	if m.by == nil {
		m.by = map[types.NamespacedName]*memory{}
	}
	fresh := &memory{uid: resource.GetUID()}
	m.by[key] = fresh
	return fresh
}

// forget drops the memory of a resource that is gone.
func (m *memories) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.by, key)
}

// noteFailure is [pass.fail] at the node of ctx.
func noteFailure(ctx context.Context, object string, err error) {
	scopeOf(ctx).pass.fail(positionOf(ctx), object, err)
}
