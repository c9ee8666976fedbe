package reconcilers

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"github.com/espalier-dev/espalier/duck"
	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/resourcestate"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/diff"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// UpdatingObjectManager is the [ObjectManager] that creates, updates and deletes whole objects: an update reads what is
// there, merges what is desired into it, and writes the outcome if it differs.
//
// The API server and admission webhooks add to an object (defaults, injected fields). The manager learns from the
// answer to each write what they add. This is no difference as long as the desired object stays the same. So an object
// is written once after a change of the desired object. After a restart of the program it is written once more if
// anything was added to it.
//
// Each write applies only to the object as it was read: an update has the resource version, and a delete has the
// resource version and the UID. A change since then is a conflict. The conflict is returned, so that the next request
// tries again with a fresh read. A terminating object is not written: it is returned unchanged.
//
// The API server refuses some writes as invalid, such as a change of an immutable field. Below a root, the same write
// is not sent again while neither the object nor what is desired changes, and for ten minutes at most: the error of the
// first attempt is returned, without a log line and an event.
//
// The outcome is recorded as an event on the reconciled resource, unless an error is quiet. Errors are returned
// unchanged. Secret values are never logged.
type UpdatingObjectManager[Type client.Object] struct {
	// Name identifies the manager in errors. Default: the object's kind followed by UpdatingObjectManager.
	Name string

	// Type is an object of the managed type. It is required for unstructured and duck types, which have to carry their
	// kind. Default: an empty Type.
	Type Type

	// Finalizer is put on the reconciled resource before an object is created, and taken off when the object is gone.
	// It is for objects that the resource does not own. Optional.
	Finalizer string

	// TrackDesired wakes the reconciled resource when the object changes or goes. It is for objects that the resource
	// does not own. Default: false.
	TrackDesired bool

	// DeletionPropagation is the propagation policy for deletes of the object. Default: Background, which deletes what
	// the object owns too.
	DeletionPropagation metav1.DeletionPropagation

	// HarmonizeImmutableFields copies to desired the fields of current that cannot change after creation. It may change
	// desired only. Optional.
	HarmonizeImmutableFields func(current, desired Type)

	// MergeBeforeUpdate copies the desired fields to current. Fields that it does not copy stay as others set them. It
	// may change current only, and must not depend on the time or on random values. Required.
	MergeBeforeUpdate func(current, desired Type)

	// Sanitize returns what may be logged of an object. Its argument is a copy; the copy of a Secret has no values.
	// Default: returns its argument.
	Sanitize func(child Type) interface{}

	// DangerouslyAllowDuckTypes lets Type be a duck type, although an update loses what the duck type does not cover.
	DangerouslyAllowDuckTypes bool

	initOnce   sync.Once
	lastWrites resourcestate.LastWrites
}

var _ ObjectManager[client.Object] = (*UpdatingObjectManager[client.Object])(nil)

func (m *UpdatingObjectManager[Type]) init() {
	m.initOnce.Do(func() {
		m.Type = defaultType(m.Type)
		if m.Name == "" {
			m.Name = fmt.Sprintf("%sUpdatingObjectManager", typeName(m.Type))
		}
		m.lastWrites.Limit = maxStandaloneWrites
	})
}

// Setup fills in the defaults and validates.
//
// Deprecated: use SetupWithManager.
func (m *UpdatingObjectManager[Type]) Setup(ctx context.Context) error {
	m.init()
	return m.Validate(ctx)
}

// SetupWithManager validates, and watches the type if it is tracked.
func (m *UpdatingObjectManager[Type]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	m.init()
	if err := m.Validate(ctx); err != nil {
		return err
	}
	if !m.TrackDesired {
		return nil
	}
	if err := WatchTracked(ctx, bldr, m.Type); err != nil {
		return fmt.Errorf("UpdatingObjectManager %q is unable to watch %s: %w", m.Name, typeName(m.Type), err)
	}
	return nil
}

