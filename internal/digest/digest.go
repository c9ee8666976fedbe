// Package digest tells in a word whether two Go values are the same.
//
// A digest is taken of each object that a reconciler desires, in each request, so it must cost much less than a comparison
// or a marshalled copy. It walks the value by reflection and allocates next to nothing.
//
// Digests are seeded anew in each process: they are for memory only, mean nothing elsewhere, and cannot be guessed from.
package digest

import (
	"encoding/binary"
	"hash/maphash"
	"math"
	"reflect"
	"time"
)

var seed = maphash.MakeSeed()

// maxDepth and maxNodes bound the walk: a value nested deeper, a larger one, or one that holds itself, has no digest.
const (
	maxDepth = 64
	maxNodes = 1 << 20
)

// Of returns the digest of v, and false if v has none: it holds a channel or a function, is nested too deeply or too large.
//
// Equal digests mean that the values are equal in every field, exported or not, but for a chance of 2^-64. Different digests
// mean nothing for sure: a value that caches something in an unexported field may change its digest.
func Of(v any) (uint64, bool) {
	w := walker{budget: maxNodes}
	w.hash.SetSeed(seed)
	value := reflect.ValueOf(v)
	if value.IsValid() {
		w.text(value.Type().String())
	}
	if !w.walk(value, 0) {
		return 0, false
	}
	return w.hash.Sum64(), true
}

type walker struct {
	hash maphash.Hash
	// budget is how many nodes may still be visited, by this walker and those for entries of maps.
	budget int
}

var timeType = reflect.TypeFor[time.Time]()

func (w *walker) walk(v reflect.Value, depth int) bool {
	w.budget--
	if depth > maxDepth || w.budget < 0 {
		return false
	}
	w.number(uint64(v.Kind()))
	switch v.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Bool:
		w.flag(v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		w.number(uint64(v.Int()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		w.number(v.Uint())
	case reflect.Float32, reflect.Float64:
		w.number(math.Float64bits(v.Float()))
	case reflect.Complex64, reflect.Complex128:
		w.number(math.Float64bits(real(v.Complex())))
		w.number(math.Float64bits(imag(v.Complex())))
	case reflect.String:
		w.text(v.String())
	case reflect.Pointer:
		return w.pointer(v, depth)
	case reflect.Interface:
		return w.boxed(v, depth)
	case reflect.Struct:
		return w.structure(v, depth)
	case reflect.Slice:
		return w.slice(v, depth)
	case reflect.Array:
		return w.elements(v, depth)
	case reflect.Map:
		return w.entries(v, depth)
	default:
		return false
	}
	return true
}

func (w *walker) number(n uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], n)
	_, _ = w.hash.Write(b[:])
}

// text writes the length too, so that neighbouring strings cannot run into each other.
func (w *walker) text(s string) {
	w.number(uint64(len(s)))
	_, _ = w.hash.WriteString(s)
}

func (w *walker) pointer(v reflect.Value, depth int) bool {
	if v.IsNil() {
		w.number(0)
		return true
	}
	w.number(1)
	return w.walk(v.Elem(), depth+1)
}

// boxed writes the dynamic type, so that int64(1) and int32(1) differ.
func (w *walker) boxed(v reflect.Value, depth int) bool {
	if v.IsNil() {
		w.number(0)
		return true
	}
	elem := v.Elem()
	w.text(elem.Type().String())
	return w.walk(elem, depth+1)
}

// Tags of what content is made of, apart from every reflect.Kind.
const (
	tagNil = iota + 1000
	tagBool
	tagInt
	tagFloat
	tagText
	tagMap
	tagList
	tagOther
)

// content walks the value of an entry or an element of decoded JSON. Such trees are what whole components are made of, and
// reflection would allocate two values for each entry of a map.
func (w *walker) content(value any, depth int) bool {
	w.budget--
	if depth > maxDepth || w.budget < 0 {
		return false
	}
	switch v := value.(type) {
	case nil:
		w.number(tagNil)
	case bool:
		w.number(tagBool)
		w.flag(v)
	case int64:
		w.number(tagInt)
		w.number(uint64(v))
	case float64:
		w.number(tagFloat)
		w.number(math.Float64bits(v))
	case string:
		w.number(tagText)
		w.text(v)
	case map[string]any:
		w.number(tagMap)
		return w.contentMap(v, depth)
	case []any:
		w.number(tagList)
		return w.contentList(v, depth)
	default:
		w.number(tagOther)
		other := reflect.ValueOf(value)
		w.text(other.Type().String())
		return w.walk(other, depth)
	}
	return true
}

