package manifest

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDepth and maxValues bound what an object may hold. They are far beyond what an API server takes; without them, content that
// holds itself would never end.
const (
	maxDepth   = 256
	maxValues  = 1 << 18
	maxDefects = 10
)

// normalize returns a copy of content that is made of JSON values only: nil, bool, int64, float64, string, []any and
// map[string]any. What can be taken for one of them without loss is; anything else is a defect.
func normalize(content map[string]any) (map[string]any, error) {
	n := normalizer{}
	result := n.object(content)
	if n.excess {
		return nil, fmt.Errorf("it holds itself, more than %d values, or values nested more than %d levels deep", maxValues, maxDepth)
	}
	if n.count == 0 {
		return result, nil
	}
	// To name the defects, and always the same ones, takes an order, which content without any can do without.
	n = normalizer{sorted: true}
	n.object(content)
	return nil, n.err()
}

type normalizer struct {
	// path leads to the value at hand.
	path   []string
	values int
	// sorted: maps are walked in the order of their keys, and defects are noted.
	sorted bool
	// count is how many defects there are; the first are noted.
	count   int
	defects []string
	// excess: the content could not be walked to its end.
	excess bool
}

func (n *normalizer) err() error {
	text := strings.Join(n.defects, "; ")
	if more := n.count - len(n.defects); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return errors.New(text)
}

func (n *normalizer) defect(problem string) {
	n.count++
	if n.sorted && len(n.defects) < maxDefects {
		n.defects = append(n.defects, strconv.Quote(n.pointer())+" "+problem)
	}
}

// pointer is the JSON pointer of the value at hand.
func (n *normalizer) pointer() string {
	var b strings.Builder
	for _, step := range n.path {
		b.WriteByte('/')
		b.WriteString(pointerEscape.Replace(step))
	}
	return b.String()
}

var pointerEscape = strings.NewReplacer("~", "~0", "/", "~1")

// enter notes that the value at key is next, and tells whether it may be walked.
func (n *normalizer) enter(key string) bool {
	n.values++
	if n.excess || n.values > maxValues || len(n.path) >= maxDepth {
		n.excess = true
		return false
	}
	n.path = append(n.path, key)
	return true
}

func (n *normalizer) leave() {
	n.path = n.path[:len(n.path)-1]
}

func (n *normalizer) value(value any) any {
	switch v := value.(type) {
	case nil:
		return nil
	case string:
		return n.text(v)
	case bool, int64:
		return v
	case float64:
		return n.float(v)
	case map[string]any:
		if v == nil {
			return nil
		}
		return n.object(v)
	case []any:
		if v == nil {
			return nil
		}
		list := make([]any, 0, len(v))
		for i, element := range v {
			if !n.enter(strconv.Itoa(i)) {
				return nil
			}
			list = append(list, n.value(element))
			n.leave()
		}
		return list
	default:
		return n.odd(value)
	}
}

func (n *normalizer) object(object map[string]any) map[string]any {
	result := make(map[string]any, len(object))
	if n.sorted {
		for _, key := range slices.Sorted(maps.Keys(object)) {
			n.entry(result, key, object[key])
		}
		return result
	}
	for key, value := range object {
		if !n.entry(result, key, value) {
			return nil
		}
	}
	return result
}

func (n *normalizer) entry(result map[string]any, key string, value any) bool {
	if !n.enter(key) {
		return false
	}
	n.text(key)
	result[key] = n.value(value)
	n.leave()
	return true
}

func (n *normalizer) text(s string) string {
	// An encoder would replace what is not UTF-8, without a word.
	if !utf8.ValidString(s) {
		n.defect("is not valid UTF-8")
	}
	return s
}

func (n *normalizer) float(f float64) any {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		n.defect("is not a finite number")
	}
	return f
}

// odd is for values that a decoder of JSON does not make, and code does.
func (n *normalizer) odd(value any) any {
	switch v := value.(type) {
	case json.Number:
		return n.number(v)
	case json.Marshaler, encoding.TextMarshaler:
		return n.alien(value)
	}
	v := reflect.ValueOf(value)
	switch v.Kind() {
	case reflect.Bool:
		return v.Bool()
	case reflect.String:
		return n.text(v.String())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return v.Int()
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		if v.Uint() > math.MaxInt64 {
			n.defect("is a number out of range")
			return nil
		}
		return int64(v.Uint())
	case reflect.Float32:
		return n.short(v.Float())
	case reflect.Float64:
		return n.float(v.Float())
	case reflect.Map:
		return n.oddMap(v)
	case reflect.Slice, reflect.Array:
		return n.oddList(v)
	default:
		return n.alien(value)
	}
}

func (n *normalizer) alien(value any) any {
	n.defect(fmt.Sprintf("is of the Go type %T, which is not a JSON value", value))
	return nil
}

func (n *normalizer) number(number json.Number) any {
	if i, err := strconv.ParseInt(number.String(), 10, 64); err == nil {
		return i
	} else if errors.Is(err, strconv.ErrRange) {
		n.defect("is a number out of range")
		return nil
	}
	f, err := strconv.ParseFloat(number.String(), 64)
	if err != nil {
		n.defect("is not a number in range")
		return nil
	}
	return n.float(f)
}

// short widens a float32 to the float64 that is written the same.
func (n *normalizer) short(f float64) any {
	wide, err := strconv.ParseFloat(strconv.FormatFloat(f, 'g', -1, 32), 64)
	if err != nil {
		return n.float(f)
	}
	return n.float(wide)
}

func (n *normalizer) oddMap(m reflect.Value) any {
	if m.Type().Key().Kind() != reflect.String {
		return n.alien(m.Interface())
	}
	if m.IsNil() {
		return nil
	}
	plain := make(map[string]any, m.Len())
	for iter := m.MapRange(); iter.Next(); {
		plain[iter.Key().String()] = iter.Value().Interface()
	}
	return n.object(plain)
}

func (n *normalizer) oddList(list reflect.Value) any {
	if list.Type().Elem().Kind() == reflect.Uint8 {
		return n.alien(list.Interface())
	}
	if list.Kind() == reflect.Slice && list.IsNil() {
		return nil
	}
	result := make([]any, 0, list.Len())
	for i := range list.Len() {
		if !n.enter(strconv.Itoa(i)) {
			return nil
		}
		result = append(result, n.value(list.Index(i).Interface()))
		n.leave()
	}
	return result
}
