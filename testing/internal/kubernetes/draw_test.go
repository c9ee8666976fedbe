package kubernetes_test

import (
	"cmp"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// site is a place in an object where there is, or could be, a value.
type site struct {
	// field is the name of the innermost field.
	field string
	value reflect.Value
}

// sites returns those below a value, but those that no client writes.
func sites(v reflect.Value, to []site) []site {
	switch v.Kind() {
	case reflect.Struct:
		if isLeaf(v.Type()) {
			return to
		}
		for i := range v.NumField() {
			f, value := v.Type().Field(i), v.Field(i)
			switch {
			case f.Type == reflect.TypeFor[metav1.TypeMeta](), f.Name == "Status", !f.IsExported():
				continue
			case v.Type() == reflect.TypeFor[metav1.ObjectMeta]() && !written[f.Name]:
				continue
			case !f.Anonymous && f.Name != "ObjectMeta":
				to = append(to, site{f.Name, value})
			}
			to = sites(value, to)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			to = sites(v.Elem(), to)
		}
	case reflect.Slice:
		for i := range v.Len() {
			if v.Type().Elem().Kind() != reflect.Uint8 {
				to = append(to, site{"", v.Index(i)})
			}
			to = sites(v.Index(i), to)
		}
	}
	return to
}

// written are the fields of the metadata that are drawn.
var written = map[string]bool{"Name": true, "Labels": true, "Annotations": true, "Finalizers": true}

func isLeaf(t reflect.Type) bool {
	switch reflect.Zero(t).Interface().(type) {
	case resource.Quantity, intstr.IntOrString, metav1.Time, metav1.MicroTime, runtime.RawExtension, metav1.Duration:
		return true
	}
	return false
}

// drawer draws changes of objects.
type drawer struct {
	*rand.Rand
	words
}

// change changes some values of an object.
func (d drawer) change(obj client.Object, times int) {
	for range times {
		all := sites(reflect.ValueOf(obj).Elem(), nil)
		s := all[d.IntN(len(all))]
		var texts []string
		for _, other := range all {
			if other.value.Kind() == reflect.String && other.value.String() != "" {
				texts = append(texts, other.value.String())
			}
		}
		d.set(s.value, s.field, texts)
	}
}

// set changes a value. A part of the changes takes something away.
func (d drawer) set(v reflect.Value, field string, texts []string) {
	n := 0
	if v.Kind() == reflect.Slice || v.Kind() == reflect.Map {
		n = v.Len()
	}
	switch {
	case d.IntN(6) == 0:
		v.SetZero()
	case v.Kind() == reflect.String && len(texts) > 0 && d.IntN(5) == 0:
		v.SetString(texts[d.IntN(len(texts))])
	case v.Kind() == reflect.Slice && n > 0 && v.Type().Elem().Kind() != reflect.Uint8:
		i := d.IntN(n)
		switch d.IntN(4) {
		case 0:
			v.Set(reflect.AppendSlice(v.Slice(0, i), v.Slice(i+1, n)))
		case 1:
			one := reflect.New(v.Type().Elem()).Elem()
			one.Set(v.Index(i))
			v.Set(reflect.Append(v, clone(one)))
		default:
			one := reflect.New(v.Type().Elem()).Elem()
			d.fill(one, field, 0)
			v.Set(reflect.Append(v, one))
		}
	case v.Kind() == reflect.Map && n > 0 && d.IntN(2) == 0:
		keys := v.MapKeys()
		sortKeys(keys)
		one := reflect.New(v.Type().Elem()).Elem()
		d.fill(one, field, 0)
		v.SetMapIndex(keys[d.IntN(n)], one)
	default:
		d.fill(v, field, 0)
	}
}

// fill gives a value something new.
func (d drawer) fill(v reflect.Value, field string, depth int) {
	t := v.Type()
	if used := d.used[t]; len(used) > 0 && d.IntN(4) == 0 {
		v.Set(clone(used[d.IntN(len(used))]))
		return
	}
	if d.fillLeaf(v, field) {
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		d.fillStruct(v, depth+1)
	case reflect.Pointer:
		one := reflect.New(t.Elem())
		d.fill(one.Elem(), field, depth)
		v.Set(one)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(pick(d, texts)))
			return
		}
		v.SetZero()
		for range 1 + d.IntN(2) {
			one := reflect.New(t.Elem()).Elem()
			d.fill(one, field, depth)
			v.Set(reflect.Append(v, one))
		}
	case reflect.Map:
		if v.IsNil() {
			v.Set(reflect.MakeMap(t))
		} else {
			v.Set(clone(v))
		}
		key, one := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
		d.fill(key, field+"Key", depth)
		d.fill(one, field, depth)
		v.SetMapIndex(key, one)
	}
}

