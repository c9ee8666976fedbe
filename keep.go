package espalier

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/espalier-dev/espalier/feature/gate"
	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/ownership"
	"github.com/espalier-dev/espalier/reconcilers"
	rtime "github.com/espalier-dev/espalier/time"

	"github.com/go-logr/logr"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// auxiliaryRetry is when a node is tried again whose error is not returned. The delay doubles up to maxAuxiliaryRetry.
const (
	auxiliaryRetry    = 10 * time.Second
	maxAuxiliaryRetry = 5 * time.Minute
)

// failure is an error of a resource that is not returned, from one request to the next.
type failure struct {
	// logged is the text that was logged last.
	logged string
	// retry is when the node is tried again, and delay is how long that is after the time before.
	retry time.Time
	delay time.Duration
}

// again returns after what time the node is tried again. An event may bring the resource back earlier.
func (f *failure) again(now time.Time) time.Duration {
	if !now.Before(f.retry) {
		f.delay = min(max(2*f.delay, auxiliaryRetry), maxAuxiliaryRetry)
		f.retry = now.Add(f.delay)
	}
	return f.retry.Sub(now)
}

// pass is what the engine gets in one run, and what it finds out.
type pass[CT client.Object] struct {
	// desire returns the objects as they should be. Nil: there are to be none.
	desire func(ctx context.Context) ([]CT, error)
	// keep leaves the objects as they are.
	keep bool
	// owner is the value of ownerLabel.
	owner string
	// names are those of the objects to read, if the type is not watched.
	names []client.ObjectKey

	// again is true if the engine was left because it turned out that the resource cannot own the objects.
	again bool

	// live are the objects that exist.
	live []CT
	// reflected is an error that the engine does not return.
	reflected error
	// notReady is what desire returned, and invalid is an error of it that says that what is asked for is not valid.
	notReady *NotReadyError
	invalid  error
}

type passKey struct{}

// passOf returns the pass of ctx. Outside of a run it returns one that changes nothing.
func passOf[CT client.Object](ctx context.Context) *pass[CT] {
	if known, ok := ctx.Value(passKey{}).(*pass[CT]); ok {
		return known
	}
	return &pass[CT]{keep: true}
}

// outcome is what came of a node in one request.
type outcome[CT client.Object] struct {
	result reconcilers.Result
	// err is an error that is returned.
	err error
	// reflected is an error that a condition shows, and invalid is true if the engine does not know it.
	reflected error
	invalid   bool
	// failed has the errors of the objects of a set, of which one is err.
	failed error
	// live are the objects that exist, and states is how ready all are, once that was asked.
	live   []CT
	states []childState
	// waits says why the objects are left as they are; it has no type, and is nil if they are not.
	waits *metav1.Condition
	// named is an object that is waited for, or nil.
	named client.Object
	// leaves is true while objects of a resource that cleans up are not gone.
	leaves bool
	// none says why there are to be no objects: the reason of the condition. It is empty if there may be some.
	none string
}

func (o *outcome[CT]) wake(delay time.Duration) {
	o.result = reconcilers.AggregateResults(o.result, reconcilers.Result{RequeueAfter: delay})
}

// Reconcile makes the objects as they should be, see [Owns] and [OwnsEach].
func (s *Switches[Self, T, CT]) Reconcile(ctx context.Context, resource T) (reconcilers.Result, error) {
	if err := s.complete(); err != nil {
		return reconcilers.Result{}, err
	}
	if s.scope.resourceNamespaced.Load() == nil {
		s.scope.resourceNamespaced.Store(new(resource.GetNamespace() != ""))
	}
	if s.has(unowned) || s.has(anyNamespace) || resource.GetNamespace() == "" {
		s.anywhere.Store(true)
	}
	reporter := s.reporter(ctx)
	if reporter != nil {
		ctx = reconcilers.WithSupervisor(ctx, reporter)
	}
	at := reconcilers.Enter(ctx, s.name)
	o := s.run(ctx, at, resource)
	if resource.GetDeletionTimestamp() == nil {
		s.finish(at, resource, &o)
	}
	done := s.isDone(at, &o)
	if reporter != nil {
		s.report(at, reporter, resource, &o)
	}
	if s.condition == "" && o.err == nil && (reporter == nil || !isTaken(o.reflected)) {
		o.err, o.reflected = reconcilers.Failed(at, nil, o.reflected), nil
	}
	if !done {
		reconcilers.NotDone(ctx)
	}
	if !done && !o.leaves {
		o.wake(s.retryAfter)
	}
	s.forgive(at, resource, &o)
	return o.result, o.err
}

