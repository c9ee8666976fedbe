package dependents

import (
	"context"
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/espalier-dev/espalier/feature/gate"
	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/reconcilers"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Dependent is an object that the resource needs. [Of] makes it. The package comment has a table of its switches. A
// switch returns the dependent, and is used before the first request.
type Dependent[T, CT client.Object] struct {
	plan
	desired func(ctx context.Context, resource T) (CT, error)
	gate    func(ctx context.Context, resource T) gate.Gate
	orphan  func(ctx context.Context, resource T) (bool, error)
	guard   func(ctx context.Context, resource T) (blocked string, err error)
	// fill are the functions that fill the cells.
	fill []func(ctx context.Context, live CT) error
	// object is an object of the type.
	object CT

	// owner is the kind of the resource. OurChild of the child needs it, and has no context to ask for it.
	owner atomic.Pointer[schema.GroupKind]

	initOnce sync.Once
	child    reconcilers.ChildReconciler[T, CT, client.ObjectList]
}

// Of returns a dependent whose object is the one that desired returns. The name identifies it in a [Set], in paths and
// messages. It is the value of the label [reconcilers.NodeLabel] of the object, so it must not change later, and is
// unique among the nodes of the tree that have children of the type.
//
// The function gives the object with its namespace, its name, and the fields that matter, and nothing that depends on
// the time or on chance. If it returns nil, there is to be no object. It may return [espalier.NotReady]: the dependent
// is then blocked, and the object stays as it is. It is not called for an object that is to be deleted, nor for a
// terminating resource unless OrphanWhen is used.
func Of[T, CT client.Object](
	name string, desired func(ctx context.Context, resource T) (CT, error),
) *Dependent[T, CT] {
	return &Dependent[T, CT]{
		plan: plan{name: name, kind: gotype.Name(reflect.TypeFor[CT]())}, desired: desired, object: gotype.Empty[CT](),
	}
}

// Type gives an object of the type. It is required for unstructured objects, and has to carry their kind.
func (d *Dependent[T, CT]) Type(object CT) *Dependent[T, CT] {
	d.object = object
	if gotype.IsNil(object) {
		return d
	}
	if kind := object.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		d.kind = kind
	}
	return d
}

// Gate has the object deleted while the gate is off. A nil gate is on. If the gate returns an error, the object stays
// as it is, and the error is returned.
func (d *Dependent[T, CT]) Gate(gate func(ctx context.Context, resource T) gate.Gate) *Dependent[T, CT] {
	d.gate = gate
	return d.with(gated, gate == nil)
}

// ReadOnly has the object read by its name and namespace, all else that desired returns is ignored. It is tracked, so
// that the resource is reconciled again when it changes, comes or goes. Its health counts.
func (d *Dependent[T, CT]) ReadOnly() *Dependent[T, CT] { return d.with(readOnly, false) }

// BlockOnAbsence says that a read-only object that does not exist blocks the dependent. It is the default.
func (d *Dependent[T, CT]) BlockOnAbsence() *Dependent[T, CT] { return d.with(blockOnAbsence, false) }

// IgnoreAbsent says that a read-only object may be missing. It is not reported then, and yields nothing.
func (d *Dependent[T, CT]) IgnoreAbsent() *Dependent[T, CT] { return d.with(ignoreAbsent, false) }

// Absent has the object deleted that this dependent made in an earlier version of the program: it has the label of the
// dependent, and the resource controls it. With Unowned, it has the label of the resource.
func (d *Dependent[T, CT]) Absent() *Dependent[T, CT] { return d.with(absent, false) }

// OrphanWhen has the object released while the function returns true: the owner reference and the label of the
// dependent are removed, and the object stays in place and is not managed. It does not become ours again: if the
// function returns false later, the name is taken.
func (d *Dependent[T, CT]) OrphanWhen(when func(ctx context.Context, resource T) (bool, error)) *Dependent[T, CT] {
	d.orphan = when
	return d.with(orphanWhen, when == nil)
}

// Unowned has the object made without an owner reference. It may be in any namespace, and survives the resource. It is
// found again by the label [OwnerLabel], which identifies the resource.
func (d *Dependent[T, CT]) Unowned() *Dependent[T, CT] { return d.with(unowned, false) }

