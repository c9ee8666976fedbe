package check

import (
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/reconcilers"
)

// Comparison compares by go-cmp with the options that its fields stand for. Most values of a row are equal, and go-cmp
// takes most of the time of a row to say so. So a Comparison finds out quickly that values are certain to be equal.
type Comparison struct {
	// IgnoreUnexported is reconcilers.IgnoreAllUnexported, EquateEmpty is cmpopts.EquateEmpty, and the others are the
	// options of this package of these names.
	IgnoreUnexported, EquateEmpty            bool
	IgnoreTypeMeta, IgnoreLastTransitionTime bool
	// IgnoreServerFields is IgnoreCreationTimestamp and IgnoreResourceVersion.
	IgnoreServerFields bool
}

// options are the options of go-cmp.
func (c Comparison) options() cmp.Options {
	var options cmp.Options
	for _, o := range []struct {
		set    bool
		option cmp.Option
	}{
		{c.IgnoreUnexported, reconcilers.IgnoreAllUnexported}, {c.EquateEmpty, cmpopts.EquateEmpty()},
		{c.IgnoreTypeMeta, IgnoreTypeMeta}, {c.IgnoreLastTransitionTime, IgnoreLastTransitionTime},
		{c.IgnoreServerFields, cmp.Options{IgnoreCreationTimestamp, IgnoreResourceVersion}},
	} {
		if o.set {
			options = append(options, o.option)
		}
	}
	return options
}

// Diff returns how values differ, empty if they do not. First, unless nil, notes the first difference.
func (c Comparison) Diff(first *First, expected, actual any) string {
	if c.Certain(expected, actual) {
		return ""
	}
	return Diff(first, expected, actual, c.options())
}

// DiffStatus is Diff for the status of objects, typed or not. Nothing else is compared.
func (c Comparison) DiffStatus(first *First, expected, actual client.Object) string {
	if want, ok := statusOf(expected); ok && reflect.TypeOf(expected) == reflect.TypeOf(actual) {
		if got, _ := statusOf(actual); c.equal(want, got, step{field: "Status"}, 0) {
			return ""
		}
	}
	return Diff(first, expected, actual, statusOnly, c.options())
}

// Diff returns how values differ by go-cmp, empty if they do not. First, unless nil, notes the first difference.
func Diff(first *First, expected, actual any, options ...cmp.Option) string {
	if first != nil {
		options = append(options, cmp.Reporter(first))
	}
	return cmp.Diff(expected, actual, options...)
}

// maxDepth is how deep values are compared; values that refer to themselves are deeper.
const maxDepth = 100

// Certain reports that two values are equal. False means that they may differ.
func (c Comparison) Certain(x, y any) bool {
	return c.equal(reflect.ValueOf(x), reflect.ValueOf(y), step{}, 0)
}

// step is where a value was found: in the named field of a struct, or under the key of a map, or neither.
type step struct{ field, key string }

func (c Comparison) equal(x, y reflect.Value, at step, depth int) bool {
	if !x.IsValid() || !y.IsValid() {
		return x.IsValid() == y.IsValid()
	}
	if x.Type() != y.Type() || depth > maxDepth {
		return false
	}
	shape := shapeOf(x.Type())
	if shape.hasEqual {
		return equalByMethod(x, y)
	}
	switch x.Kind() {
	case reflect.Pointer:
		if x.IsNil() || y.IsNil() {
			return x.IsNil() == y.IsNil()
		}
		return c.equal(x.Elem(), y.Elem(), step{}, depth+1)
	case reflect.Interface:
		if x.IsNil() || y.IsNil() {
			return x.IsNil() == y.IsNil()
		}
		return c.equal(x.Elem(), y.Elem(), step{key: at.key}, depth+1)
	case reflect.Struct:
		return c.structs(x, y, shape, at, depth)
	case reflect.Map:
		return c.maps(x, y, at, depth)
	case reflect.Slice, reflect.Array:
		return c.lists(x, y, depth)
	default:
		return equalBasics(x, y)
	}
}

// structs compares structs of one type.
func (c Comparison) structs(x, y reflect.Value, shape *shape, at step, depth int) bool {
	for i, field := range shape.fields {
		switch {
		case !field.exported:
			if !c.IgnoreUnexported {
				return false
			}
		case c.ignoresField(at.field, field.name):
		case field.basic:
			if !equalBasics(x.Field(i), y.Field(i)) {
				return false
			}
		case field.nilable && x.Field(i).IsNil() && y.Field(i).IsNil():
		case !c.equal(x.Field(i), y.Field(i), step{field: field.name}, depth+1):
			return false
		}
	}
	return true
}

func (c Comparison) ignoresField(of, name string) bool {
	switch {
	case c.IgnoreTypeMeta && of == "TypeMeta":
		return name == "APIVersion" || name == "Kind"
	case c.IgnoreServerFields && of == "ObjectMeta" && (name == "CreationTimestamp" || name == "ResourceVersion"):
		return true
	default:
		return c.IgnoreLastTransitionTime && strings.HasSuffix(name, "LastTransitionTime")
	}
}

