// Package few has a map for what has one key in most cases: a map of Go takes room for eight.
package few

import "iter"

// Map is a map that keeps its first key beside the others. The zero value is empty. It is not safe for concurrent use.
type Map[Key comparable, Value any] struct {
	first    Value
	firstKey Key
	hasFirst bool
	others   map[Key]Value
}

// Get returns the value of a key, and false if there is none.
func (m *Map[Key, Value]) Get(key Key) (Value, bool) {
	if m.hasFirst && m.firstKey == key {
		return m.first, true
	}
	value, ok := m.others[key]
	return value, ok
}

// Put sets the value of a key.
func (m *Map[Key, Value]) Put(key Key, value Value) {
	_, isOther := m.others[key]
	if !isOther && (!m.hasFirst || m.firstKey == key) {
		m.first, m.firstKey, m.hasFirst = value, key, true
		return
	}
	if m.others == nil {
		m.others = map[Key]Value{}
	}
	m.others[key] = value
}

// Remove removes a key.
func (m *Map[Key, Value]) Remove(key Key) {
	if m.hasFirst && m.firstKey == key {
		*m = Map[Key, Value]{others: m.others}
	}
	delete(m.others, key)
}

// Len returns the number of keys.
func (m *Map[Key, Value]) Len() int {
	if m.hasFirst {
		return len(m.others) + 1
	}
	return len(m.others)
}

// All returns what there is. The map may be changed meanwhile.
func (m *Map[Key, Value]) All() iter.Seq2[Key, Value] {
	return func(yield func(Key, Value) bool) {
		if m.hasFirst && !yield(m.firstKey, m.first) {
			return
		}
		for key, value := range m.others {
			if !yield(key, value) {
				return
			}
		}
	}
}