// flag tells nil from empty, and false from true.
func (w *walker) flag(set bool) {
	if set {
		w.number(1)
	} else {
		w.number(0)
	}
}

func (w *walker) contentMap(m map[string]any, depth int) bool {
	w.flag(m != nil)
	w.number(uint64(len(m)))
	var sum uint64
	for key, value := range m {
		entry, ok := w.contentEntry(key, value, depth)
		if !ok {
			return false
		}
		sum += entry
	}
	w.number(sum)
	return true
}

// contentEntry is apart from the loop that calls it, since the walker would be on the heap in a loop.
func (w *walker) contentEntry(key string, value any, depth int) (uint64, bool) {
	entry := walker{budget: w.budget}
	entry.hash.SetSeed(seed)
	entry.text(key)
	ok := entry.content(value, depth+1)
	w.budget = entry.budget
	return entry.hash.Sum64(), ok
}

func (w *walker) contentList(list []any, depth int) bool {
	w.flag(list != nil)
	w.number(uint64(len(list)))
	for _, value := range list {
		if !w.content(value, depth+1) {
			return false
		}
	}
	return true
}

func (w *walker) structure(v reflect.Value, depth int) bool {
	if v.Type() == timeType {
		return w.time(v)
	}
	for i := range v.NumField() {
		if !w.walk(v.Field(i), depth+1) {
			return false
		}
	}
	return true
}

// time writes the instant. The fields of a time cannot be walked: they refer to the table of its zone, which is shared.
func (w *walker) time(v reflect.Value) bool {
	if !v.CanInterface() {
		return false
	}
	var t time.Time
	if v.CanAddr() {
		t = *v.Addr().Interface().(*time.Time)
	} else {
		t = v.Interface().(time.Time)
	}
	w.number(uint64(t.Unix()))
	w.number(uint64(t.Nanosecond()))
	return true
}

func (w *walker) slice(v reflect.Value, depth int) bool {
	if v.IsNil() {
		w.number(0)
		return true
	}
	w.number(1)
	if v.Type().Elem().Kind() == reflect.Uint8 {
		b := v.Bytes()
		w.number(uint64(len(b)))
		_, _ = w.hash.Write(b)
		return true
	}
	return w.elements(v, depth)
}

func (w *walker) elements(v reflect.Value, depth int) bool {
	w.number(uint64(v.Len()))
	for i := range v.Len() {
		if !w.walk(v.Index(i), depth+1) {
			return false
		}
	}
	return true
}

// entries digests each entry by itself and adds the digests up, which does not depend on the order and saves sorting.
func (w *walker) entries(v reflect.Value, depth int) bool {
	if m, ok := contentOf(v); ok {
		return w.contentMap(m, depth)
	}
	if v.IsNil() {
		w.number(0)
		return true
	}
	w.number(1)
	w.number(uint64(v.Len()))
	var sum uint64
	if m, ok := stringMap(v); ok {
		for key, value := range m {
			entry := walker{budget: w.budget}
			entry.hash.SetSeed(seed)
			entry.text(key)
			entry.text(value)
			sum += entry.hash.Sum64()
		}
		w.number(sum)
		return true
	}
	for iter := v.MapRange(); iter.Next(); {
		entry := walker{budget: w.budget}
		entry.hash.SetSeed(seed)
		if !entry.walk(iter.Key(), depth+1) || !entry.walk(iter.Value(), depth+1) {
			return false
		}
		w.budget = entry.budget
		sum += entry.hash.Sum64()
	}
	w.number(sum)
	return true
}

// contentOf returns v as the map that decoded JSON is.
func contentOf(v reflect.Value) (map[string]any, bool) {
	if !v.CanInterface() {
		return nil, false
	}
	m, ok := v.Interface().(map[string]any)
	return m, ok
}

// stringMap returns v as the map that labels, annotations and data are: by far the most common, and cheap to walk as such.
func stringMap(v reflect.Value) (map[string]string, bool) {
	if !v.CanInterface() {
		return nil, false
	}
	m, ok := v.Interface().(map[string]string)
	return m, ok
}
