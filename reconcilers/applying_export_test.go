package reconcilers

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ConfigurationOf is what is applied for desired.
func ConfigurationOf(c client.Client, desired client.Object) (map[string]any, error) {
	kind, err := c.GroupVersionKindFor(desired)
	if err != nil {
		return nil, err
	}
	return configurationOf(desired, kind)
}

// Shape is that of the configuration.
func Shape(wanted map[string]any) string { return configuration(wanted).shape() }

// Differences returns those between a configuration and an object with managed fields, a line for each, sorted. A nil list of
// managed fields is one that is not known.
func Differences(wanted, there map[string]any, manager string, entries []metav1.ManagedFieldsEntry, leave bool) []string {
	var found differences
	if entries == nil {
		found = compareValues(wanted, there)
	} else {
		owner := fieldOwner{name: manager}
		found = compare(wanted, there, owner.ownershipOf(entries, wanted), leave)
	}
	lines := map[string]bool{}
	for one := range found {
		lines[fmt.Sprintf("%s %s", one.path, one.fault)] = true
	}
	return slices.Sorted(maps.Keys(lines))
}

// Creator is the name under which the manager creates.
func Creator(manager string, wanted map[string]any) string {
	return fieldOwner{name: manager}.creator(wanted)
}

// TakenOver returns the managed fields after a take-over.
func TakenOver(manager string, before []string, entries []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, error) {
	return fieldOwner{name: manager, before: before}.takeover(entries)
}

// Without returns the configuration without a field, and whether there was one at that path.
func Without(wanted map[string]any, field string) (map[string]any, bool) {
	e := &ApplyConflictError{Conflicts: []ApplyConflict{{Field: field}}}
	return e.without(wanted)
}

// NewApplyConflictError returns the conflicts that err is about, nil if it is about something else.
func NewApplyConflictError(object string, err error) *ApplyConflictError {
	return newApplyConflictError(object, err)
}

// AsStale is what becomes of the answer to an apply to another object of the name.
func AsStale(err error) error { return asStale(err) }
