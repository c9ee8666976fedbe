package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// application is one call of an [ApplyingObjectManager].
type application[Type client.Object] struct {
	manager *ApplyingObjectManager[Type]
	owner   fieldOwner
	// given is what the author has to be applied in place of what is desired; nil if that is not asked for.
	given runtime.ApplyConfiguration
	// intent is that of what is desired, and of what is given.
	hash desiredHash
}

var _ objectStrategy[client.Object] = (*application[client.Object])(nil)

// errNotFromScratch guards what others own: to apply a copy of an object is to claim all of its fields.
var errNotFromScratch = errors.New("what is desired must be made from scratch, not of the object that is there, or ApplyConfiguration be defined")

var errNoApplyConfiguration = errors.New("ApplyConfiguration returned nothing to apply")

// ask asks the author what is to be applied in place of desired.
func (a *application[Type]) ask(ctx context.Context, resource client.Object, desired Type) error {
	if a.manager.ApplyConfiguration == nil {
		if desired.GetResourceVersion() != "" {
			return fmt.Errorf("ApplyingObjectManager %q is unable to apply %s: %w", a.manager.Name, describeObject(desired), errNotFromScratch)
		}
		a.hash = hashOfDesired(desired)
		return nil
	}
	given, err := a.manager.ApplyConfiguration(ctx, resource, desired)
	if err != nil {
		return err
	}
	if isNil(given) {
		return fmt.Errorf("ApplyingObjectManager %q: %w", a.manager.Name, errNoApplyConfiguration)
	}
	a.given, a.hash = given, hashOfDesired([]any{desired, given})
	return nil
}

// create creates desired, see objectStrategy.
func (a *application[Type]) create(ctx context.Context, w objectWriter[Type], desired Type) (Type, error) {
	var none Type
	wanted, err := a.wanted(w, desired)
	if err != nil {
		return none, err
	}
	answer := wanted.object()
	if err := w.config.Create(ctx, answer, client.FieldOwner(a.owner.creator(wanted))); err != nil {
		return none, err
	}
	created, err := typed(answer, desired)
	if err != nil {
		return none, err
	}
	a.recordWrite(w, wanted, created)
	return created, nil
}

// update applies what is desired to actual, see objectStrategy.
func (a *application[Type]) update(ctx context.Context, w objectWriter[Type], actual, desired Type) (Type, error) {
	var none Type
	known := w.lastWrites.get(actual.GetUID(), a.hash)
	if known.agreed(actual) {
		// Not even logged: this is what nearly every request comes to.
		return actual, nil
	}
	wanted, err := a.wanted(w, desired)
	if err != nil {
		return none, err
	}
	wanted.identify(actual)
	log := logr.FromContextOrDiscard(ctx)
	if a.inSync(wanted, actual, known) {
		log.Info("resource is in sync, no update required")
		w.lastWrites.record(actual, a.hash, known)
		return actual, nil
	}

	if log.Enabled() {
		log.Info("updating resource", "resource", w.loggable(desired))
	}
	answer, changed, err := a.apply(ctx, w, wanted, actual)
	if err != nil {
		return none, w.failed(ctx, updating, actual, err)
	}
	applied, err := typed(answer, desired)
	if err != nil {
		return none, err
	}
	a.recordWrite(w, wanted, applied)
	if !changed {
		return applied, nil
	}
	if log.Enabled() {
		log.Info("updated resource", "diff", cmp.Diff(w.loggable(unmanaged(actual)), w.loggable(unmanaged(applied)), IgnoreAllUnexported))
	}
	w.succeeded(updating, actual)
	return applied, nil
}

// wanted returns what is to be applied.
func (a *application[Type]) wanted(w objectWriter[Type], desired Type) (configuration, error) {
	kind, err := w.config.GroupVersionKindFor(desired)
	if err != nil {
		return nil, fmt.Errorf("ApplyingObjectManager %q is unable to tell the kind of what is desired: %w", a.manager.Name, err)
	}
	var wanted configuration
	if a.given == nil {
		wanted, err = configurationOf(desired, kind)
	} else {
		wanted, err = givenConfiguration(a.given, desired, kind)
	}
	if err != nil {
		return nil, fmt.Errorf("ApplyingObjectManager %q: %w", a.manager.Name, err)
	}
	return wanted, nil
}