func (d drawer) fillLeaf(v reflect.Value, field string) bool {
	switch v.Interface().(type) {
	case resource.Quantity:
		v.Set(reflect.ValueOf(resource.MustParse(pick(d, quantities))))
		return true
	case intstr.IntOrString:
		value := intstr.FromInt32(pick(d, numbers))
		if d.IntN(2) == 0 {
			value = intstr.FromString(pick(d, shares))
		}
		v.Set(reflect.ValueOf(value))
		return true
	case metav1.Time:
		v.Set(reflect.ValueOf(metav1.NewTime(time.Unix(1_700_000_000, 0))))
		return true
	case metav1.MicroTime:
		v.Set(reflect.ValueOf(metav1.NewMicroTime(time.Unix(1_700_000_000, 0))))
		return true
	case metav1.Duration:
		v.Set(reflect.ValueOf(metav1.Duration{Duration: time.Duration(pick(d, numbers)) * time.Second}))
		return true
	case runtime.RawExtension:
		v.Set(reflect.ValueOf(runtime.RawExtension{Raw: []byte(pick(d, raws))}))
		return true
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(d.text(v.Type(), field))
	case reflect.Int32, reflect.Int64, reflect.Int:
		v.SetInt(int64(pick(d, numbers)))
	case reflect.Uint8:
		v.SetUint(uint64(d.IntN(256)))
	case reflect.Bool:
		v.SetBool(d.IntN(2) == 0)
	default:
		return false
	}
	return true
}

// fillStruct sets the fields that a client has to give, and some of the others; of those that are alternatives, one.
func (d drawer) fillStruct(v reflect.Value, depth int) {
	t := v.Type()
	v.SetZero()
	var optional []int
	pointers := 0
	for i := range t.NumField() {
		f := t.Field(i)
		switch tag := f.Tag.Get("json"); {
		case !f.IsExported(), f.Name == "Status", f.Type == reflect.TypeFor[metav1.TypeMeta]():
		case f.Anonymous || f.Name == "ObjectMeta":
			d.fillStruct(v.Field(i), depth)
		case t == reflect.TypeFor[metav1.ObjectMeta]() && !written[f.Name]:
		case !strings.Contains(tag, "omitempty"):
			if d.IntN(20) > 0 {
				d.fill(v.Field(i), f.Name, depth)
			}
		default:
			optional = append(optional, i)
			if f.Type.Kind() == reflect.Pointer {
				pointers++
			}
		}
	}
	switch {
	case d.fillTyped(v, depth):
	case len(optional) == t.NumField() && pointers > 1 && d.IntN(10) > 0:
		i := optional[d.IntN(len(optional))]
		d.fill(v.Field(i), t.Field(i).Name, depth)
	case depth < 5:
		for _, i := range optional {
			if d.IntN(4) == 0 {
				d.fill(v.Field(i), t.Field(i).Name, depth)
			}
		}
	}
}

// fillTyped fills the field that the field Type names.
func (d drawer) fillTyped(v reflect.Value, depth int) bool {
	kind := v.FieldByName("Type")
	if !kind.IsValid() || kind.Kind() != reflect.String || d.IntN(10) == 0 {
		return false
	}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Type.Kind() == reflect.Pointer && strings.EqualFold(f.Name, kind.String()) {
			d.fill(v.Field(i), f.Name, depth)
			return true
		}
	}
	return false
}

// text draws a string for a field of a type.
func (d drawer) text(t reflect.Type, field string) string {
	if values := d.constants[t.PkgPath()+"."+t.Name()]; len(values) > 0 && d.IntN(8) > 0 {
		return pick(d, values)
	}
	if d.IntN(3) > 0 {
		lower := strings.ToLower(field)
		for _, of := range textsOf {
			if strings.Contains(lower, of.field) {
				return pick(d, of.values)
			}
		}
	}
	return pick(d, texts)
}

func pick[T any](d drawer, values []T) T { return values[d.IntN(len(values))] }

// clone returns a deep copy of a value.
func clone(v reflect.Value) reflect.Value {
	data, err := json.Marshal(v.Interface())
	if err != nil {
		panic(err)
	}
	c := reflect.New(v.Type())
	if err := json.Unmarshal(data, c.Interface()); err != nil {
		panic(err)
	}
	return c.Elem()
}

func sortKeys(keys []reflect.Value) {
	slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
}
