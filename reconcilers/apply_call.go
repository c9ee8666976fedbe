package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/managedfields"
	"github.com/espalier-dev/espalier/internal/message"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/diff"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// applyCall is one call of an [ApplyingObjectManager].
type applyCall[Type client.Object] struct {
	manager *ApplyingObjectManager[Type]
	owner   managedfields.Owner
	// given is what the author's ApplyConfiguration returned, or nil.
	given runtime.ApplyConfiguration
	// identity identifies what is desired and given.
	identity desiredHash
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
	call := &applyCall[Type]{manager: m, owner: managedfields.Owner{Name: m.FieldManager, Before: m.TakeOverFrom}}
	if gotype.IsNil(desired) {
		return call, nil
	}
	if m.ApplyConfiguration == nil {
		if desired.GetResourceVersion() != "" {
			return nil, m.errorf("is unable to apply %s: %w", describeObject(desired), errNotFromScratch)
		}
		call.identity = hashOfDesired(desired)
		return call, nil
	}
	given, err := m.ApplyConfiguration(ctx, resource, desired)
	if err != nil {
		return nil, err
	}
	if gotype.IsNil(given) {
		return nil, fmt.Errorf("ApplyingObjectManager %q: %w", m.Name, errNoApplyConfiguration)
	}
	call.given, call.identity = given, hashOfDesired([]any{desired, given})
	return call, nil
}

// hash returns the hash of what is desired and given, see objectStrategy.
func (a *applyCall[Type]) hash(Type) desiredHash { return a.identity }

// create creates desired, see objectStrategy.
func (a *applyCall[Type]) create(ctx context.Context, w objectWriter[Type], desired Type) (Type, error) {
	var none Type
	wanted, err := a.wanted(w, desired)
	if err != nil {
		return none, err
	}
	answer := wanted.Object()
	if err := w.config.Create(ctx, answer, client.FieldOwner(a.owner.Name)); err != nil {
		return none, err
	}
	return a.record(w, wanted, answer, desired)
}

// update applies what is desired to actual, see objectStrategy.
func (a *applyCall[Type]) update(ctx context.Context, w objectWriter[Type], actual, desired Type) (Type, error) {
	var none Type
	known := w.lastWrites.get(actual.GetUID(), a.identity)
	if known.agreed(actual) {
		// This is not logged, because it happens in nearly every request.
		return actual, nil
	}
	wanted, err := a.wanted(w, desired)
	if err != nil {
		return none, err
	}
	wanted.Identify(actual)
	log := logr.FromContextOrDiscard(ctx).V(detailed)
	if a.inSync(wanted, actual, known) {
		log.Info("resource is in sync, no update required")
		w.lastWrites.record(actual, a.identity, known)
		return actual, nil
	}

	content := func() map[string]any { return wanted.Object().Object }
	if err := w.mayUpdate(ctx, actual, a.identity, content); err != nil {
		return none, err
	}
	answer, changed, err := a.apply(ctx, w, wanted, actual)
	if err != nil {
		return none, w.failed(ctx, updating, actual, err)
	}
	applied, err := a.record(w, wanted, answer, desired)
	if err != nil || !changed || sameContent(actual, applied) {
		// A migration alone changes the managed fields, which is no news to the user.
		return applied, err
	}
	if log.Enabled() {
		before, after := w.loggable(unmanaged(actual)), w.loggable(unmanaged(applied))
		log.Info("updated resource", "diff", diff.Diff(before, after))
	}
	w.succeeded(updating, actual)
	logChange(ctx, "applied", actual, func() string { return a.changes(wanted, actual, known) })
	return applied, nil
}

// wanted returns what is to be applied.
func (a *applyCall[Type]) wanted(w objectWriter[Type], desired Type) (managedfields.Configuration, error) {
	kind, err := w.config.GroupVersionKindFor(desired)
	if err != nil {
		return nil, a.manager.errorf("is unable to tell the kind of what is desired: %w", err)
	}
	if a.given != nil {
		wanted, err := managedfields.FromApply(a.given, desired, kind)
		if err != nil {
			err = fmt.Errorf("ApplyingObjectManager %q: the apply configuration for %s %w",
				a.manager.Name, describeObject(desired), err)
		}
		return wanted, err
	}
	wanted, err := managedfields.FromObject(desired, kind)
	if err != nil {
		err = fmt.Errorf("ApplyingObjectManager %q: the content of %s cannot be sent: %w",
			a.manager.Name, describeObject(desired), err)
	}
	return wanted, err
}

// compare returns the differences between what is wanted and an object with such content and managed fields.
func (a *applyCall[Type]) compare(
	wanted managedfields.Configuration, there map[string]any, entries []metav1.ManagedFieldsEntry,
) managedfields.Differences {
	return managedfields.Compare(wanted, there, entries, a.owner, a.manager.Conflicts == LeaveConflicts)
}

// inSync reports whether obj agrees with what is wanted, but for differences that are accepted.
func (a *applyCall[Type]) inSync(wanted managedfields.Configuration, obj Type, known lastWrite) bool {
	entries := obj.GetManagedFields()
	if len(entries) == 0 && known.version == "" {
		// A cache may strip managed fields, so nobody knows which fields are to go. If there are only fields that are
		// wanted, none is.
		kind := schema.FromAPIVersionAndKind(fmt.Sprint(wanted["apiVersion"]), fmt.Sprint(wanted["kind"]))
		there, err := managedfields.FromObject(obj, kind)
		return err == nil && equality.Semantic.DeepEqual(there, wanted)
	}
	there, err := contentOf(obj)
	// Since an apply of the same, what is owned is what is wanted, also if a cache strips managed fields.
	return err == nil && a.compare(wanted, there, entries).SubsetOf(known.accepted)
}

