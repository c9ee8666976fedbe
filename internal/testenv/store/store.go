package store

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Options are what a [Store] knows.
type Options struct {
	// Scheme has the Go types whose kinds are served without a definition. Required; it is not changed.
	Scheme *runtime.Scheme
	// WithoutStatus are kinds of the scheme whose status is no subresource, although their Go type has a field Status.
	WithoutStatus []schema.GroupKind
	// Resources are further kinds that are served.
	Resources []*metav1.APIResourceList
	// Now is the time of writes; nil is the real time.
	Now func() time.Time
	// ManagedFields says that objects are always answered with their managed fields. By default they are once something
	// was applied, or an object was given with managed fields: to compute them costs more than anything else.
	ManagedFields bool
}

// Store has the objects of a cluster. It is safe for concurrent use.
type Store struct{}

// New returns an empty store, in which the namespaces default, kube-system, kube-public and kube-node-lease exist.
func New(options Options) *Store { panic("TODO") }

// Fork returns a copy. What happens in one of the two does not concern the other.
func (s *Store) Fork() *Store { panic("TODO") }

// Key names an object.
type Key struct {
	Kind            schema.GroupKind
	Namespace, Name string
}

// Change is one change of a store.
type Change struct {
	// Revision is that of the store after the change. It is the resource version of After.
	Revision int64
	Key      Key
	// Before and After are the object before and after the change, nil if there was or is none. They must not be
	// changed, and have no managed fields.
	Before, After client.Object
	// Manager is the field manager who made the change; empty for the control plane itself.
	Manager string
}

// Revision is that of the last change. It is never 0.
func (s *Store) Revision() int64 { panic("TODO") }

// Changes returns what happened after a revision, oldest first.
func (s *Store) Changes(since int64) []Change { panic("TODO") }

// Give stores objects as if they had always been there, without completing or validating what they have. It gives them
// what they lack of the metadata that a server sets: UID, resource version (lower than Revision), generation and
// creation time. An owner reference without a UID gets that of the object with its kind and name in the same call or in
// the store. Namespaces that they are in are made. The error names the object.
func (s *Store) Give(objs ...client.Object) error { panic("TODO") }

// Objects returns all objects as they are stored, ordered by kind, namespace and name. They must not be changed.
func (s *Store) Objects() []client.Object { panic("TODO") }

// RESTMapper knows the kinds that are served now.
func (s *Store) RESTMapper() meta.RESTMapper { panic("TODO") }

// Resources returns the resources that are served now, as discovery lists them.
func (s *Store) Resources() []*metav1.APIResourceList { panic("TODO") }

// CollectGarbage does what the controllers of the control plane do in the end: it deletes dependents whose owners are
// gone, ends foreground and orphan deletions, empties and removes terminating namespaces, and deletes the instances of
// definitions that are being deleted. It reports whether something changed. An object with a finalizer stays.
func (s *Store) CollectGarbage() (changed bool) { panic("TODO") }
