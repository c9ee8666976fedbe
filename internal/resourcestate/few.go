package resourcestate

import "iter"

// few is a map for what has one key in most cases: a map of Go takes room for eight. The zero value is empty.
type few[Key comparable, Value any] struct {
	first    Value
	firstKey Key
	hasFirst bool
	others   map[Key]Value
}

func (f *few[Key, Value]) get(key Key) (Value, bool) {
	if f.hasFirst && f.firstKey == key {
		return f.first, true
	}
	value, ok := f.others[key]
	return value, ok
}

func (f *few[Key, Value]) put(key Key, value Value) {
	_, isOther := f.others[key]
	if !isOther && (!f.hasFirst || f.firstKey == key) {
		f.first, f.firstKey, f.hasFirst = value, key, true
		return
	}
	if f.others == nil {
		f.others = map[Key]Value{}
	}
	f.others[key] = value
}

func (f *few[Key, Value]) remove(key Key) {
	if f.hasFirst && f.firstKey == key {
		*f = few[Key, Value]{others: f.others}
	}
	delete(f.others, key)
}

func (f *few[Key, Value]) len() int {
	if f.hasFirst {
		return len(f.others) + 1
	}
	return len(f.others)
}

// all returns what there is. It may be changed meanwhile.
func (f *few[Key, Value]) all() iter.Seq2[Key, Value] {
	return func(yield func(Key, Value) bool) {
		if f.hasFirst && !yield(f.firstKey, f.first) {
			return
		}
		for key, value := range f.others {
			if !yield(key, value) {
				return
			}
		}
	}
}
