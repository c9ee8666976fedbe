package registry

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// FromGoType returns a kind of the scheme that is neither built in nor defined, with all versions of it that the scheme
// has. Its objects are neither completed nor validated, but for their metadata. It has a status subresource if the Go
// type has a field Status.
func FromGoType(kind schema.GroupVersionKind, scheme *runtime.Scheme) (Type, bool) {
	t := Type{Kind: kind.GroupKind(), Resource: plural(kind)}
	for _, version := range scheme.PrioritizedVersionsForGroup(kind.Group) {
		obj, err := scheme.New(version.WithKind(kind.Kind))
		if err != nil {
			continue
		}
		switch obj := obj.(type) {
		case runtime.Unstructured:
			t.Versions = append(t.Versions, Version{version.Version, unstructuredStrategy{
				kind: version.WithKind(kind.Kind), hasStatus: true,
			}})
		case client.Object:
			s, ok := newGoStrategy(obj, true)
			if !ok {
				continue
			}
			t.Versions = append(t.Versions, Version{version.Version, customStrategy{s}})
		}
	}
	return t, len(t.Versions) > 0
}

// plural is the usual name of the resource of a kind.
func plural(kind schema.GroupVersionKind) string {
	resource, _ := meta.UnsafeGuessKindToResource(kind)
	return resource.Resource
}

// goStrategy treats the metadata and the status of objects of a Go type.
type goStrategy struct {
	goType reflect.Type
	// status is the field of the status; nil if there is none. Contents are all fields but type and metadata, and but
	// the status if it is a subresource.
	status    []int
	contents  [][]int
	hasStatus bool
}

func newGoStrategy(obj client.Object, hasStatus bool) (goStrategy, bool) {
	s := goStrategy{goType: reflect.TypeOf(obj).Elem()}
	if s.goType.Kind() != reflect.Struct {
		return s, false
	}
	s.addFields(s.goType, nil)
	s.hasStatus = hasStatus && s.status != nil
	if !s.hasStatus && s.status != nil {
		s.contents = append(s.contents, s.status)
	}
	return s, true
}

var (
	typeMeta   = reflect.TypeFor[metav1.TypeMeta]()
	objectMeta = reflect.TypeFor[metav1.ObjectMeta]()
)

// addFields adds the fields of a struct type. A field without a name of its own is one whose fields are inlined.
func (s *goStrategy) addFields(t reflect.Type, index []int) {
	for i := range t.NumField() {
		f := t.Field(i)
		path := append(index[:len(index):len(index)], i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Type == typeMeta, f.Type == objectMeta, !f.IsExported() && !f.Anonymous:
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			s.addFields(f.Type, path)
		case !f.IsExported():
		case f.Name == "Status":
			s.status = path
		default:
			s.contents = append(s.contents, path)
		}
	}
}

// New implements [Strategy].
func (s goStrategy) New() client.Object { return reflect.New(s.goType).Interface().(client.Object) }

// HasStatus implements [Strategy].
func (s goStrategy) HasStatus() bool { return s.hasStatus }

// dropStatus empties the status if it is a subresource.
func (s goStrategy) dropStatus(obj client.Object) {
	if s.hasStatus {
		reflect.ValueOf(obj).Elem().FieldByIndex(s.status).SetZero()
	}
}

// keep keeps from old what a request for the subresource may not write, but for metadata.
func (s goStrategy) keep(obj, old client.Object, subresource string) {
	if !s.hasStatus {
		return
	}
	if subresource == "" {
		to, from := reflect.ValueOf(obj).Elem(), reflect.ValueOf(old).Elem()
		to.FieldByIndex(s.status).Set(from.FieldByIndex(s.status))
		return
	}
	s.copyContents(obj, old)
}

// copyContents copies all but metadata, and but the status if it is a subresource. What it points to becomes common.
func (s goStrategy) copyContents(obj, old client.Object) {
	to, from := reflect.ValueOf(obj).Elem(), reflect.ValueOf(old).Elem()
	for _, index := range s.contents {
		to.FieldByIndex(index).Set(from.FieldByIndex(index))
	}
}

// sameContents reports whether all but metadata, and the status if it is a subresource, is the same.
func (s goStrategy) sameContents(a, b client.Object) bool {
	av, bv := reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem()
	for _, index := range s.contents {
		x, y := av.FieldByIndex(index).Addr().Interface(), bv.FieldByIndex(index).Addr().Interface()
		// The first is much faster, but tells what is nil from what is empty.
		if !reflect.DeepEqual(x, y) && !equality.Semantic.DeepEqual(x, y) {
			return false
		}
	}
	return true
}

// customStrategy is that of a kind of which nothing is known but its Go type.
type customStrategy struct{ goStrategy }

// PrepareForCreate implements [Strategy].
func (s customStrategy) PrepareForCreate(obj client.Object) {
	s.dropStatus(obj)
	obj.SetGeneration(1)
}

// PrepareForUpdate implements [Strategy].
func (s customStrategy) PrepareForUpdate(obj, old client.Object, subresource string) {
	s.keep(obj, old, subresource)
	if subresource != "" {
		keepMetadata(obj, old)
		return
	}
	generation := old.GetGeneration()
	if !s.sameContents(obj, old) {
		generation++
	}
	obj.SetGeneration(generation)
}

// Validate implements [Strategy].
func (s customStrategy) Validate(obj client.Object) field.ErrorList {
	return validateMetadata(obj, AnyScope, subdomainName)
}

// ValidateUpdate implements [Strategy].
func (s customStrategy) ValidateUpdate(obj, old client.Object, subresource string) field.ErrorList {
	return validateMetadataUpdate(obj, old, AnyScope, subdomainName)
}

// Converter implements [Strategy]. Nothing says how to merge lists, so they are replaced as a whole.
func (s customStrategy) Converter() managedfields.TypeConverter { return deduced }

var deduced = managedfields.NewDeducedTypeConverter()
