package reconcilers

import (
	"context"
	"fmt"
	"reflect"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/gotype"
)

// ApplyingObjectManager is the [ObjectManager] that updates objects by server-side apply. The API server knows the
// owner of each field. So the fields of other owners stay unchanged, fields that are no longer desired are removed, and
// the author writes no merge.
//
// The fields that the author set are applied. Of a Go type these are the fields that are not zero, and zero values in a
// pointer, a list or a map. An empty list or map that is not nil counts as set. Other zero values of a Go type count as
// not set: to apply them, use unstructured objects, whose content is applied unchanged, or ApplyConfiguration. The
// status, and the metadata that the API server writes, are never applied.
//
// An object is created by a plain create, which fails if the name is taken: an apply would merge into an object of
// another program. An apply has the UID of the object that was read: if that object is gone, it is not created again,
// and another object of its name is not changed. A terminating object is not written: it is returned unchanged.
//
// The API server counts the defaults that it adds to a created object as fields of the creator. So the first apply to
// the object takes two requests. The first patches the managed fields, so that all fields of the create count as
// applied. The second is the apply. It removes the fields that are not desired, and the API server sets their defaults
// again.
//
// Nothing is sent if the managed fields of the object show that it agrees with the desired object. The manager learns
// the rest from the answers to its requests, and once more after a restart of the program:
//
//   - A value that the API server writes in another way (1 for 1000m), or that an admission webhook changes, costs one
//     apply, which changes nothing.
//   - A cache that strips managed fields costs one apply, which changes nothing, unless the object has no other fields
//     than those that are desired. The client in memory that tests use strips them too, unless it has the option
//     WithReturnManagedFields.
//   - An object that has defaults, and was created but never applied, costs the two requests of its first apply. From
//     then on a restart does not write it.
//
// Type may be a duck type: what the duck type does not cover is not applied, and stays.
//
// The API server refuses some writes as invalid, such as a change of an immutable field. Below a root, the same write
// is not sent again while neither the object nor what is desired changes, and for ten minutes at most: the error of the
// first attempt is returned, without a log line and an event.
//
// The outcome is recorded as an event on the reconciled resource, unless an error is quiet, or only the managed fields
// of the object have changed. Errors are returned unchanged. Secret values are never logged.
type ApplyingObjectManager[Type client.Object] struct {
	// Name identifies the manager in errors. Default: the object's kind followed by ApplyingObjectManager.
	Name string

	// Type is an object of the managed type. It is required for unstructured and duck types, which have to carry their
	// kind. Default: an empty Type.
	Type Type

	// FieldManager is the name of the owner of the fields, for the API server. Use the name of the controller, and
	// never change it: the fields that were applied under the old name would belong to another manager. Two nodes that
	// write to one object need different names. At most 128 characters. Required.
	FieldManager string

	// Conflicts is the policy for desired fields that others own with another value. Default: ForceConflicts.
	Conflicts ConflictPolicy

	// TakeOverFrom are the names of field managers that wrote the object by creates and updates before. An example is
	// an earlier version of the controller, with an UpdatingObjectManager. Fields that they wrote are removed if they
	// are not desired. No other program may use these names on such objects. Optional.
	TakeOverFrom []string

	// ApplyConfiguration returns what is applied in place of desired, usually a generated apply configuration. If it
	// has no name, namespace, kind or owner references, those of desired are added. It must not depend on the time or
	// on random values. Optional.
	ApplyConfiguration func(
		ctx context.Context, resource client.Object, desired Type,
	) (runtime.ApplyConfiguration, error)

	// Finalizer is put on the reconciled resource before an object is created, and taken off when the object is gone.
	// It is for objects that the resource does not own. Optional.
	Finalizer string

	// TrackDesired wakes the reconciled resource when the object changes or goes. It is for objects that the resource
	// does not own. Default: false.
	TrackDesired bool

	// DeletionPropagation is the propagation policy for deletes of the object. Default: Background, which deletes what
	// the object owns too.
	DeletionPropagation metav1.DeletionPropagation

	// Sanitize returns what may be logged of an object. Its argument is a copy; the copy of a Secret has no values.
	// Default: returns its argument.
	Sanitize func(child Type) interface{}

	initOnce   sync.Once
	lastWrites lastWrites
}