// isTaken reports whether an error says only that others have objects of the desired names. No retry helps.
func isTaken(err error) bool {
	if several, ok := err.(interface{ Errors() []error }); ok {
		return !slices.ContainsFunc(several.Errors(), func(err error) bool { return !apierrs.IsAlreadyExists(err) })
	}
	return apierrs.IsAlreadyExists(err)
}

// isDone reports whether nodes that are after this one may run. It is true if nobody wants to know.
func (s *Switches[Self, T, CT]) isDone(ctx context.Context, o *outcome[CT]) bool {
	if o.err != nil || o.reflected != nil || o.waits != nil || o.leaves {
		return false
	}
	asked := s.retryAfter > 0 || reconcilers.IsAwaited(ctx)
	return !asked || o.none != "" || s.has(unchecked) || !slices.ContainsFunc(s.statesOf(ctx, o), isNotReady)
}

// finish tells of the objects what they yield, what is copied from them, and what the condition says.
func (s *Switches[Self, T, CT]) finish(ctx context.Context, resource T, o *outcome[CT]) {
	if o.failed != nil && s.condition != "" && !s.has(auxiliary) {
		s.Ordered.report(ctx, resource, conditionOfError(o.failed))
	}
	if o.err != nil {
		return
	}
	if !reconcilers.CleansUp(ctx, resource) {
		o.err = s.yield(ctx, o)
	}
	if o.err == nil && s.copy != nil && (o.reflected == nil || len(o.live) > 0) {
		o.err = s.copy(ctx, resource, o.live)
	}
	if o.err != nil {
		var object client.Object
		if len(o.live) > 0 {
			object = o.live[0]
		}
		o.err = reconcilers.Failed(ctx, object, o.err)
		return
	}
	if s.condition != "" {
		s.Ordered.report(ctx, resource, s.conditionOf(ctx, o))
	}
}

// run decides what is to be done with the objects, and does it. At is the context of the node.
func (s *Switches[Self, T, CT]) run(ctx, at context.Context, resource T) outcome[CT] {
	failed := func(err error) outcome[CT] {
		return outcome[CT]{err: reconcilers.Failed(at, nil, err)}
	}
	cleansUp, terminating := reconcilers.CleansUp(ctx, resource), resource.GetDeletionTimestamp() != nil
	if cleansUp && (s.has(readOnly) || terminating && (s.has(unowned) || s.has(unwatched))) {
		return outcome[CT]{none: ReasonNotDesired}
	}
	if cleansUp {
		return s.remove(ctx, resource)
	}
	off, err := s.isOff(at, resource)
	switch {
	case err != nil:
		return failed(err)
	case off:
		return s.remove(ctx, resource)
	}
	waits, err := s.waitsFor(at, resource)
	switch {
	case err != nil:
		return failed(err)
	case waits != nil:
		return s.wait(ctx, resource, waits)
	}
	return s.keep(ctx, resource)
}

// isOff reports whether there are to be no objects, whatever the author desires.
func (s *Switches[Self, T, CT]) isOff(ctx context.Context, resource T) (bool, error) {
	if s.has(absent) {
		return true, nil
	}
	if s.gate == nil {
		return false, nil
	}
	on, err := gate.Enabled(s.gate(ctx, resource))
	if errors.Is(err, gate.ErrInvalid) {
		err = errors.Join(err, reconcilers.ErrDurable)
	}
	return err == nil && !on, err
}

// waitsFor returns the condition that says what the node waits for, or nil.
func (s *Switches[Self, T, CT]) waitsFor(ctx context.Context, resource T) (*metav1.Condition, error) {
	if unmet := reconcilers.Unmet(ctx, &s.order); unmet != "" {
		return new(waitingFor(unmet)), nil
	}
	if s.guard == nil {
		return nil, nil
	}
	text, err := s.guard(ctx, resource)
	if err != nil || text == "" {
		return nil, err
	}
	return &metav1.Condition{Status: metav1.ConditionFalse, Reason: ReasonBlocked, Message: text}, nil
}