// maps compares maps of one type. A key that is ignored may be in one of them only.
func (c Comparison) maps(x, y reflect.Value, at step, depth int) bool {
	if x.IsNil() != y.IsNil() && !(c.EquateEmpty && x.Len() == y.Len()) {
		return false
	}
	compared, others := 0, 0
	for keys := x.MapRange(); keys.Next(); {
		key := keys.Key()
		if c.ignoresKey(at.key, key) {
			continue
		}
		compared++
		value := y.MapIndex(key)
		if !value.IsValid() || !c.equal(keys.Value(), value, stepTo(key), depth+1) {
			return false
		}
	}
	for keys := y.MapRange(); keys.Next(); {
		if !c.ignoresKey(at.key, keys.Key()) {
			others++
		}
	}
	return compared == others
}

func (c Comparison) ignoresKey(of string, key reflect.Value) bool {
	if key.Kind() != reflect.String {
		return false
	}
	switch key.String() {
	case "lastTransitionTime":
		return c.IgnoreLastTransitionTime
	case "creationTimestamp", "resourceVersion":
		return c.IgnoreServerFields && of == "metadata"
	}
	return false
}

func stepTo(key reflect.Value) step {
	if key.Kind() == reflect.String {
		return step{key: key.String()}
	}
	return step{}
}

// lists compares slices or arrays of one type.
func (c Comparison) lists(x, y reflect.Value, depth int) bool {
	if x.Len() != y.Len() || x.Kind() == reflect.Slice && x.IsNil() != y.IsNil() && !c.EquateEmpty {
		return false
	}
	for i := range x.Len() {
		if !c.equal(x.Index(i), y.Index(i), step{}, depth+1) {
			return false
		}
	}
	return true
}

// equalBasics compares values without parts. Two functions are certain to be equal only if both are nil.
func equalBasics(x, y reflect.Value) bool {
	switch x.Kind() {
	case reflect.String:
		return x.String() == y.String()
	case reflect.Bool:
		return x.Bool() == y.Bool()
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return x.Int() == y.Int()
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return x.Uint() == y.Uint()
	case reflect.Float32, reflect.Float64:
		return x.Float() == y.Float()
	case reflect.Func:
		return x.IsNil() && y.IsNil()
	case reflect.Chan:
		return x.Pointer() == y.Pointer()
	default:
		return false
	}
}

// equalByMethod compares values of a type with a method Equal, which go-cmp calls. The methods of other types are not
// called, for go-cmp checks them.
func equalByMethod(x, y reflect.Value) bool {
	if !x.CanInterface() || !y.CanInterface() {
		return false
	}
	switch x := x.Interface().(type) {
	case time.Time:
		return x.Equal(y.Interface().(time.Time))
	case *metav1.Time:
		return x.Equal(y.Interface().(*metav1.Time))
	case *metav1.MicroTime:
		return x.Equal(y.Interface().(*metav1.MicroTime))
	case resource.Quantity:
		return x.Equal(y.Interface().(resource.Quantity))
	default:
		return false
	}
}

// shape is what is asked of a type again and again.
type shape struct {
	// hasEqual reports whether go-cmp calls a method Equal of the type.
	hasEqual bool
	fields   []fieldShape
}

type fieldShape struct {
	name     string
	exported bool
	// basic values have no parts, and nilable ones may be nil. Neither has a method Equal. Most fields of most objects
	// are such, and nothing else has to be known to compare them.
	basic, nilable bool
}

var shapes sync.Map // of *shape by reflect.Type

func shapeOf(t reflect.Type) *shape {
	if known, ok := shapes.Load(t); ok {
		return known.(*shape)
	}
	s := &shape{hasEqual: hasEqual(t)}
	if t.Kind() == reflect.Struct {
		for i := range t.NumField() {
			field := t.Field(i)
			s.fields = append(s.fields, fieldShapeOf(field))
		}
	}
	shapes.Store(t, s)
	return s
}

func fieldShapeOf(field reflect.StructField) fieldShape {
	f := fieldShape{name: field.Name, exported: field.IsExported()}
	if hasEqual(field.Type) {
		return f
	}
	switch kind := field.Type.Kind(); kind {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface, reflect.Func:
		f.nilable = true
	default:
		f.basic = kind == reflect.String || kind >= reflect.Bool && kind <= reflect.Float64
	}
	return f
}

func hasEqual(t reflect.Type) bool {
	method, ok := t.MethodByName("Equal")
	return ok && isEqualMethod(t, method.Type)
}

// isEqualMethod reports whether a method of t, or of an interface t, has the signature that go-cmp looks for.
func isEqualMethod(t, method reflect.Type) bool {
	first := 1
	if t.Kind() == reflect.Interface {
		first = 0
	}
	return method.NumIn() == first+1 && !method.IsVariadic() && t.AssignableTo(method.In(first)) &&
		method.NumOut() == 1 && method.Out(0) == reflect.TypeFor[bool]()
}

// statusOf returns the field Status of an object that is a pointer to a struct.
func statusOf(obj client.Object) (reflect.Value, bool) {
	v := reflect.ValueOf(obj)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return reflect.Value{}, false
	}
	field, ok := v.Elem().Type().FieldByName("Status")
	if !ok || len(field.Index) != 1 {
		return reflect.Value{}, false
	}
	return v.Elem().FieldByIndex(field.Index), true
}
