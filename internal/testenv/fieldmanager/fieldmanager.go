// Package fieldmanager computes the managed fields of objects, and merges what is applied, as an API server does. The
// work is done by k8s.io/apimachinery/pkg/util/managedfields; this package saves what would make it slow.
//
// Everything here is pure, and no object that is passed in is changed.
package fieldmanager

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// BeforeFirstApply is the manager of the fields of an object that has no managed fields. API servers use this name.
const BeforeFirstApply = "before-first-apply"

// Write says who writes, where and when.
type Write struct {
	Manager string
	// Subresource is "" or "status".
	Subresource string
	Time        time.Time
}

// Manager has the schema of one version of one kind. It is safe for concurrent use.
type Manager struct{}

// New returns the manager of a kind. It keeps what it costs to make one for the next call with the same arguments.
func New(
	kind schema.GroupVersionKind, converter managedfields.TypeConverter, create func() client.Object,
) (*Manager, error) {
	panic("TODO")
}

// Updated returns a copy of next with the managed fields that a write which changes live to next leaves behind. Live is
// nil for a create. Managed fields that next was sent with count as on an API server: an empty list resets them.
func (m *Manager) Updated(live, next client.Object, w Write) (client.Object, error) { panic("TODO") }

// Applied returns the object after config was applied to live, with its managed fields. Live is nil if it does not
// exist. A conflict is the error of an API server, of type StatusError.
func (m *Manager) Applied(live, config client.Object, force bool, w Write) (client.Object, error) {
	panic("TODO")
}