// wait leaves the objects as they are. One that exists is nevertheless suspended, and resumed.
func (s *Switches[Self, T, CT]) wait(ctx context.Context, resource T, waits *metav1.Condition) outcome[CT] {
	if s.has(readOnly) {
		return outcome[CT]{waits: waits}
	}
	o := s.converge(ctx, resource, &pass[CT]{keep: true})
	if o.err == nil && o.reflected == nil && s.goesOn(ctx, resource, o.live) {
		if r, ok := reconcilers.SupervisorOf(ctx).(*reporter); ok {
			r.observed = nil
		}
		o = s.keep(ctx, resource)
		if reconcilers.SupervisionOf(ctx, resource) == reconcilers.Suspend {
			return o // an object that stops waits for nothing
		}
	}
	if o.waits == nil {
		o.waits = waits
	}
	return o
}

// goesOn reports whether objects have to be suspended or resumed.
func (s *Switches[Self, T, CT]) goesOn(ctx context.Context, resource T, live []CT) bool {
	if reconcilers.SupervisionOf(ctx, resource) == reconcilers.Suspend {
		return len(live) > 0
	}
	for _, object := range live {
		if isMarked(object) {
			return true
		}
	}
	return false
}

// keep makes the objects as the author desires.
func (s *Switches[Self, T, CT]) keep(ctx context.Context, resource T) outcome[CT] {
	if s.has(readOnly) {
		return s.read(reconcilers.Enter(ctx, s.name), resource)
	}
	return s.converge(ctx, resource, &pass[CT]{desire: func(ctx context.Context) ([]CT, error) {
		return s.desired(ctx, resource)
	}})
}

// remove deletes the objects.
func (s *Switches[Self, T, CT]) remove(ctx context.Context, resource T) outcome[CT] {
	if s.has(readOnly) {
		return outcome[CT]{none: ReasonNotDesired}
	}
	// A finalizer says by itself that they are not gone.
	engine, _ := s.engineFor(resource)
	terminating := resource.GetDeletionTimestamp() != nil
	leaves := terminating && !ownership.Orphans(resource) && len(engine.Describe().Finalizers) == 0 &&
		len(s.look(ctx, resource).live) > 0
	o := s.converge(ctx, resource, &pass[CT]{})
	o.none, o.leaves = ReasonNotDesired, leaves
	if s.has(absent) && s.desires && !s.has(unwatched) && !terminating && o.err == nil {
		s.removeNamed(reconcilers.Enter(ctx, s.name), resource, &o)
	}
	if r, ok := reconcilers.SupervisorOf(ctx).(*reporter); ok && r.Supervision() == reconcilers.Withdraw {
		o.leaves = o.leaves || len(r.observed) > 0
	}
	return o
}

// look returns the objects that exist. It changes nothing, also where the node cleans up, and tells no supervisor.
func (s *Switches[Self, T, CT]) look(ctx context.Context, resource T) outcome[CT] {
	kept := resource.DeepCopyObject().(T)
	kept.SetDeletionTimestamp(nil)
	return s.converge(reconcilers.WithSupervisor(ctx, nil), kept, &pass[CT]{keep: true})
}

// converge runs the engine.
func (s *Switches[Self, T, CT]) converge(ctx context.Context, resource T, p *pass[CT]) outcome[CT] {
	var err error
	engine, finalized := s.engineFor(resource)
	if finalized || s.has(unowned) {
		if p.owner, err = s.identify(ctx, resource); err != nil {
			return outcome[CT]{err: err}
		}
	}
	if s.has(unwatched) {
		ctx, err = s.byNames(ctx, resource, p)
		if notReady := asNotReady(err); notReady != nil {
			o := outcome[CT]{waits: new(conditionOfError(notReady))}
			o.wake(notReady.Delay)
			return o
		}
		if err != nil {
			return outcome[CT]{err: reconcilers.Failed(reconcilers.Enter(ctx, s.name), nil, err)}
		}
	}
	var o outcome[CT]
	o.result, o.err = engine.Reconcile(context.WithValue(ctx, passKey{}, p), resource)
	if p.again {
		p.again, p.live = false, nil
		return s.converge(ctx, resource, p)
	}
	if o.err != nil && s.many {
		o.failed = p.reflected
	}
	if o.err != nil {
		return o
	}
	o.live = p.live
	o.reflected, o.invalid = cmp.Or(p.invalid, p.reflected), p.invalid != nil
	if p.notReady != nil {
		o.waits = new(conditionOfError(p.notReady))
		o.wake(p.notReady.Delay)
	}
	return o
}