// changes says in what obj did not agree with what is wanted.
func (a *applyCall[Type]) changes(wanted managedfields.Configuration, obj Type, known lastWrite) string {
	there, err := contentOf(obj)
	if err != nil {
		return "it differs"
	}
	found := a.compare(wanted, there, obj.GetManagedFields())
	return message.List(found.Beyond(known.accepted), maxLogged)
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
	w.lastWrites.record(written, a.identity, lastWrite{accepted: accepted})
	return written, nil
}

// apply makes actual agree with what is wanted. It returns what the server has then, and whether that is another
// version.
func (a *applyCall[Type]) apply(
	ctx context.Context, w objectWriter[Type], wanted managedfields.Configuration, actual Type,
) (answer *unstructured.Unstructured, changed bool, err error) {
	var before client.Object = actual
	for range 2 {
		if before, err = a.migrate(ctx, w.config, wanted, before); err != nil {
			return nil, false, err
		}
		if answer, err = a.applyOnce(ctx, w, wanted, actual); err != nil {
			// The cache will show the object as it was migrated.
			w.noteRefusal(ctx, w.writeOf(before, a.identity), err)
			return nil, false, err
		}
		changed = changed || !sameVersion(answer, before)
		if len(a.owner.Writers(answer.GetManagedFields())) == 0 {
			break
		}
		// The cache strips managed fields: only the answer shows that there are fields to migrate.
		before = answer
	}
	return answer, changed, nil
}

// migrate makes the plain writes to obj applies, in the cluster, and returns the object as the server then has it: obj
// itself if there are none. It is refused if obj has changed since it was read.
func (a *applyCall[Type]) migrate(
	ctx context.Context, c client.Client, wanted managedfields.Configuration, obj client.Object,
) (client.Object, error) {
	fields, err := a.owner.Migrate(obj.GetManagedFields(), wanted)
	if err != nil || fields == nil {
		return obj, err
	}
	patch, err := managedfields.Patch(fields, obj.GetResourceVersion())
	if err != nil {
		return nil, err
	}
	writers := a.owner.Writers(obj.GetManagedFields())
	logr.FromContextOrDiscard(ctx).Info("taking over the fields of earlier writes", "managers", writers)
	kind := map[string]any{"apiVersion": wanted["apiVersion"], "kind": wanted["kind"]}
	target := &unstructured.Unstructured{Object: kind}
	target.SetNamespace(obj.GetNamespace())
	target.SetName(obj.GetName())
	return target, c.Patch(ctx, target, patch, client.FieldOwner(a.owner.Name))
}

// maxLeft limits how often fields are left to others. The first answer names all of them, except for later changes.
const maxLeft = 3

func (a *applyCall[Type]) applyOnce(
	ctx context.Context, w objectWriter[Type], wanted managedfields.Configuration, actual Type,
) (*unstructured.Unstructured, error) {
	options := []client.ApplyOption{client.FieldOwner(a.owner.Name)}
	if a.manager.Conflicts == ForceConflicts {
		options = append(options, client.ForceOwnership)
	}
	for attempts := 0; ; attempts++ {
		answer := wanted.Object()
		if uid := actual.GetUID(); uid != "" {
			answer.SetUID(uid)
		}
		err := w.config.Apply(ctx, client.ApplyConfigurationFromUnstructured(answer), options...)
		if err == nil {
			return answer, nil
		}
		err = managedfields.AsConflict(err)
		conflict := newApplyConflictError(describeObject(actual), err)
		if conflict == nil {
			return nil, err
		}
		rest, ok := wanted.Without(conflict.fields())
		if a.manager.Conflicts != LeaveConflicts || attempts == maxLeft || !ok {
			return nil, conflict
		}
		logr.FromContextOrDiscard(ctx).Info("leaving fields to others", "reason", conflict.Error())
		wanted = rest
	}
}

// typed returns the answer of the server as an object of the type of sample.
func typed[T client.Object](answer *unstructured.Unstructured, sample T) (T, error) {
	obj := copyOf(sample)
	if u, ok := any(obj).(runtime.Unstructured); ok {
		u.SetUnstructuredContent(answer.Object)
		return obj, nil
	}
	reflect.ValueOf(obj).Elem().SetZero()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(answer.Object, obj); err != nil {
		var none T
		return none, fmt.Errorf("the answer of the API server is no %T: %w", obj, err)
	}
	return obj, nil
}

// contentOf returns the content of obj. The caller must not change it.
func contentOf(obj client.Object) (map[string]any, error) {
	if u, ok := obj.(runtime.Unstructured); ok {
		return u.UnstructuredContent(), nil
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
}

// sameContent reports whether two versions of an object differ at most in their managed fields.
func sameContent[T client.Object](before, after T) bool {
	before, after = unmanaged(before), unmanaged(after)
	after.SetResourceVersion(before.GetResourceVersion())
	after.GetObjectKind().SetGroupVersionKind(before.GetObjectKind().GroupVersionKind())
	return equality.Semantic.DeepEqual(before, after)
}

// unmanaged returns a copy of obj without the managed fields, which would fill the log.
func unmanaged[T client.Object](obj T) T {
	obj = copyOf(obj)
	obj.SetManagedFields(nil)
	return obj
}
