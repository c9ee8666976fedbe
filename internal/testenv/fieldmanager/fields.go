package fieldmanager

import (
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Fields are the managed fields of one version of an object. They never change. They are computed when they are wanted
// first. Nil has none.
type Fields struct {
	once sync.Once
	// pending is nil once value is computed.
	pending atomic.Pointer[update]
	value   managed
	entries func() []metav1.ManagedFieldsEntry
}

// update is a write whose managed fields have not been computed.
type update struct {
	manager    *Manager
	live, next client.Object
	fields     *Fields
	write      Write
}

func computedFields(value managed) *Fields {
	if len(value.fields) == 0 {
		return nil
	}
	return &Fields{value: value, entries: sync.OnceValue(value.encode)}
}

func pendingFields(u *update) *Fields {
	f := &Fields{}
	f.entries = sync.OnceValue(func() []metav1.ManagedFieldsEntry { return f.managed().encode() })
	f.pending.Store(u)
	return f
}

// Decode returns the managed fields of an object that has these entries. An empty list has none, which is nil. The error
// says what is invalid.
func Decode(entries []metav1.ManagedFieldsEntry) (*Fields, error) {
	value, err := decode(entries)
	if err != nil {
		return nil, err
	}
	return computedFields(value), nil
}

// Entries returns the managed fields as an object has them, in the order of an API server, or nil if there are none. They
// must not be changed.
func (f *Fields) Entries() []metav1.ManagedFieldsEntry {
	if f == nil {
		return nil
	}
	return f.entries()
}

// SameOwners reports whether two managed fields differ in their times at most. An API server does not store an object
// that differs from the stored one in nothing else.
func (f *Fields) SameOwners(other *Fields) bool {
	return f == other || sameOwners(f.Entries(), other.Entries())
}

func sameOwners(a, b []metav1.ManagedFieldsEntry) bool {
	return slices.EqualFunc(a, b, func(a, b metav1.ManagedFieldsEntry) bool {
		a.Time, b.Time = nil, nil
		return equality.Semantic.DeepEqual(a, b)
	})
}

// unless returns f if it has the same managed fields, and new ones if not.
func (f *Fields) unless(value managed) *Fields {
	if before := f.managed(); before.fields.Equals(value.fields) && reflect.DeepEqual(before.times, value.times) {
		return f
	}
	return computedFields(value)
}

// managed computes what is pending, from the oldest write to the newest: a history can be longer than a stack is deep.
func (f *Fields) managed() managed {
	if f == nil {
		return managed{}
	}
	var history []*Fields
	for next := f; next != nil; {
		u := next.pending.Load()
		if u == nil {
			break
		}
		history = append(history, next)
		next = u.fields
	}
	for _, fields := range slices.Backward(history) {
		fields.once.Do(fields.compute)
	}
	return f.value
}

func (f *Fields) compute() {
	u := f.pending.Load()
	f.value = u.managed()
	f.pending.Store(nil)
}

// managed returns the managed fields after the update.
func (u *update) managed() managed {
	before := u.before()
	if len(before.fields) == 0 && untracked(u.live) {
		return before
	}
	if after, err := u.manager.updated(u.live, u.next, before, u.write); err == nil {
		return after
	}
	return u.fields.managed()
}

// before returns the managed fields that the update starts from.
func (u *update) before() managed {
	sent := u.write.Sent
	switch {
	case sent == nil || u.write.Subresource != "":
		return u.fields.managed()
	case len(sent) == 0 || len(sent) == 1 && reflect.ValueOf(sent[0]).IsZero():
		return managed{}
	case sameEntries(sent, u.fields.Entries()):
		return u.fields.managed()
	}
	if value, err := decode(sent); err == nil {
		return value
	}
	return u.fields.managed()
}

func sameEntries(a, b []metav1.ManagedFieldsEntry) bool {
	return len(a) == len(b) && equality.Semantic.DeepEqual(a, b)
}