// Validate checks that MergeBeforeUpdate is set, and that a duck type is allowed. It needs a config on the context.
func (m *UpdatingObjectManager[Type]) Validate(ctx context.Context) error {
	if m.MergeBeforeUpdate == nil {
		return fmt.Errorf("UpdatingObjectManager %q must define MergeBeforeUpdate", m.Name)
	}
	if err := checkPropagation(m.DeletionPropagation); err != nil {
		return fmt.Errorf("UpdatingObjectManager %q %w", m.Name, err)
	}
	if m.DangerouslyAllowDuckTypes || gotype.IsNil(m.Type) {
		return nil
	}
	config, err := RetrieveConfig(ctx)
	if err != nil {
		return fmt.Errorf("UpdatingObjectManager %q: %w", m.Name, err)
	}
	if !config.IsEmpty() && duck.IsDuck(m.Type, config.Scheme()) {
		return fmt.Errorf("UpdatingObjectManager %q must enable DangerouslyAllowDuckTypes to use a duck type", m.Name)
	}
	return nil
}

// Describe returns what the manager does with its type.
func (m *UpdatingObjectManager[Type]) Describe() Description {
	m.init()
	return Description{
		Kind:   "UpdatingObjectManager",
		Name:   m.Name,
		Detail: typeName(m.Type),
		Uses: append(
			[]Access{{Object: m.Type, Verbs: []string{"create", "update", "delete"}}},
			finalizerAccess(m.Finalizer, false)...),
		Finalizers: nonEmpty(m.Finalizer),
		tracks:     m.TrackDesired,
	}
}

func (m *UpdatingObjectManager[Type]) tracksDesired() bool { return m.TrackDesired }

// Manage makes actual agree with desired, see [ObjectManager].
func (m *UpdatingObjectManager[Type]) Manage(
	ctx context.Context, resource client.Object, actual, desired Type,
) (Type, error) {
	m.init()
	var none Type
	if m.MergeBeforeUpdate == nil {
		return none, m.Validate(ctx)
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
		return none, fmt.Errorf("UpdatingObjectManager %q: %w", m.Name, err)
	}
	if m.DangerouslyAllowDuckTypes {
		w.config = w.config.WithDangerousDuckClientOperations()
	}
	return w.manage(ctx, m, actual, desired)
}

var _ objectStrategy[client.Object] = (*UpdatingObjectManager[client.Object])(nil)

// identify identifies desired, see objectStrategy.
func (m *UpdatingObjectManager[Type]) identify(desired Type) resourcestate.Desired {
	return resourcestate.DesiredOf(desired)
}

// create creates desired, see objectStrategy.
func (m *UpdatingObjectManager[Type]) create(ctx context.Context, w objectWriter[Type], desired Type) (Type, error) {
	created := copyOf(desired)
	if err := w.config.Create(ctx, created); err != nil {
		var none Type
		return none, err
	}
	if m.HarmonizeImmutableFields != nil {
		// The next update will desire this.
		desired = copyOf(desired)
		m.HarmonizeImmutableFields(copyOf(created), desired)
		if err := normalize(desired); err != nil {
			log := logr.FromContextOrDiscard(ctx).V(detailed)
			log.Info("unable to learn from what was created", "error", err.Error())
			return created, nil
		}
	}
	m.recordWrite(ctx, w, created, desired, m.identify(desired))
	return created, nil
}