var _ ObjectManager[client.Object] = (*ApplyingObjectManager[client.Object])(nil)

func (m *ApplyingObjectManager[Type]) init() {
	m.initOnce.Do(func() {
		m.Type = defaultType(m.Type)
		if m.Name == "" {
			m.Name = fmt.Sprintf("%sApplyingObjectManager", typeName(m.Type))
		}
		if m.Conflicts == "" {
			m.Conflicts = ForceConflicts
		}
		m.lastWrites.limit = maxStandaloneWrites
	})
}

// SetupWithManager validates, and watches the type if it is tracked.
func (m *ApplyingObjectManager[Type]) SetupWithManager(ctx context.Context, _ Manager, bldr *Builder) error {
	m.init()
	if err := m.Validate(ctx); err != nil {
		return err
	}
	if !m.TrackDesired {
		return nil
	}
	if err := WatchTracked(ctx, bldr, m.Type); err != nil {
		return m.errorf("is unable to watch %s: %w", typeName(m.Type), err)
	}
	return nil
}

// Validate checks that FieldManager is set, and that Conflicts and DeletionPropagation are known.
func (m *ApplyingObjectManager[Type]) Validate(context.Context) error {
	m.init()
	return m.check()
}

// errorf returns an error of the manager.
func (m *ApplyingObjectManager[Type]) errorf(format string, args ...any) error {
	return fmt.Errorf("ApplyingObjectManager %q "+format, append([]any{m.Name}, args...)...)
}

func (m *ApplyingObjectManager[Type]) check() error {
	if gotype.IsNil(m.Type) {
		return m.errorf("must define Type since none can be made of %s", reflect.TypeFor[Type]())
	}
	if lacksKind(m.Type) {
		return m.errorf("must define Type with apiVersion and kind since it is unstructured")
	}
	if m.FieldManager == "" {
		return m.errorf("must define FieldManager")
	}
	if len(m.FieldManager) > validation.FieldManagerMaxLength {
		return m.errorf("must have a FieldManager of at most %d characters", validation.FieldManagerMaxLength)
	}
	switch m.Conflicts {
	case ForceConflicts, FailOnConflicts, LeaveConflicts:
	default:
		return m.errorf("must have a known ConflictPolicy, not %q", m.Conflicts)
	}
	if err := checkPropagation(m.DeletionPropagation); err != nil {
		return m.errorf("%w", err)
	}
	return nil
}

// Describe returns what the manager does with its type.
func (m *ApplyingObjectManager[Type]) Describe() Description {
	m.init()
	return Description{
		Kind:   "ApplyingObjectManager",
		Name:   m.Name,
		Detail: typeName(m.Type),
		Uses: append(
			[]Access{{Object: m.Type, Verbs: []string{"create", "patch", "delete"}}},
			finalizerAccess(m.Finalizer, false)...),
		Finalizers: nonEmpty(m.Finalizer),
	}
}

// Manage makes actual agree with desired, see [ObjectManager].
func (m *ApplyingObjectManager[Type]) Manage(
	ctx context.Context, resource client.Object, actual, desired Type,
) (Type, error) {
	m.init()
	var none Type
	if err := m.check(); err != nil {
		return none, err
	}
	w := objectWriter[Type]{
		resource:    resource,
		finalizer:   m.Finalizer,
		tracks:      m.TrackDesired,
		propagation: m.DeletionPropagation,
		sanitize:    m.Sanitize,
		lastWrites:  &m.lastWrites,
	}
	if err := w.start(ctx, desired); err != nil {
		return none, fmt.Errorf("ApplyingObjectManager %q: %w", m.Name, err)
	}
	how, err := m.callFor(ctx, resource, desired)
	if err != nil {
		return none, err
	}
	return w.manage(ctx, how, actual, desired)
}

// appliesAllDesired reports whether manager applies all that is desired, so that what is desired has to be made from
// scratch.
func appliesAllDesired(manager any) bool {
	m, ok := manager.(interface{ appliesAllDesired() bool })
	return ok && m.appliesAllDesired()
}

func (m *ApplyingObjectManager[Type]) appliesAllDesired() bool {
	return m.ApplyConfiguration == nil
}
