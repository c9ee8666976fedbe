// Package directory is the list of tenants that the company keeps outside the cluster: an example of state that no owner
// reference takes away.
package directory

import (
	"context"
	"errors"
)

// Entry is what the directory says about a tenant.
type Entry struct {
	// Tenant is the name under which the entry is found.
	Tenant string
	// UID tells apart two tenants that have had the same name.
	UID string
	// DisplayName is what people call the tenant.
	DisplayName string
	// Owner is who answers for the tenant.
	Owner string
}

// ErrTaken is returned for a name that another tenant has.
var ErrTaken = errors.New("the name belongs to another tenant in the directory")

// Directory lists tenants. Implementations are safe for concurrent use.
type Directory interface {
	// Register makes the directory have the entry. It changes nothing if that is so already, and returns ErrTaken if the name
	// is that of an entry with another UID.
	Register(ctx context.Context, entry Entry) error

	// Unregister removes the entry of that name and UID. It does nothing if there is none.
	Unregister(ctx context.Context, tenant, uid string) error
}
