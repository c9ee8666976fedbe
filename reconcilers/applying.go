package reconcilers

import (
	"context"
	"fmt"
	"reflect"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ApplyingObjectManager is the [ObjectManager] that says what it wants of an object by server-side apply: the API server knows
// whose each field is, so the fields that others own stay as they are, those that leave what is desired go, and no merge has to
// be written.
//
// What is desired is what the author set. Of a Go type that is whatever is not zero, and zero values too where a pointer, a
// list or a map holds them; an empty list or map that is not nil counts as set. To ask for a zero that the Go type cannot tell
// from one that nobody set, use unstructured objects, whose content is applied as it is, or ApplyConfiguration. The status, and
// the metadata that the API server writes, are never applied.
//
// An object is created by a plain create, which fails if there is one of that name, for an apply would merge into an object of
// somebody else. The creator is noted as FieldManager followed by a digest of the names of the fields. An apply means the very
// object that was read, by its UID: one that is gone is not created again, and one that took its name is not touched. An object
// that is terminating is not written any more, whether it is desired or not: it is returned as it is.
//
// Nothing is sent if the managed fields of the object show that it agrees with what is desired, after a restart of the program
// too. What the API server makes of a value (1 of 1000m), and what admission webhooks do, is learned from its answer, and costs
// one apply that changes nothing after a restart. So does a cache that strips managed fields; the client in memory that tests
// use shows them only if it is asked to (WithReturnManagedFields).
//
// Type may be a duck type: what the duck type does not cover is not applied, and stays.
//
// The outcome is recorded as an event on the reconciled resource, unless an error is quiet. Errors are returned as they are.
// Secret values are not logged, whether or not Sanitize is set.
type ApplyingObjectManager[Type client.Object] struct {
	// Name identifies the manager in errors. Default: the object's kind followed by ApplyingObjectManager.
	Name string

	// Type is an object of the managed type. It is required for unstructured and duck types, which have to carry their kind.
	// Default: an empty Type.
	Type Type

	// FieldManager is the name by which the API server knows whose the fields are. It names the controller, and has to stay the
	// same for ever: under another name, the fields that were applied before are somebody else's. Two nodes that write to one
	// object need a name each. At most 103 characters. Required.
	FieldManager string

	// Conflicts says what becomes of fields that others own and have another value for. Default: ForceConflicts.
	Conflicts ConflictPolicy

	// TakeOverFrom are the names of field managers that wrote the object by creates and updates before, such as that of a version
	// of the controller that used an UpdatingObjectManager. What they wrote, and is not desired, goes. Nobody else may use
	// these names on such objects. Optional.
	TakeOverFrom []string

	// ApplyConfiguration returns what is to be applied in place of desired: a generated apply configuration, as a rule. The
	// name, namespace, kind and owner references of desired are added where it does not have them. It must not depend on the
	// time or on chance. Optional.
	ApplyConfiguration func(ctx context.Context, resource client.Object, desired Type) (runtime.ApplyConfiguration, error)

	// Finalizer is put on the reconciled resource before an object is created, and taken off when the object is gone. It is for
	// objects that the resource does not own. Optional.
	Finalizer string

	// TrackDesired wakes the reconciled resource when the object changes or goes. It is for objects that the resource does not
	// own. Default: false.
	TrackDesired bool

	// DeletionPropagation says what becomes of what the object owns when it is deleted. Default: Background, they go too.
	DeletionPropagation metav1.DeletionPropagation

	// Sanitize returns what may be logged of an object: it gets a copy, which of a Secret has no values. Default: that copy.
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
		return fmt.Errorf("ApplyingObjectManager %q is unable to watch %s: %w", m.Name, typeName(m.Type), err)
	}
	return nil
}

// Validate checks that FieldManager is set, and that what is chosen from is one of the choices.
func (m *ApplyingObjectManager[Type]) Validate(context.Context) error {
	m.init()
	return m.check()
}

func (m *ApplyingObjectManager[Type]) check() error {
	if isNil(m.Type) {
		return fmt.Errorf("ApplyingObjectManager %q must define Type since none can be made of %s", m.Name, reflect.TypeFor[Type]())
	}
	if lacksKind(m.Type) {
		return fmt.Errorf("ApplyingObjectManager %q must define Type with apiVersion and kind since it is unstructured", m.Name)
	}
	if m.FieldManager == "" {
		return fmt.Errorf("ApplyingObjectManager %q must define FieldManager", m.Name)
	}
	if len(m.FieldManager) > maxFieldOwner {
		return fmt.Errorf("ApplyingObjectManager %q must have a FieldManager of at most %d characters", m.Name, maxFieldOwner)
	}
	switch m.Conflicts {
	case ForceConflicts, FailOnConflicts, LeaveConflicts:
	default:
		return fmt.Errorf("ApplyingObjectManager %q must have a known ConflictPolicy, not %q", m.Name, m.Conflicts)
	}
	if err := checkPropagation(m.DeletionPropagation); err != nil {
		return fmt.Errorf("ApplyingObjectManager %q %w", m.Name, err)
	}
	return nil
}

// Describe tells what the manager does with its type.
func (m *ApplyingObjectManager[Type]) Describe() Description {
	m.init()
	return Description{
		Kind:   "ApplyingObjectManager",
		Name:   m.Name,
		Detail: typeName(m.Type),
		Uses: append(
			[]Access{{Object: m.Type, Verbs: []string{"create", "patch", "delete"}}},
			finalizerAccess(m.Finalizer, false)...),
	}
}

// Manage makes actual agree with desired, see [ObjectManager].
func (m *ApplyingObjectManager[Type]) Manage(ctx context.Context, resource client.Object, actual, desired Type) (Type, error) {
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
		lastWrites:  lastWritesOf(ctx, &m.lastWrites),
	}
	if err := w.useConfigs(ctx); err != nil {
		return none, fmt.Errorf("ApplyingObjectManager %q: %w", m.Name, err)
	}
	if err := normalize(desired); err != nil {
		return none, fmt.Errorf("ApplyingObjectManager %q: %w", m.Name, err)
	}
	how := &application[Type]{manager: m, owner: fieldOwner{name: m.FieldManager, before: m.TakeOverFrom}}
	if !isNil(desired) {
		if err := how.ask(ctx, resource, desired); err != nil {
			return none, err
		}
	}
	return w.manage(ctx, how, actual, desired)
}

// appliesAllDesired tells whether manager applies all that is desired, so that what is desired has to be made from scratch.
func appliesAllDesired(manager any) bool {
	m, ok := manager.(interface{ appliesAllDesired() bool })
	return ok && m.appliesAllDesired()
}

func (m *ApplyingObjectManager[Type]) appliesAllDesired() bool {
	return m.ApplyConfiguration == nil
}
