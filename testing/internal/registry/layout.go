package registry

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// layout says where the status and the contents of objects of a Go type are.
type layout struct {
	goType reflect.Type
	// status is the field of the status; nil if there is none. Contents are all fields but type and metadata, and but
	// the status if it is a subresource.
	status    []int
	contents  [][]int
	hasStatus bool
}

func layoutOf(obj client.Object, hasStatus bool) (layout, bool) {
	l := layout{goType: reflect.TypeOf(obj).Elem()}
	if l.goType.Kind() != reflect.Struct {
		return l, false
	}
	l.addFields(l.goType, nil)
	l.hasStatus = hasStatus && l.status != nil
	if !l.hasStatus && l.status != nil {
		l.contents = append(l.contents, l.status)
	}
	return l, true
}

var (
	typeMeta   = reflect.TypeFor[metav1.TypeMeta]()
	objectMeta = reflect.TypeFor[metav1.ObjectMeta]()
)

// addFields adds the fields of a struct type. A field without a name of its own is one whose fields are inlined.
func (l *layout) addFields(t reflect.Type, index []int) {
	for i := range t.NumField() {
		f := t.Field(i)
		path := append(index[:len(index):len(index)], i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Type == typeMeta, f.Type == objectMeta, !f.IsExported() && !f.Anonymous:
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			l.addFields(f.Type, path)
		case !f.IsExported():
		case f.Name == "Status":
			l.status = path
		default:
			l.contents = append(l.contents, path)
		}
	}
}

// empty returns an empty object.
func (l layout) empty() client.Object { return reflect.New(l.goType).Interface().(client.Object) }

// dropStatus empties the status if it is a subresource.
func (l layout) dropStatus(obj client.Object) {
	if l.hasStatus {
		reflect.ValueOf(obj).Elem().FieldByIndex(l.status).SetZero()
	}
}

// keep keeps from old what a request for the subresource may not write, but for metadata.
func (l layout) keep(obj, old client.Object, subresource string) {
	if !l.hasStatus {
		return
	}
	if subresource == "" {
		to, from := reflect.ValueOf(obj).Elem(), reflect.ValueOf(old).Elem()
		to.FieldByIndex(l.status).Set(from.FieldByIndex(l.status))
		return
	}
	l.copyContents(obj, old)
}

// copyContents copies all but metadata, and but the status if it is a subresource. What it points to becomes common.
func (l layout) copyContents(obj, old client.Object) {
	to, from := reflect.ValueOf(obj).Elem(), reflect.ValueOf(old).Elem()
	for _, index := range l.contents {
		to.FieldByIndex(index).Set(from.FieldByIndex(index))
	}
}

// sameContents reports whether all but metadata, and the status if it is a subresource, is the same.
func (l layout) sameContents(a, b client.Object) bool {
	av, bv := reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem()
	for _, index := range l.contents {
		x, y := av.FieldByIndex(index).Addr().Interface(), bv.FieldByIndex(index).Addr().Interface()
		// The first is much faster, but tells what is nil from what is empty.
		if !reflect.DeepEqual(x, y) && !equality.Semantic.DeepEqual(x, y) {
			return false
		}
	}
	return true
}
