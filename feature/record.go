package feature

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/message"
	"github.com/espalier-dev/espalier/internal/statusfield"
	"github.com/espalier-dev/espalier/reconcilers"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Records says which objects of a feature have an entry in its record.
type Records string

// RecordAll has each object recorded, the first hundred of them. Objects that are gone, or that are suspended by having
// been deleted, are none.
const RecordAll Records = "all"

// The limits of what a record says.
const (
	maxDependents    = 20
	maxAllDependents = 100
	maxAttributes    = 10
	maxAttribute     = 63
)

// lists returns which objects have an entry under a supervision.
func (r Records) lists(supervision reconcilers.Supervision) func(dependent) bool {
	isWell := asDesired(supervision)
	all := r == RecordAll && supervision != reconcilers.Withdraw
	return func(d dependent) bool { return all || !isWell(d) || len(d.Attributes) > 0 }
}

// entry identifies an entry, and what it says of its object.
type entry struct {
	group, kind, namespace, name, reason string
	state                                apis.State
}

func entryOf(d apis.DependentStatus) entry {
	return entry{d.Group, d.Kind, d.Namespace, d.Name, d.Reason, d.State}
}

// object identifies the object of an entry.
func (e entry) object() entry {
	e.state, e.reason = "", ""
	return e
}

// entries returns the entries of a record, the most important ones first, and how many it has no room for. Before are
// the entries of the request before: an entry keeps its time as long as it says the same.
//
// An entry without a time is of an earlier release, or the definition of the type is: it gets what is new when it says
// something else.
func (r Records) entries(before []apis.DependentStatus, f facts) (list []apis.DependentStatus, omitted int) {
	known := make(map[entry]apis.DependentStatus, len(before))
	for _, d := range before {
		known[entryOf(d)] = d
	}
	seen := make(map[entry]bool, len(f.summary.dependents))
	for _, d := range f.summary.dependents {
		seen[entryOf(d).object()] = true
		d.Since = metav1.Time{Time: f.now.Truncate(time.Second)}
		if was, ok := known[entryOf(d)]; ok {
			if d.Since = was.Since; was.Since.IsZero() {
				d.Generation = was.Generation
			}
		}
		list = append(list, d)
	}
	room := maxDependents
	if r == RecordAll {
		room = maxAllDependents
		if f.summary.partial {
			list = append(list, slices.DeleteFunc(slices.Clone(before), func(d apis.DependentStatus) bool {
				return seen[entryOf(d).object()]
			})...)
			slices.SortStableFunc(list, compareDependents)
		}
	}
	if len(list) > room {
		return list[:room:room], len(list) - room
	}
	return list, 0
}

// attributes returns a copy of the attributes of an object, as far as they have room in a record.
func attributes(all map[string]string) map[string]string {
	if len(all) == 0 {
		return nil
	}
	keys := slices.Sorted(maps.Keys(all))
	kept := map[string]string{}
	for _, key := range keys[:min(len(keys), maxAttributes)] {
		kept[message.Truncate(key, maxAttribute)] = message.Truncate(all[key], maxText)
	}
	return kept
}

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
