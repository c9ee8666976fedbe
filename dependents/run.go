package dependents

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/feature/gate"
	"github.com/espalier-dev/espalier/health"
	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/objectname"
	"github.com/espalier-dev/espalier/reconcilers"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// auxiliaryDelay is when the resource is reconciled again after an error of an auxiliary dependent, unless the error is
// durable. It is that of an auxiliary child.
const auxiliaryDelay = 10 * time.Second

// run makes the object as it should be. Waits says what the dependent waits for, or is empty.
func (d *Dependent[T, CT]) run(ctx context.Context, resource T, waits string) outcome {
	w := d.witnessed(ctx)
	o := d.keep(w.ctx, resource, waits)
	return d.reported(w, o)
}

// remove deletes the object, for a supervision that withdraws it and for a resource that is terminating.
func (d *Dependent[T, CT]) remove(ctx context.Context, resource T) outcome {
	terminating := resource.GetDeletionTimestamp() != nil
	if d.has(readOnly) || terminating && d.has(unowned) {
		return outcome{done: true}
	}
	w := d.witnessed(ctx)
	if released, err := d.release(w.ctx, resource); released || err != nil {
		return d.reported(w, outcome{done: true, err: err})
	}
	return d.reported(w, d.converge(w.ctx, resource, &pass[CT]{}))
}

// keep decides what is to be done with the object, and does it.
func (d *Dependent[T, CT]) keep(ctx context.Context, resource T, waits string) outcome {
	released, err := d.release(ctx, resource)
	if released || err != nil {
		return outcome{done: true, err: err}
	}
	off, err := d.isOff(ctx, resource)
	switch {
	case err != nil:
		return outcome{err: err}
	case off:
		return d.converge(ctx, resource, &pass[CT]{})
	}
	if waits == "" && d.guard != nil {
		if waits, err = d.guard(ctx, resource); err != nil {
			return outcome{err: err}
		}
	}
	if waits != "" {
		goOn, err := d.existsInSuspension(ctx, resource)
		if err != nil {
			return outcome{err: err}
		}
		if !goOn {
			return blocked(waits)
		}
	}
	desired, err := d.desired(ctx, resource)
	if notReady := (*espalier.NotReadyError)(nil); errors.As(err, &notReady) {
		o := blocked(notReady.Message)
		o.health.Reason, o.result.RequeueAfter = notReady.Reason, notReady.Delay
		o.runs, o.err = d.existsInSuspension(ctx, resource)
		return o
	}
	leave := errors.Is(err, reconcilers.OnlyReconcileChildStatus)
	switch {
	case err != nil && !leave:
		return outcome{err: err}
	case d.has(readOnly):
		return d.read(ctx, desired)
	}
	return d.converge(ctx, resource, &pass[CT]{desired: desired, keep: leave})
}

// isOff reports whether there is to be no object, whatever the author desires.
func (d *Dependent[T, CT]) isOff(ctx context.Context, resource T) (bool, error) {
	if d.has(absent) {
		return true, nil
	}
	if d.gate == nil {
		return false, nil
	}
	on, err := gate.Enabled(d.gate(ctx, resource))
	return err == nil && !on, err
}

// existsInSuspension reports whether the object exists, and is to be suspended. No guard keeps it from that.
func (d *Dependent[T, CT]) existsInSuspension(ctx context.Context, resource T) (bool, error) {
	if d.has(readOnly) || reconcilers.SupervisionOf(ctx, resource) != reconcilers.Suspend {
		return false, nil
	}
	p := &pass[CT]{keep: true}
	_, err := d.reconcileChild(reconcilers.WithSupervisor(ctx, nil), resource, p)
	return !gotype.IsNil(p.live), err
}

