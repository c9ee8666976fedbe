// Package inventory keeps the records of a component where they survive a crash.
//
// There are two stores. [Status] keeps records in the status of the resource, for as long as they fit there. [Objects]
// keeps them in Secrets or ConfigMaps, for components with thousands of objects. [Move] takes records from a status to
// objects.
//
// All store what [Compact] leaves of a record. The order of records does not matter: they are a set. All refuse, when
// they load and when they save, what [Validate] refuses, so no inventory is used that may be damaged.
package inventory

import (
	"context"
	"errors"
	"fmt"

	"github.com/espalier-dev/espalier/apis"
)

// Store keeps the inventory of one component. It is used by one request at a time.
type Store interface {
	// Load returns the records as they are stored. The caller does not change them.
	Load(ctx context.Context) ([]apis.InventoryRecord, error)
	// Save makes records durable, if they differ from those stored. It reports whether they are durable now: records in
	// the status of the resource are durable only once the status has been written, after the request.
	Save(ctx context.Context, records []apis.InventoryRecord) (durable bool, err error)
	// Version identifies the records that Load would return, without a request; 0 if they are not known. It means
	// nothing in another process.
	Version() uint64
	// Remove removes what the store itself created, once the component is gone. It fails as long as there are records.
	Remove(ctx context.Context) error
}

// stillThere is the error of a Remove that comes too early.
func stillThere(records int) error {
	if records == 1 {
		return errors.New("cannot remove the inventory: it still has a record")
	}
	return fmt.Errorf("cannot remove the inventory: it still has %d records", records)
}
