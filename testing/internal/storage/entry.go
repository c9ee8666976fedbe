package storage

import (
	"bytes"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Entry is what a key holds since a write: an encoded object without a resource version. It is not changed.
type Entry struct {
	Key string
	// Value is the object. It is nil in [Options].Written if the key was deleted.
	Value []byte
	// Revision is that of the write.
	Revision int64
	// Expires is zero for an entry that stays until it is deleted.
	Expires time.Time
	// Given says that the object was given, see [Storage.Give], whether or not it was updated since.
	Given bool
	// Show decodes the value into an object for who reads or watches it. An unstructured object has the kind and the
	// version to decode to. Nil is the codec of the resource, which may complete what it decodes. Who updates or
	// deletes the object gets it from the codec in any case.
	Show func(value []byte, into runtime.Object) error

	// read and watched are what was decoded for a reader and for a watch; nil is nothing yet.
	read, watched atomic.Pointer[decoded]
	// derived is what [Entry.Derived] keeps.
	derived atomic.Pointer[derived]
}

// Object returns what was last decoded of the entry for a reader, with the resource version; nil if nothing was. It
// must not be changed.
func (e *Entry) Object() runtime.Object {
	if d := e.read.Load(); d != nil {
		return d.object
	}
	return nil
}

// Same reports whether a reader gets the same of two entries of one key; nil is a key that holds nothing.
func (e *Entry) Same(other *Entry) bool {
	if e == other || e == nil || other == nil {
		return e == other
	}
	return e.Revision == other.Revision && e.Given == other.Given && bytes.Equal(e.Value, other.Value)
}

// derived is what somebody has made of an entry, and what others have.
type derived struct {
	by, value any
	others    *derived
}

// maxDerived is how many owners an entry keeps values for.
const maxDerived = 4

// Derived returns what derive returned when it was first called for the entry by the same owner. It is kept until
// several other owners have asked. Derive may be called several times, side by side.
func (e *Entry) Derived(owner any, derive func() any) any {
	kept, n := e.derived.Load(), 0
	for d := kept; d != nil; d = d.others {
		if d.by == owner {
			return d.value
		}
		n++
	}
	if n >= maxDerived {
		kept = nil
	}
	d := &derived{by: owner, value: derive(), others: kept}
	e.derived.Store(d)
	return d.value
}

// decoded is an object that is not changed any more, and is copied for whom it is returned to.
type decoded struct {
	by *codec
	// as is the kind of the object that was decoded into, before that.
	as     schema.GroupVersionKind
	object runtime.Object
}

// is reports whether a codec would decode the same again.
func (d *decoded) is(by *codec, as schema.GroupVersionKind) bool {
	return d != nil && d.by == by && d.as == as
}

// revisionOrZero returns 0 for nil, which is a key that holds nothing.
func (e *Entry) revisionOrZero() int64 {
	if e == nil {
		return 0
	}
	return e.Revision
}

// change is what one revision did to one key.
type change struct {
	revision int64
	at       time.Time
	// before is nil if the change created the key, after if it deleted the key.
	before, after *Entry
	// writer is what [As] says of the write; empty if nothing.
	writer string
}

func (c change) key() string {
	if c.after != nil {
		return c.after.Key
	}
	return c.before.Key
}

// write asks to replace what a key holds.
type write struct {
	key string
	// expected is the revision of the entry to replace, 0 if the key must hold nothing.
	expected int64
	// value is the new one, nil to delete the key.
	value []byte
	// expires is when the key is deleted again, zero for never.
	expires time.Time
	// writer is what [As] says of the write; empty if nothing.
	writer string
}