// desiredOf is what the engine asks for the objects of the run of ctx.
func (s *Switches[Self, T, CT]) desiredOf(ctx context.Context, resource T) ([]CT, error) {
	p := passOf[CT](ctx)
	if p.keep {
		return nil, reconcilers.OnlyReconcileChildStatus
	}
	if p.desire == nil {
		return nil, nil
	}
	desired, err := p.desire(ctx)
	if err == nil {
		err = refuseTimeToLive(desired)
	}
	if p.notReady = asNotReady(err); p.notReady != nil {
		return nil, reconcilers.OnlyReconcileChildStatus
	}
	if s.many && apierrs.IsInvalid(err) {
		// A set reflects errors of its children only.
		p.invalid = err
		reconcilers.Note(ctx, reconcilers.Refused{Err: err})
		return nil, reconcilers.OnlyReconcileChildStatus
	}
	if err != nil {
		return nil, err
	}
	for _, object := range desired {
		if gotype.IsNil(object) {
			continue // the engine says so
		}
		if err := s.refuseShared(resource, object); err != nil {
			return nil, err
		}
		if p.owner == "" && s.mustBeFinalized(ctx, resource, object) {
			p.again = true
			return nil, reconcilers.OnlyReconcileChildStatus
		}
		if p.owner != "" {
			object.SetLabels(reconcilers.MergeMaps(object.GetLabels(), map[string]string{ownerLabel: p.owner}))
		}
		if s.scales && reconcilers.SupervisionOf(ctx, resource) == reconcilers.Suspend {
			askForReplicas(object)
		}
		if err := s.markSuspended(ctx, resource, object); err != nil {
			return nil, err
		}
	}
	return desired, nil
}

// refuseShared returns an error for a desired object that another resource controls: the author returns one object for
// several resources. The garbage collector would delete it with the wrong one.
func (s *Switches[Self, T, CT]) refuseShared(resource T, object CT) error {
	controller := metav1.GetControllerOfNoCopy(object)
	if controller == nil || controller.UID == resource.GetUID() || s.has(unowned) || s.has(anyNamespace) {
		return nil
	}
	return s.errorf("must return a new object for each resource: %s %q is the controller of %s, which it returned",
		controller.Kind, controller.Name, client.ObjectKeyFromObject(object))
}

// markSuspended marks an object that is to be suspended, and that is not written in each request.
func (s *Switches[Self, T, CT]) markSuspended(ctx context.Context, resource T, object CT) error {
	waits := s.guard != nil || s.has(needsData) || s.has(isAfter)
	is := reconcilers.SupervisionOf(ctx, resource)
	if !waits && !s.has(createOnly) || is != reconcilers.Suspend {
		return nil
	}
	runs, err := runs(ctx, object)
	if runs {
		mark(object)
	}
	return err
}

// forgive has an error of an auxiliary node not returned. Where the node cleans up, a finalizer around it must not go
// while the objects are there.
func (s *Switches[Self, T, CT]) forgive(ctx context.Context, resource T, o *outcome[CT]) {
	if !s.has(auxiliary) || reconcilers.CleansUp(ctx, resource) {
		return
	}
	last := s.failures.Of(ctx, func() *failure { return new(failure) })
	if o.err == nil {
		*last = failure{}
		return
	}
	if text := o.err.Error(); text != last.logged && !errors.Is(o.err, reconcilers.ErrQuiet) {
		last.logged = text
		logr.FromContextOrDiscard(ctx).Info("an auxiliary child is not as desired", "reason", text)
	}
	if !errors.Is(o.err, reconcilers.ErrDurable) && s.retryAfter == 0 {
		o.wake(last.again(rtime.RetrieveNow(ctx)))
	}
	o.err = nil
}
