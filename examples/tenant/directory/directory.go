// Package directory is the list of tenants that the company keeps outside the cluster: an example of state that no
// owner reference deletes.
package directory

import (
	"context"
	"errors"
)

// Entry is what the directory says about a tenant.
type Entry struct {
	// Tenant is the name under which the entry is found.
	Tenant string
	// UID distinguishes two tenants that have had the same name.
	UID string
	// DisplayName is what people call the tenant.
	DisplayName string
	// Owner is who answers for the tenant.
	Owner string
}

// Member is a person or a group of people, as the cluster knows them.
type Member struct {
	// Kind is User or Group.
	Kind string
	// Name is the name of the person or group.
	Name string
}

var (
	// ErrTaken is returned for a name that another tenant has.
	ErrTaken = errors.New("the name belongs to another tenant in the directory")

	// ErrNotListed is returned for members of a tenant that has no entry.
	ErrNotListed = errors.New("the directory does not list the tenant")

	// ErrUnavailable is returned by all methods while the directory cannot be reached.
	ErrUnavailable = errors.New("the directory does not answer")
)

// Directory lists tenants. Implementations are safe for concurrent use.
type Directory interface {
	// Register makes the directory have the entry. It changes nothing if that is so already, and returns ErrTaken if
	// the name belongs to an entry with another UID.
	Register(ctx context.Context, entry Entry) error

	// Unregister removes the entry of that name and UID, with its members. It does nothing if there is none.
	Unregister(ctx context.Context, tenant, uid string) error

	// Members returns the members of the entry of that name and UID, sorted by kind and name. It returns ErrNotListed
	// if there is no such entry, as do Join and Leave.
	Members(ctx context.Context, tenant, uid string) ([]Member, error)

	// Join adds a member. It changes nothing if the member is there already.
	Join(ctx context.Context, tenant, uid string, member Member) error

	// Leave removes a member. It changes nothing if there is no such member.
	Leave(ctx context.Context, tenant, uid string, member Member) error
}
