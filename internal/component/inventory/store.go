// Package inventory keeps the records of a component where they survive a crash.
//
// There are two stores. [Status] keeps them in the status of the resource, for as long as they fit there. [Objects] keeps them
// in Secrets or ConfigMaps of their own, for components with thousands of objects.
//
// Both store what [Compact] leaves of a record, and neither minds the order of records: they are a set. Both refuse, on the
// way in and on the way out, what [Validate] refuses: an inventory that may be damaged is not acted upon.
package inventory

import (
	"context"

	"github.com/espalier-dev/espalier/apis"
)

// Store keeps the inventory of one component. It is used by one request at a time.
type Store interface {
	// Load returns the records as they are stored. The caller does not change them.
	Load(ctx context.Context) ([]apis.InventoryRecord, error)
	// Save makes records durable, if they differ from those stored. It tells whether they are durable now: a store in the
	// status of the resource is so only once the status has been written, after the request.
	Save(ctx context.Context, records []apis.InventoryRecord) (durable bool, err error)
	// Remove removes what the store itself made, once the component is gone. It refuses while there are records.
	Remove(ctx context.Context) error
}

// Purged tells whether a record says that its object is purged, or is to be.
func Purged(record *apis.InventoryRecord) bool {
	switch record.Phase {
	case apis.PhaseScheduledForCompletion, apis.PhaseCompleting, apis.PhaseCompleted:
		return true
	}
	return false
}
