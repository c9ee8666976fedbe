package lifecycle

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"github.com/espalier-dev/espalier/apis"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// findRecord returns the record of a feature, and false if there is none.
func findRecord(status *apis.LifecycleStatus, name string) (apis.FeatureStatus, bool) {
	for _, record := range status.Features {
		if record.Name == name {
			return record, true
		}
	}
	return apis.FeatureStatus{Name: name}, false
}

// setRecord stores the record of a feature, and changes nothing if it is there. Records are sorted by name.
func setRecord(status *apis.LifecycleStatus, record apis.FeatureStatus) {
	i, found := slices.BinarySearchFunc(status.Features, record.Name, func(r apis.FeatureStatus, name string) int {
		return cmp.Compare(r.Name, name)
	})
	if found && equality.Semantic.DeepEqual(status.Features[i], record) {
		return
	}
	// The slice may be shared with what the status was before.
	records := slices.DeleteFunc(slices.Clone(status.Features), func(r apis.FeatureStatus) bool {
		return r.Name == record.Name
	})
	records = append(records, record)
	slices.SortFunc(records, func(a, b apis.FeatureStatus) int { return cmp.Compare(a.Name, b.Name) })
	status.Features = records
}

// statusFor returns where the records of resource are kept: what get returns, or else what the field Status of the
// resource is, or has embedded. It returns nil if there is no such place.
func statusFor[T client.Object](get func(T) *apis.LifecycleStatus, resource T) *apis.LifecycleStatus {
	if get != nil {
		return get(resource)
	}
	value := reflect.ValueOf(resource)
	if value.Kind() != reflect.Pointer || value.IsNil() || value.Elem().Kind() != reflect.Struct {
		return nil
	}
	field := value.Elem().FieldByName("Status")
	if field.IsValid() && field.Kind() == reflect.Pointer {
		field = field.Elem()
	}
	if !field.IsValid() || field.Kind() != reflect.Struct || !field.CanAddr() || !field.CanInterface() {
		return nil
	}
	if found, ok := field.Addr().Interface().(*apis.LifecycleStatus); ok {
		return found
	}
	embedded, err := embeddedField(field, reflect.TypeFor[apis.LifecycleStatus]().Name())
	if err != nil || !embedded.IsValid() || !embedded.CanAddr() || !embedded.CanInterface() {
		return nil
	}
	found, _ := embedded.Addr().Interface().(*apis.LifecycleStatus)
	return found
}

// embeddedField is FieldByName without a panic for a field that a nil pointer embeds.
func embeddedField(value reflect.Value, name string) (reflect.Value, error) {
	field, ok := value.Type().FieldByName(name)
	if !ok {
		return reflect.Value{}, nil
	}
	return value.FieldByIndexErr(field.Index)
}

// checkStatusOf returns an error if resources of the type of sample have no place for records by default.
func checkStatusOf[T client.Object](kind, name string, get func(T) *apis.LifecycleStatus, sample T) error {
	if get != nil || isNil(sample) {
		// Only the author knows what Status returns for a resource with content.
		return nil
	}
	if statusFor(nil, withStatus(sample)) == nil {
		return errNoStatus(kind, name, sample)
	}
	return nil
}

func errNoStatus(kind, name string, resource client.Object) error {
	return fmt.Errorf("%s %q finds no apis.LifecycleStatus in the status of %T: "+
		"embed apis.LifecycleStatus in the type of its field Status, or define Status", kind, name, resource)
}

// withStatus returns a copy of sample whose field Status is not nil.
func withStatus[T client.Object](sample T) T {
	sample = sample.DeepCopyObject().(T)
	value := reflect.ValueOf(sample)
	if value.Kind() != reflect.Pointer || value.Elem().Kind() != reflect.Struct {
		return sample
	}
	status := value.Elem().FieldByName("Status")
	if status.IsValid() && status.Kind() == reflect.Pointer && status.IsNil() && status.CanSet() {
		status.Set(reflect.New(status.Type().Elem()))
	}
	return sample
}

// place is where in resources of a type records are kept. It is zero if that is not known.
type place struct {
	resource reflect.Type
	offset   uintptr
}

// placeOf finds out where records are kept. It is not known if that is not within the memory of the resource, or if get
// cannot handle a resource without content.
func placeOf[T client.Object](get func(T) *apis.LifecycleStatus, sample T) (found place) {
	if isNil(sample) || reflect.TypeOf(sample).Kind() != reflect.Pointer {
		return place{}
	}
	defer func() {
		if recover() != nil {
			found = place{}
		}
	}()
	copied := withStatus(sample)
	status := statusFor(get, copied)
	resource := reflect.ValueOf(copied)
	// What is before the resource has an offset that is larger than its size.
	offset := reflect.ValueOf(status).Pointer() - resource.Pointer()
	if status == nil || offset >= resource.Type().Elem().Size() {
		return place{}
	}
	return place{resource.Type(), offset}
}

// isNil reports whether an interface has no value, or a nil pointer.
func isNil(value any) bool {
	v := reflect.ValueOf(value)
	return value == nil || v.Kind() == reflect.Pointer && v.IsNil()
}
