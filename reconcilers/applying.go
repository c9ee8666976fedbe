package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"sync"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/managedfields"
	"github.com/espalier-dev/espalier/internal/resourcestate"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
// Nothing is sent if the managed fields of the object show that it agrees with the desired object, also after a restart
// of the program. What is a default, they show too: an object is created by the manager FieldManager@digest, with a
// digest of the names of the fields that were desired. Of a list or an object that is owned as a whole, the defaults of
// the built-in kinds are known. The manager learns the rest from the answers to its requests, and once more after a
// restart:
//
//   - A value that the API server writes in another way (1 for 1000m), or that an admission webhook changes, costs one
//     apply, which changes nothing.
//   - A cache that strips managed fields costs one apply, which changes nothing, unless the object has no other fields
//     than those that are desired. The client in memory that tests use strips them too, unless it has the option
//     WithReturnManagedFields.
//   - An object with defaults that an earlier release created under the name FieldManager alone, and never applied,
//     costs the two requests of its first apply.
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
	//
	// Without it, the first apply to an object that the resource controls records an event FieldsStay, if the manager
	// that wrote the owner reference by creates or updates also wrote fields that are not desired. A dry run of a patch
	// then tells them from defaults.
	TakeOverFrom []string

	// TakeOverOnce limits TakeOverFrom to objects that the resource controls, and to one time for each. It is when the
	// manager first applies the object, or later as long as one of TakeOverFrom still owns the owner reference by
	// creates or updates. What the names write after that stays, and so do finalizers. If the cache strips managed
	// fields, each apply reads them from the API server before, and FieldsStay may be recorded again. Default: false.
	TakeOverOnce bool

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
	lastWrites resourcestate.LastWrites
}

// ConflictPolicy says what an [ApplyingObjectManager] does with a desired field that another field manager owns and has
// set to another value.
type ConflictPolicy string

const (
	// ForceConflicts takes the field from the other manager. Kubernetes recommends it for controllers. It is the
	// default.
	ForceConflicts ConflictPolicy = "Force"
	// FailOnConflicts applies nothing, and returns an [ApplyConflictError].
	FailOnConflicts ConflictPolicy = "Fail"
	// LeaveConflicts applies the other fields. The conflicting field stays with the other manager until that manager
	// gives it up.
	LeaveConflicts ConflictPolicy = "Leave"
)

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
		m.lastWrites.Limit = maxStandaloneWrites
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
		tracks:     m.TrackDesired,
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

// tracksDesired reports whether a manager has the resource woken by the objects that it writes. One that is around
// another says so by its description.
func tracksDesired(manager any) bool {
	if m, ok := manager.(interface{ tracksDesired() bool }); ok {
		return !gotype.IsNil(manager) && m.tracksDesired()
	}
	return Describe(manager).tracks
}

func (m *ApplyingObjectManager[Type]) tracksDesired() bool { return m.TrackDesired }

func (m *ApplyingObjectManager[Type]) appliesAllDesired() bool {
	return m.ApplyConfiguration == nil
}

// applyCall is one call of an [ApplyingObjectManager].
type applyCall[Type client.Object] struct {
	manager *ApplyingObjectManager[Type]
	owner   managedfields.Owner
	// given is what the author's ApplyConfiguration returned, or nil.
	given runtime.ApplyConfiguration
	// identity identifies what is desired and given.
	identity resourcestate.Desired
	// once are managers whose plain writes are taken over once. TakesOver is true if that is now.
	once      []string
	takesOver bool
}

var _ objectStrategy[client.Object] = (*applyCall[client.Object])(nil)

// errNotFromScratch protects the fields of other owners: an apply of a copy of an object makes the manager own all of
// its fields.
var errNotFromScratch = errors.New("what is desired must be made from scratch, not of the object that is there, " +
	"or ApplyConfiguration be defined")

var errNoApplyConfiguration = errors.New("ApplyConfiguration returned nothing to apply")

// callFor calls the author's ApplyConfiguration, if there is one. Desired may be nil.
func (m *ApplyingObjectManager[Type]) callFor(
	ctx context.Context, resource client.Object, desired Type,
) (*applyCall[Type], error) {
	call := &applyCall[Type]{
		manager: m, owner: managedfields.Owner{Name: m.FieldManager}, once: m.takesOverOnce(ctx),
	}
	if !m.TakeOverOnce {
		call.owner.Before = m.TakeOverFrom
	}
	if gotype.IsNil(desired) {
		return call, nil
	}
	if m.ApplyConfiguration == nil {
		if desired.GetResourceVersion() != "" {
			return nil, m.errorf("is unable to apply %s: %w", describeObject(desired), errNotFromScratch)
		}
		call.identity = resourcestate.DesiredOf(desired)
		return call, nil
	}
	given, err := m.ApplyConfiguration(ctx, resource, desired)
	if err != nil {
		return nil, err
	}
	if gotype.IsNil(given) {
		return nil, fmt.Errorf("ApplyingObjectManager %q: %w", m.Name, errNoApplyConfiguration)
	}
	call.given, call.identity = given, resourcestate.DesiredOf([]any{desired, given})
	return call, nil
}

// identify identifies what is desired and given, see objectStrategy.
func (a *applyCall[Type]) identify(Type) resourcestate.Desired { return a.identity }

// create creates desired, see objectStrategy.
func (a *applyCall[Type]) create(ctx context.Context, w objectWriter[Type], desired Type) (Type, error) {
	var none Type
	wanted, err := a.wanted(w, desired)
	if err != nil {
		return none, err
	}
	answer := wanted.Object()
	if err := w.config.Create(ctx, answer, client.FieldOwner(wanted.Creator(a.owner.Name))); err != nil {
		return none, err
	}
	return a.record(w, wanted, answer, desired)
}

