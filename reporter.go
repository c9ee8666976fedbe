package espalier

import (
	"context"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/health"
	"github.com/espalier-dev/espalier/internal/content"
	"github.com/espalier-dev/espalier/internal/message"
	"github.com/espalier-dev/espalier/reconcilers"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reporter is the supervisor of one node, below the supervisor that the node obeys. It keeps what the engine reports,
// so that the node adds what it knows itself.
type reporter struct {
	reconcilers.Supervisor
	// rule is the rule of the node for suspension; nil for that of the supervisor.
	rule     *health.Suspension
	observed []reconcilers.ObservedObject
}

// reporter returns the reporter of a request, or nil if there is no supervisor.
func (s *Switches[Self, T, CT]) reporter(ctx context.Context) *reporter {
	supervisor := reconcilers.SupervisorOf(ctx)
	if supervisor == nil {
		return nil
	}
	return &reporter{Supervisor: supervisor, rule: s.suspension}
}

// Suspend suspends a desired object by the rule of the node.
func (r *reporter) Suspend(desired client.Object) (remove bool, err error) {
	if r.rule == nil {
		return r.Supervisor.Suspend(desired)
	}
	return r.rules(desired).Suspend(desired)
}

// SuspensionOf says how a live object is by the rule of the node.
func (r *reporter) SuspensionOf(live client.Object) apis.Health {
	if r.rule == nil {
		return r.Supervisor.SuspensionOf(live)
	}
	return r.rules(live).Of(live)
}

func (r *reporter) rules(object client.Object) health.Suspensions {
	return health.Suspensions{content.KindOf(object).GroupKind(): *r.rule}
}

// Observe keeps what the engine found out.
func (r *reporter) Observe(object reconcilers.ObservedObject) {
	r.observed = append(r.observed, object)
}

// report tells the supervisor of a request what came of the node.
func (s *Switches[Self, T, CT]) report(ctx context.Context, r *reporter, resource T, o *outcome[CT]) {
	failed := o.err != nil || o.reflected != nil
	if resource.GetDeletionTimestamp() != nil || r.suspends() && !failed && s.hasNothingToSuspend(o) {
		return
	}
	for _, object := range s.observed(ctx, r, o) {
		object.Auxiliary, object.Unchecked = s.has(auxiliary), s.has(unchecked)
		r.Supervisor.Observe(object)
	}
}

func (r *reporter) suspends() bool { return r.Supervision() == reconcilers.Suspend }

// hasNothingToSuspend reports whether the objects are only read, or do not exist while the node waits.
func (s *Switches[Self, T, CT]) hasNothingToSuspend(o *outcome[CT]) bool {
	return s.has(readOnly) || o.waits != nil && len(o.live) == 0
}

// observed returns what the engine has reported, with what the node knows.
func (s *Switches[Self, T, CT]) observed(
	ctx context.Context, r *reporter, o *outcome[CT],
) []reconcilers.ObservedObject {
	about := reconcilers.ObservedObject{Node: reconcilers.RetrievePath(ctx), Kind: s.gvk(ctx)}
	objects := r.observed
	if s.has(readOnly) {
		for _, live := range o.live {
			read := about
			read.Object, read.Namespace, read.Name = live, live.GetNamespace(), live.GetName()
			objects = append(objects, read)
		}
	}
	err := o.err
	if err == nil && (s.has(readOnly) || o.invalid) {
		err = o.reflected
	}
	if o.named != nil || len(objects) == 0 && (err != nil || o.waits != nil) {
		if o.named != nil {
			about.Namespace, about.Name = o.named.GetNamespace(), o.named.GetName()
		}
		objects = append(objects, about)
	}
	told := false
	for i := range objects {
		if o.err == nil && apierrs.IsAlreadyExists(objects[i].Err) {
			objects[i].Health, objects[i].Err = takenHealth(r, objects[i].Err), nil
			continue
		}
		objects[i].Health = s.healthOf(r, objects[i], o)
		told = told || objects[i].Err != nil
	}
	if err != nil && !told {
		// The engine did not report this error.
		objects[0].Err = err
	}
	return objects
}

// takenHealth returns how an object is whose name is taken, which err says. It is not there, so nothing of it runs.
func takenHealth(r *reporter, err error) *apis.Health {
	if r.suspends() {
		return nil
	}
	reason := string(metav1.StatusReasonAlreadyExists)
	return &apis.Health{State: apis.StateBlocked, Reason: reason, Message: message.Stable(err.Error())}
}

// healthOf returns how an object is if the node knows better than the supervisor, or nil.
func (s *Switches[Self, T, CT]) healthOf(
	r *reporter, object reconcilers.ObservedObject, o *outcome[CT],
) *apis.Health {
	live, there := object.Object.(CT)
	switch {
	case object.Err != nil:
		return nil
	case o.waits != nil && (o.named == nil || !there):
		blocked := &apis.Health{State: apis.StateBlocked, Message: o.waits.Message}
		if o.waits.Reason != ReasonBlocked && o.waits.Reason != ReasonWaiting {
			blocked.Reason = o.waits.Reason
		}
		return blocked
	case !there || r.Supervision() == reconcilers.Withdraw:
		return nil
	case r.suspends() && r.rule != nil:
		return new(r.SuspensionOf(live))
	case !r.suspends() && s.health != nil:
		return new(s.health(live))
	}
	return nil
}

// gvk returns the kind of the objects. It is empty if the scheme does not know it.
func (s *Switches[Self, T, CT]) gvk(ctx context.Context) schema.GroupVersionKind {
	config, err := reconcilers.RetrieveConfig(ctx)
	if err != nil || config.Client == nil {
		return schema.GroupVersionKind{}
	}
	kind, _ := config.GroupVersionKindFor(s.object) // the set-up refuses a type whose kind is not known
	return kind
}