// converge has the child make the object as it should be, and fills the cells.
func (d *Dependent[T, CT]) converge(ctx context.Context, resource T, p *pass[CT]) outcome {
	unwanted := gotype.IsNil(p.desired) && !p.keep
	result, err := d.reconcileChild(ctx, resource, p)
	w, _ := reconcilers.SupervisorOf(ctx).(*witness)
	switch {
	case err != nil:
		if w != nil && !gotype.IsNil(p.desired) {
			w.object.Namespace, w.object.Name = p.desired.GetNamespace(), p.desired.GetName()
		}
		return outcome{err: err, result: result}
	case unwanted || gotype.IsNil(p.live):
		o := outcome{done: true, result: result}
		if !gotype.IsNil(p.live) && w != nil {
			w.live(p.live)
		}
		return o
	}
	o := d.found(ctx, p.live)
	o.result = result
	return o
}

// read reads the object of the name of desired.
func (d *Dependent[T, CT]) read(ctx context.Context, desired CT) outcome {
	if gotype.IsNil(desired) {
		return outcome{done: true}
	}
	config, err := reconcilers.RetrieveConfig(ctx)
	if err != nil {
		return outcome{err: err}
	}
	live := d.object.DeepCopyObject().(CT)
	err = config.TrackAndGet(ctx, client.ObjectKeyFromObject(desired), live)
	switch {
	case apierrs.IsNotFound(err) && d.has(ignoreAbsent):
		return outcome{done: true}
	case apierrs.IsNotFound(err):
		if w, ok := reconcilers.SupervisorOf(ctx).(*witness); ok {
			w.object.Namespace, w.object.Name = desired.GetNamespace(), desired.GetName()
		}
		return blocked("waiting for " + objectname.WithKind(d.kind, desired))
	case err != nil:
		return outcome{err: reconcilers.Failed(reconcilers.Enter(ctx, d.name), desired, err)}
	}
	return d.found(ctx, live)
}

// found fills the cells from the object, and says how it is.
func (d *Dependent[T, CT]) found(ctx context.Context, live CT) outcome {
	var o outcome
	w, _ := reconcilers.SupervisorOf(ctx).(*witness)
	if w != nil {
		w.live(live)
	}
	if live.GetDeletionTimestamp() == nil {
		for _, fill := range d.fill {
			err := fill(ctx, live)
			if notReady := (*espalier.NotReadyError)(nil); errors.As(err, &notReady) {
				o.result.RequeueAfter = notReady.Delay
				continue
			}
			if err != nil {
				if w != nil {
					w.observed.Store(false) // the child did not report this error
				}
				o.err = reconcilers.Failed(reconcilers.Enter(ctx, d.name), live, err)
				return o
			}
		}
	}
	if d.has(unchecked) {
		o.done = true
		return o
	}
	object := client.Object(live)
	if kind := d.gvk(ctx); object.GetObjectKind().GroupVersionKind().Empty() && !kind.Empty() {
		// The object belongs to the request, so a copy gets its kind.
		object = live.DeepCopyObject().(client.Object)
		object.GetObjectKind().SetGroupVersionKind(kind)
	}
	o.health = health.Of(object)
	o.done = isReady(o.health)
	return o
}

