package manifest

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-openapi/jsonpointer"
)

// maxDepth and maxValues limit what an object may hold. They are far beyond what an API server accepts. Without them,
// content that holds itself would never end.
const (
	maxDepth   = 256
	maxValues  = 1 << 18
	maxDefects = 10
)

// normalize returns a copy of content that is made of JSON values only: nil, bool, int64, float64, string, []any and
// map[string]any. Other values are converted if nothing is lost; otherwise they are defects.
func normalize(content map[string]any) (map[string]any, error) {
	n := normalizer{}
	result := n.object(content)
	if n.excess {
		return nil, fmt.Errorf("it holds itself, more than %d values, or values nested more than %d levels deep",
			maxValues, maxDepth)
	}
	if len(n.defects) == 0 {
		return result, nil
	}
	slices.Sort(n.defects)
	text := strings.Join(n.defects[:min(len(n.defects), maxDefects)], "; ")
	if more := len(n.defects) - maxDefects; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return nil, errors.New(text)
}

type normalizer struct {
	// path leads to the current value.
	path    []string
	values  int
	defects []string
	// excess reports whether the content could not be walked to its end.
	excess bool
}

// defect adds a defect of the current value, which it names by its JSON pointer.
func (n *normalizer) defect(problem string) any {
	var pointer strings.Builder
	for _, step := range n.path {
		pointer.WriteString("/" + jsonpointer.Escape(step))
	}
	n.defects = append(n.defects, strconv.Quote(pointer.String())+" "+problem)
	return nil
}

// at returns the normalized value at key of the current value, unless there are too many values.
func (n *normalizer) at(key string, value any) any {
	n.values++
	if n.excess || n.values > maxValues || len(n.path) >= maxDepth {
		n.excess = true
		return nil
	}
	n.path = append(n.path, key)
	value = n.value(value)
	n.path = n.path[:len(n.path)-1]
	return value
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
		for i := 0; i < len(v) && !n.excess; i++ {
			list = append(list, n.at(strconv.Itoa(i), v[i]))
		}
		return list
	default:
		return n.otherKinds(value)
	}
}

func (n *normalizer) object(object map[string]any) map[string]any {
	result := make(map[string]any, len(object))
	for key, value := range object {
		if n.excess {
			break
		}
		result[key] = n.at(key, value)
		if !utf8.ValidString(key) {
			n.path = append(n.path, key)
			n.text(key)
			n.path = n.path[:len(n.path)-1]
		}
	}
	return result
}

func (n *normalizer) text(s string) any {
	// An encoder would replace what is not UTF-8, without a word.
	if !utf8.ValidString(s) {
		return n.defect("is not valid UTF-8")
	}
	return s
}

func (n *normalizer) float(f float64) any {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return n.defect("is not a finite number")
	}
	return f
}

// otherKinds converts values that code makes and a decoder of JSON does not.
func (n *normalizer) otherKinds(value any) any {
	switch v := value.(type) {
	case json.Number:
		return n.number(v)
	case json.Marshaler, encoding.TextMarshaler:
		return n.unsupported(value)
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
			return n.defect("is a number out of range")
		}
		return int64(v.Uint())
	case reflect.Float32:
		// The float64 that is written the same.
		wide, _ := strconv.ParseFloat(strconv.FormatFloat(v.Float(), 'g', -1, 32), 64)
		return n.float(wide)
	case reflect.Float64:
		return n.float(v.Float())
	case reflect.Map, reflect.Slice, reflect.Array:
		return n.collection(v)
	default:
		return n.unsupported(value)
	}
}

// collection normalizes a map or a list of any Go type.
func (n *normalizer) collection(v reflect.Value) any {
	isMap := v.Kind() == reflect.Map
	if isMap && v.Type().Key().Kind() != reflect.String || !isMap && v.Type().Elem().Kind() == reflect.Uint8 {
		return n.unsupported(v.Interface())
	}
	if v.Kind() != reflect.Array && v.IsNil() {
		return nil
	}
	if isMap {
		plain := make(map[string]any, v.Len())
		for iter := v.MapRange(); iter.Next(); {
			plain[iter.Key().String()] = iter.Value().Interface()
		}
		return n.object(plain)
	}
	list := make([]any, v.Len())
	for i := range list {
		list[i] = v.Index(i).Interface()
	}
	return n.value(list)
}

func (n *normalizer) unsupported(value any) any {
	return n.defect(fmt.Sprintf("is of the Go type %T, which is not a JSON value", value))
}

func (n *normalizer) number(number json.Number) any {
	i, err := strconv.ParseInt(number.String(), 10, 64)
	if err == nil {
		return i
	}
	if errors.Is(err, strconv.ErrRange) {
		return n.defect("is a number out of range")
	}
	f, err := strconv.ParseFloat(number.String(), 64)
	if err != nil {
		return n.defect("is not a number in range")
	}
	return n.float(f)
}
