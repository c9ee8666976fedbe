// Package inventory keeps the records of a component where they survive a crash.
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
	// Remove removes what the store itself made, once the component is gone.
	Remove(ctx context.Context) error
}
