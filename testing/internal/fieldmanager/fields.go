package fieldmanager

import (
	"reflect"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Fields are the managed fields of one version of an object. They never change. What is asked for is computed once. Nil
// has none.
type Fields struct {
	managed func() managed
	entries func() []metav1.ManagedFieldsEntry
}

// lazy returns managed fields that are computed when they are wanted first.
func lazy(compute func() managed) *Fields {
	value := sync.OnceValue(compute)
	return &Fields{value, sync.OnceValue(func() []metav1.ManagedFieldsEntry { return value().encode() })}
}

// known returns managed fields, nil if there are none.
func known(value managed) *Fields {
	if len(value.fields) == 0 {
		return nil
	}
	return &Fields{func() managed { return value }, sync.OnceValue(value.encode)}
}

// Decode returns the managed fields of an object that has these entries: nil if there are none. The error says which
// entry is invalid.
func Decode(entries []metav1.ManagedFieldsEntry) (*Fields, error) {
	value, err := decode(entries)
	if err != nil {
		return nil, err
	}
	return known(value), nil
}

// Entries returns the managed fields as an object has them, in the order of an API server, or nil if there are none.
// They must not be changed.
func (f *Fields) Entries() []metav1.ManagedFieldsEntry {
	if f == nil {
		return nil
	}
	return f.entries()
}

// SameOwners reports whether two managed fields differ in their times at most. An API server does not store an object
// that differs from the stored one in nothing else.
func (f *Fields) SameOwners(other *Fields) bool {
	return f == other || slices.EqualFunc(f.Entries(), other.Entries(), func(a, b metav1.ManagedFieldsEntry) bool {
		a.Time, b.Time = nil, nil
		return equality.Semantic.DeepEqual(a, b)
	})
}

// unless returns f if it has the same managed fields, and new ones if not.
func (f *Fields) unless(value managed) *Fields {
	if before := f.value(); before.fields.Equals(value.fields) && reflect.DeepEqual(before.times, value.times) {
		return f
	}
	return known(value)
}

func (f *Fields) value() managed {
	if f == nil {
		return managed{}
	}
	return f.managed()
}

// before returns the managed fields that an update of an object with f starts from: those that it was sent with, or f.
func (f *Fields) before(w Write) managed {
	switch {
	case w.Sent == nil || w.Subresource != "" || equality.Semantic.DeepEqual(w.Sent, f.Entries()):
		return f.value()
	case len(w.Sent) == 1 && reflect.ValueOf(w.Sent[0]).IsZero():
		return managed{}
	}
	if sent, err := decode(w.Sent); err == nil {
		return sent
	}
	return f.value()
}