// update applies what is desired to actual, see objectStrategy.
func (a *applyCall[Type]) update(ctx context.Context, w objectWriter[Type], actual, desired Type) (Type, error) {
	var none Type
	known := w.lastWrites.Get(actual.GetUID(), a.identity)
	if known.Agreed(actual) {
		// This is not logged, because it happens in nearly every request.
		w.saved(ctx)
		return actual, nil
	}
	wanted, err := a.wanted(w, desired)
	if err != nil {
		return none, err
	}
	wanted.Identify(actual)
	a.takeOver(w.resource, actual, actual.GetManagedFields())
	log := logr.FromContextOrDiscard(ctx).V(detailed)
	accepted, _ := known.Learned.(managedfields.Differences)
	if a.inSync(wanted, withoutRingLabels(w.config, actual), known.Version != "", accepted) {
		log.Info("resource is in sync, no update required")
		w.lastWrites.Record(actual, a.identity, known.Learned)
		return actual, nil
	}

	changes := func() differences { return a.differences(wanted, actual) }
	if err := w.mayUpdate(ctx, actual, a.identity, changes); err != nil {
		return none, err
	}
	answer, changed, err := a.apply(ctx, w, wanted, actual)
	if err != nil {
		return none, w.failed(ctx, updating, actual, err)
	}
	if changed {
		a.tellRemnants(ctx, w, wanted, actual, answer)
		noteWritten(ctx, w.resource, actual, 1)
	}
	applied, err := a.record(w, wanted, answer, desired)
	if err != nil {
		return applied, err
	}
	// A migration alone changes the managed fields, which is no news to the user.
	if changed && !sameContent(actual, applied) {
		if log.Enabled() {
			before, after := w.loggable(unmanaged(actual)), w.loggable(unmanaged(applied))
			log.Info("updated resource", "diff", diff.Diff(before, after))
		}
		w.succeeded(updating, actual)
		noteWrite(ctx, "applied", written{verb: "apply", object: actual}, "")
	}
	return applied, nil
}

// wanted returns what is to be applied. A list with two elements of the same keys is an error: a create would accept
// most of them, and no apply could change the object after that.
func (a *applyCall[Type]) wanted(w objectWriter[Type], desired Type) (managedfields.Configuration, error) {
	kind, err := w.config.GroupVersionKindFor(desired)
	if err != nil {
		return nil, a.manager.errorf("is unable to tell the kind of what is desired: %w", err)
	}
	var wanted managedfields.Configuration
	if a.given != nil {
		wanted, err = managedfields.FromApply(a.given, desired, kind)
		if err != nil {
			return nil, fmt.Errorf("ApplyingObjectManager %q: the apply configuration for %s %w",
				a.manager.Name, describeObject(desired), err)
		}
		wanted = withoutRingLabels(w.config, &unstructured.Unstructured{Object: wanted}).Object
	} else if wanted, err = managedfields.FromObject(desired, kind); err != nil {
		return nil, fmt.Errorf("ApplyingObjectManager %q: the content of %s cannot be sent: %w",
			a.manager.Name, describeObject(desired), err)
	}
	if twice := managedfields.DuplicateIn(kind.GroupKind(), wanted); twice != nil {
		return nil, apierrs.NewInvalid(kind.GroupKind(), desired.GetName(), field.ErrorList{
			{Type: field.ErrorTypeDuplicate, Field: twice.List, BadValue: twice.Keys},
		})
	}
	return wanted, nil
}

// compare returns the differences between what is wanted and an object with such content and managed fields.
func (a *applyCall[Type]) compare(
	wanted managedfields.Configuration, there map[string]any, entries []metav1.ManagedFieldsEntry,
) managedfields.Differences {
	return managedfields.Compare(wanted, there, entries, a.owner, a.manager.Conflicts == LeaveConflicts)
}

// inSync reports whether obj agrees with what is wanted, but for differences that are accepted. Known is true if the
// same was applied or compared before.
func (a *applyCall[Type]) inSync(
	wanted managedfields.Configuration, obj Type, known bool, accepted managedfields.Differences,
) bool {
	entries := obj.GetManagedFields()
	if len(entries) == 0 && !known {
		// A cache may strip managed fields, so nobody knows which fields are to go. If there are only fields that are
		// wanted, none is.
		kind := schema.FromAPIVersionAndKind(fmt.Sprint(wanted["apiVersion"]), fmt.Sprint(wanted["kind"]))
		there, err := managedfields.FromObject(obj, kind)
		return err == nil && equality.Semantic.DeepEqual(there, wanted)
	}
	there, err := contentOf(obj)
	// Since an apply of the same, what is owned is what is wanted, also if a cache strips managed fields.
	return err == nil && a.compare(wanted, there, entries).SubsetOf(accepted)
}

// record returns the answer to a write as an object of the type of desired. It remembers the differences between the
// answer and what was wanted, because another apply would not reduce them.
func (a *applyCall[Type]) record(
	w objectWriter[Type], wanted managedfields.Configuration, answer *unstructured.Unstructured, desired Type,
) (Type, error) {
	written, err := typed(answer, desired)
	if err != nil {
		return written, err
	}
	accepted := managedfields.Differences{}
	if there, err := contentOf(written); err == nil {
		accepted = a.compare(wanted, there, nil)
		maps.Copy(accepted, a.compare(wanted, there, written.GetManagedFields()))
	}
	w.lastWrites.Record(written, a.identity, accepted)
	return written, nil
}