// differences are those between what is wanted and obj, given its managed fields.
func (a *application[Type]) differences(wanted configuration, there map[string]any, obj Type) differences {
	who := a.owner.ownershipOf(obj.GetManagedFields(), wanted)
	return compare(wanted, there, who, a.manager.Conflicts == LeaveConflicts)
}

// inSync tells whether obj agrees with what is wanted, but for what is known to differ.
func (a *application[Type]) inSync(wanted configuration, obj Type, known lastWrite) bool {
	there, err := unstructuredOf(obj)
	if err != nil {
		return false
	}
	if len(obj.GetManagedFields()) > 0 {
		return a.differences(wanted, there, obj).within(known.accepted)
	}
	// The cache keeps managed fields to itself. Since an apply of the same, what is owned is what is wanted.
	return known.version != "" && compareValues(wanted, there).within(known.accepted)
}

// recordWrite keeps in what the answer to a write differs from what was wanted: it will not differ less after another.
func (a *application[Type]) recordWrite(w objectWriter[Type], wanted configuration, written Type) {
	accepted := differences{}
	if there, err := unstructuredOf(written); err == nil {
		maps.Copy(accepted, compareValues(wanted, there))
		if len(written.GetManagedFields()) > 0 {
			maps.Copy(accepted, a.differences(wanted, there, written))
		}
	}
	w.lastWrites.record(written, a.hash, lastWrite{accepted: accepted})
}

// apply makes actual agree with what is wanted. It returns what the server has then, and whether that is another version.
func (a *application[Type]) apply(
	ctx context.Context, w objectWriter[Type], wanted configuration, actual Type,
) (answer *unstructured.Unstructured, changed bool, err error) {
	var before client.Object = actual
	for range 2 {
		if before, err = a.owner.takeOver(ctx, w.config, wanted, before); err != nil {
			return nil, false, err
		}
		if answer, err = a.applyOnce(ctx, w, wanted, actual); err != nil {
			return nil, false, err
		}
		changed = changed || !sameVersion(answer, before)
		if len(a.owner.writers(answer.GetManagedFields())) == 0 {
			break
		}
		// The cache keeps managed fields to itself: only the answer shows that there is something to take over.
		before = answer
	}
	return answer, changed, nil
}

// maxLeft bounds the attempts to find out what to leave to others: the answer to the first names all, but for changes since.
const maxLeft = 3

func (a *application[Type]) applyOnce(
	ctx context.Context, w objectWriter[Type], wanted configuration, actual Type,
) (*unstructured.Unstructured, error) {
	options := []client.ApplyOption{client.FieldOwner(a.owner.name)}
	if a.manager.Conflicts == ForceConflicts {
		options = append(options, client.ForceOwnership)
	}
	for attempts := 0; ; attempts++ {
		answer := wanted.object()
		if uid := actual.GetUID(); uid != "" {
			answer.SetUID(uid)
		}
		err := asStale(w.config.Apply(ctx, client.ApplyConfigurationFromUnstructured(answer), options...))
		if err == nil {
			return answer, nil
		}
		conflict := newApplyConflictError(describeObject(actual), err)
		if conflict == nil {
			return nil, err
		}
		if a.manager.Conflicts != LeaveConflicts || attempts == maxLeft {
			return nil, conflict
		}
		rest, ok := conflict.without(wanted)
		if !ok {
			return nil, conflict
		}
		logr.FromContextOrDiscard(ctx).Info("leaving fields to others", "reason", conflict.Error())
		wanted = rest
	}
}

// typed returns what the server answered as an object of the type of sample.
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

// unstructuredOf returns the content of obj, which is not to be changed.
func unstructuredOf(obj client.Object) (map[string]any, error) {
	if u, ok := obj.(runtime.Unstructured); ok {
		return u.UnstructuredContent(), nil
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
}

// unmanaged returns a copy of obj without the managed fields, which say nothing to people.
func unmanaged[T client.Object](obj T) T {
	obj = copyOf(obj)
	obj.SetManagedFields(nil)
	return obj
}