// release removes what makes the object ours if OrphanWhen says so.
func (d *Dependent[T, CT]) release(ctx context.Context, resource T) (released bool, err error) {
	if d.orphan == nil {
		return false, nil
	}
	if released, err = d.orphan(ctx, resource); err != nil || !released {
		return false, err
	}
	desired, err := d.desired(ctx, resource)
	if err != nil || gotype.IsNil(desired) {
		return true, err
	}
	config, err := reconcilers.RetrieveConfig(ctx)
	if err != nil {
		return true, err
	}
	live := d.object.DeepCopyObject().(CT)
	err = config.Get(ctx, client.ObjectKeyFromObject(desired), live)
	if err == nil && metav1.IsControlledBy(live, resource) && live.GetDeletionTimestamp() == nil {
		base := live.DeepCopyObject().(CT)
		disown(live, resource, d.name)
		err = config.Patch(ctx, live, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
		if err == nil {
			reconcilers.RecordEvent(ctx, resource, corev1.EventTypeNormal, "Orphaned",
				"Orphaned %s %q", d.kind, live.GetName())
		}
	}
	if err = client.IgnoreNotFound(err); err != nil {
		err = reconcilers.Failed(reconcilers.Enter(ctx, d.name), desired, err)
	}
	return true, err
}

// disown removes from an object the owner reference to the resource, and the label of the node.
func disown(object, resource client.Object, node string) {
	refs := slices.DeleteFunc(slices.Clone(object.GetOwnerReferences()), func(ref metav1.OwnerReference) bool {
		return ref.UID == resource.GetUID()
	})
	object.SetOwnerReferences(refs)
	if labels := maps.Clone(object.GetLabels()); labels[reconcilers.NodeLabel] == node {
		delete(labels, reconcilers.NodeLabel)
		object.SetLabels(labels)
	}
}

func (d *Dependent[T, CT]) gvk(ctx context.Context) schema.GroupVersionKind {
	config, err := reconcilers.RetrieveConfig(ctx)
	if err != nil || config.Client == nil {
		return schema.GroupVersionKind{}
	}
	kind, _ := config.GroupVersionKindFor(d.object) // the set-up refuses a type whose kind is not known
	return kind
}

// witness is the supervisor of one dependent. It marks what the child reports to the supervisor of the set, and knows
// whether the child reported at all.
type witness struct {
	reconcilers.Supervisor
	ctx      context.Context
	object   reconcilers.ObservedObject
	observed atomic.Bool
}

// witnessed returns the witness of a run. Its context has it as the supervisor, if there is one.
func (d *Dependent[T, CT]) witnessed(ctx context.Context) *witness {
	w := &witness{ctx: ctx, Supervisor: reconcilers.SupervisorOf(ctx)}
	if w.Supervisor == nil {
		return w
	}
	w.object = reconcilers.ObservedObject{
		Node: reconcilers.RetrievePath(reconcilers.Enter(ctx, d.name)), Kind: d.gvk(ctx),
		Auxiliary: d.has(auxiliary), Unchecked: d.has(unchecked),
	}
	w.ctx = reconcilers.WithSupervisor(ctx, w)
	return w
}

// Observe passes on what the child found out.
func (w *witness) Observe(object reconcilers.ObservedObject) {
	w.observed.Store(true)
	object.Auxiliary = object.Auxiliary || w.object.Auxiliary
	object.Unchecked = object.Unchecked || w.object.Unchecked
	w.Supervisor.Observe(object)
}

// live notes the object that the cluster has.
func (w *witness) live(object client.Object) {
	w.object.Object, w.object.Namespace, w.object.Name = object, object.GetNamespace(), object.GetName()
}

// nothingToSuspend reports whether there is nothing to suspend, below a supervisor that suspends: the object is only
// read, or it waits and does not exist.
func (d *Dependent[T, CT]) nothingToSuspend(w *witness, o outcome) bool {
	missing := o.health.State == apis.StateBlocked && !o.runs
	return w.Supervision() == reconcilers.Suspend && o.err == nil && (d.has(readOnly) || missing)
}

// reported reports an outcome to the supervisor, unless the child did, and has an auxiliary dependent not count.
func (d *Dependent[T, CT]) reported(w *witness, o outcome) outcome {
	isBlocked := o.health.State == apis.StateBlocked
	there := w.object.Object != nil
	if w.Supervisor != nil && (isBlocked || o.err != nil || there) && !w.observed.Load() && !d.nothingToSuspend(w, o) {
		w.object.Err = o.err
		if isBlocked {
			w.object.Health = &o.health
		}
		w.Supervisor.Observe(w.object)
	}
	if !d.has(auxiliary) {
		return o
	}
	if o.err != nil {
		logr.FromContextOrDiscard(w.ctx).Info("an auxiliary dependent failed", "dependent", d.name,
			"error", o.err.Error())
	}
	if o.err != nil && !errors.Is(o.err, reconcilers.ErrDurable) {
		o.result.RequeueAfter = auxiliaryDelay
	}
	return outcome{done: o.done, result: o.result}
}