// CreateOnly has the object never updated, with one exception: it is written once when it is suspended, and once when
// it is resumed. The annotation [SuspendedAnnotation] is on it in between.
func (d *Dependent[T, CT]) CreateOnly() *Dependent[T, CT] { return d.with(createOnly, false) }

// Auxiliary says that neither an error nor the health counts. An error is logged, reported to the supervisor, and not
// returned. The resource is reconciled again after a minute.
func (d *Dependent[T, CT]) Auxiliary() *Dependent[T, CT] { return d.with(auxiliary, false) }

// Unchecked says that the health does not count: the object is healthy as soon as it exists.
func (d *Dependent[T, CT]) Unchecked() *Dependent[T, CT] { return d.with(unchecked, false) }

// Guard has the dependent wait while the function returns a text, which says what for. The text is stable. An existing
// object stays as it is meanwhile. The function is asked in each request, but not before a deletion, and not for an
// object that exists while the supervision is [reconcilers.Suspend]. It may read tracked objects, whose events bring
// the resource back.
func (d *Dependent[T, CT]) Guard(
	guard func(ctx context.Context, resource T) (blocked string, err error),
) *Dependent[T, CT] {
	d.guard = guard
	return d.with(guarded, guard == nil)
}

// Needs has the dependent wait until all cells have a value. It may be used several times.
func (d *Dependent[T, CT]) Needs(cells ...AnyCell) *Dependent[T, CT] {
	d.needs = append(d.needs, cells...)
	return d.with(needsData, false)
}

// After has the dependent wait until the dependents of those names are done: their objects are ready, unchecked, or not
// desired. It may be used several times.
func (d *Dependent[T, CT]) After(names ...string) *Dependent[T, CT] {
	d.after = append(d.after, names...)
	return d.with(isAfter, false)
}

func (d *Dependent[T, CT]) with(s switchName, lacksFunction bool) *Dependent[T, CT] {
	d.set(s)
	if lacksFunction {
		d.missing = append(d.missing, s)
	}
	return d
}

// Node is a [Dependent] with an object of any type.
type Node[T client.Object] interface {
	planned() *plan
	check() error
	validate(ctx context.Context) error
	setUp(ctx context.Context, mgr reconcilers.Manager, bldr *reconcilers.Builder) error
	description() reconcilers.Description
	run(ctx context.Context, resource T, waits string) outcome
	remove(ctx context.Context, resource T) outcome
}

func (d *Dependent[T, CT]) planned() *plan { return &d.plan }

// check checks what the author said.
func (d *Dependent[T, CT]) check() error {
	if err := d.plan.check(); err != nil {
		return err
	}
	switch {
	case d.name == "":
		return d.errorf("must have a name")
	case d.desired == nil && !d.has(absent):
		return d.errorf("must have a function that returns what is desired")
	case gotype.IsNil(d.object):
		return d.errorf("must have a Type since none can be made of %s", reflect.TypeFor[CT]())
	}
	return nil
}

// validate checks the child.
func (d *Dependent[T, CT]) validate(ctx context.Context) error {
	if d.has(readOnly) {
		return nil
	}
	d.init()
	if err := d.child.Validate(ctx); err != nil {
		return d.errorf("must be a valid child: %w", err)
	}
	return nil
}

func (d *Dependent[T, CT]) setUp(ctx context.Context, mgr reconcilers.Manager, bldr *reconcilers.Builder) error {
	if d.has(readOnly) {
		return reconcilers.WatchTracked(reconcilers.Enter(ctx, d.name), bldr, d.object)
	}
	d.init()
	return d.child.SetupWithManager(ctx, mgr, bldr)
}

// description describes the child, with what the dependent waits for.
func (d *Dependent[T, CT]) description() reconcilers.Description {
	description := reconcilers.Description{
		Name: d.name,
		Uses: []reconcilers.Access{{Object: d.object, Verbs: []string{"get", "list", "watch"}}},
	}
	if !d.has(readOnly) {
		d.init()
		description = d.child.Describe()
	}
	description.Kind, description.Detail = "Dependent", d.describe()
	return description
}