// update updates actual, see objectStrategy.
func (m *UpdatingObjectManager[Type]) update(
	ctx context.Context, w objectWriter[Type], actual, desired Type,
) (Type, error) {
	var none Type
	if m.HarmonizeImmutableFields != nil {
		m.HarmonizeImmutableFields(actual, desired)
		if err := normalize(desired); err != nil {
			return none, err
		}
	}

	identity := resourcestate.DesiredFor(desired, actual)
	known := w.lastWrites.Get(actual.GetUID(), identity)
	if known.Agreed(actual) {
		// This is not logged, because it happens in nearly every request.
		w.saved(ctx)
		return actual, nil
	}
	log := logr.FromContextOrDiscard(ctx).V(detailed)
	additions, _ := known.Learned.(*Patch)
	current, err := m.merge(ctx, actual, desired, additions)
	if err != nil {
		return none, err
	}
	if equality.Semantic.DeepEqual(actual, current) {
		log.Info("resource is in sync, no update required")
		w.lastWrites.Record(actual, identity, known.Learned)
		return actual, nil
	}

	// The managed fields do not tell who wrote last.
	differ := func() differences { return differences{fields: differentFields(actual, current)} }
	if err := w.mayUpdate(ctx, actual, identity, differ); err != nil {
		return none, err
	}
	if log.Enabled() {
		log.Info("updating resource", "diff", diff.Diff(w.loggable(actual), w.loggable(current)))
	}
	if err := w.config.Update(ctx, current); err != nil {
		w.noteRefusal(ctx, w.writeOf(actual, identity), err)
		return none, w.failed(ctx, updating, actual, err)
	}
	m.recordWrite(ctx, w, current, desired, identity)
	if resourcestate.SameVersion(current, actual) {
		// The server completed what was written to the object that it had, and stored nothing.
		return current, nil
	}
	noteWritten(ctx, w.resource, actual, 1)
	w.succeeded(updating, actual)
	noteWrite(ctx, "updated", written{verb: "update", object: actual}, "")
	return current, nil
}

// merge returns a copy of actual with what is desired, and with what the server is known to add to that, nil for
// nothing.
func (m *UpdatingObjectManager[Type]) merge(
	ctx context.Context, actual, desired Type, additions *Patch,
) (Type, error) {
	current := copyOf(actual)
	// The author's function may let current share what desired refers to, and change it there. Desired has to stay.
	expected := copyOf(desired)
	if additions != nil {
		if err := additions.Apply(expected); err != nil {
			logr.FromContextOrDiscard(ctx).V(detailed).Info("unable to patch desired child from mutation cache, "+
				"this error is usually benign", "error", err.Error())
			expected = copyOf(desired)
		}
	}
	m.MergeBeforeUpdate(current, expected)
	keepRingLabels(ctx, actual, current)
	if err := normalize(current); err != nil {
		return current, err
	}
	moveStringData(current)
	return current, nil
}

// recordWrite keeps what the server added to what was desired. Written is its answer.
func (m *UpdatingObjectManager[Type]) recordWrite(
	ctx context.Context, w objectWriter[Type], written, desired Type, identity resourcestate.Desired,
) {
	additions, err := m.additions(ctx, written, desired)
	if err != nil {
		logr.FromContextOrDiscard(ctx).V(detailed).Info("unable to generate mutation patch", "error", err.Error())
	}
	w.lastWrites.Record(written, identity, additions)
}

// additions returns the patch by which desired becomes written. It returns nil if the patch does not do that: if the
// author's function merges a list into another, the items have other indexes than in desired.
func (m *UpdatingObjectManager[Type]) additions(ctx context.Context, written, desired Type) (*Patch, error) {
	base, err := m.merge(ctx, written, desired, nil)
	if err != nil {
		return nil, err
	}
	additions, err := NewPatch(base, written)
	if err != nil || string(additions.bytes) == "[]" {
		return nil, err
	}
	// The patch is applied to desired, whose generation is not the generation of an object in the cluster.
	additions.generation = desired.GetGeneration()
	proof, err := m.merge(ctx, written, desired, additions)
	if err != nil || !equality.Semantic.DeepEqual(proof, written) {
		return nil, err
	}
	return additions, nil
}

// MergeMaps returns a new map with the entries of all maps. For equal keys, the entry of the later map wins. The result
// is never nil, and the arguments are not changed.
func MergeMaps(ms ...map[string]string) map[string]string {
	merged := map[string]string{}
	for _, m := range ms {
		maps.Copy(merged, m)
	}
	return merged
}

// MergeLabels puts the labels and annotations of desired on current, and leaves those that others have put there. It is
// for a MergeBeforeUpdate. A label that is no longer desired stays; server-side apply would remove it.
func MergeLabels(current, desired client.Object) {
	if labels := desired.GetLabels(); len(labels) > 0 {
		current.SetLabels(MergeMaps(current.GetLabels(), labels))
	}
	if annotations := desired.GetAnnotations(); len(annotations) > 0 {
		current.SetAnnotations(MergeMaps(current.GetAnnotations(), annotations))
	}
}
