package feature

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/statusfield"

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
	return statusfield.PartOf[apis.LifecycleStatus](resource)
}

// checkStatusOf returns an error if resources of the type of sample have no place for records by default.
func checkStatusOf[T client.Object](kind, name string, get func(T) *apis.LifecycleStatus, sample T) error {
	if get != nil || gotype.IsNil(sample) {
		// Only the author knows what Status returns for a resource with content.
		return nil
	}
	if statusfield.PartOf[apis.LifecycleStatus](statusfield.WithStatus(sample)) == nil {
		return errNoStatus(kind, name, sample)
	}
	return nil
}

func errNoStatus(kind, name string, resource client.Object) error {
	return fmt.Errorf("%s %q finds no apis.LifecycleStatus in the status of %T: "+
		"embed apis.LifecycleStatus in the type of its field Status, or define Status", kind, name, resource)
}

// placeOf finds out where in resources the records are kept.
func placeOf[T client.Object](get func(T) *apis.LifecycleStatus, sample T) statusfield.Place {
	return statusfield.PlaceOf(func(resource T) *apis.LifecycleStatus { return statusFor(get, resource) }, sample)
}
