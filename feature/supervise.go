package feature

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"sync"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/health"
	"github.com/espalier-dev/espalier/internal/message"
	"github.com/espalier-dev/espalier/reconcilers"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// supervisor collects what the nodes of a feature report in one request.
type supervisor struct {
	supervision reconcilers.Supervision
	rules       health.Suspensions

	mu      sync.Mutex
	reports []reconcilers.ObservedObject
}

var _ reconcilers.Supervisor = (*supervisor)(nil)

func (s *supervisor) Supervision() reconcilers.Supervision { return s.supervision }

func (s *supervisor) Suspend(desired client.Object) (remove bool, err error) {
	return s.rules.Suspend(desired)
}

func (s *supervisor) SuspensionOf(live client.Object) apis.Health { return s.rules.Of(live) }

func (s *supervisor) Observe(object reconcilers.ObservedObject) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reports = append(s.reports, object)
}

// collected returns the reports in an order that does not depend on which node was faster.
func (s *supervisor) collected() []reconcilers.ObservedObject {
	s.mu.Lock()
	defer s.mu.Unlock()
	reports := slices.Clone(s.reports)
	slices.SortStableFunc(reports, func(a, b reconcilers.ObservedObject) int {
		return cmp.Or(cmp.Compare(a.Kind.String(), b.Kind.String()), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Name, b.Name), cmp.Compare(a.Node, b.Node))
	})
	return reports
}

// rules say how an object is.
type rules struct {
	health     map[schema.GroupKind]func(object client.Object) apis.Health
	suspension health.Suspensions
}

// assess says how an object is under a supervision.
func (r rules) assess(report reconcilers.ObservedObject, supervision reconcilers.Supervision) dependent {
	h := r.healthOf(report, supervision)
	if !slices.Contains(priorities, h.State) {
		h.Message = fmt.Sprintf("the state %q is not known", h.State)
		h.State = apis.StateUnknown
	}
	d := dependent{grade: h.Grade, counts: !report.Auxiliary && (!report.Unchecked || report.Err != nil)}
	d.Group, d.Kind, d.Namespace, d.Name = report.Kind.Group, report.Kind.Kind, report.Namespace, report.Name
	if d.Name == "" && report.Node != "" {
		d.Name = strconv.Quote(path.Base(report.Node)) // no object has such a name
	}
	d.State, d.Auxiliary = h.State, report.Auxiliary
	isAbsent := report.Object == nil && report.Health == nil && report.Err == nil
	d.waits = h.State == apis.StateBlocked || isAbsent
	if h.State == apis.StateBlocked && report.Object != nil && d.grade == "" &&
		health.Healthy(r.healthOfObject(report).State) {
		// What is there works.
		d.grade = apis.StateDegraded
	}
	if report.Object != nil {
		d.Generation = report.Object.GetGeneration()
	}
	d.Reason, d.Attributes = h.Reason, attributes(h.Attributes)
	d.Message = message.Truncate(h.Message, maxText)
	if supervision == reconcilers.Withdraw {
		d.left = report.Object != nil || report.Health != nil || report.Err != nil && report.Auxiliary
	}
	return d
}

func (r rules) healthOf(report reconcilers.ObservedObject, supervision reconcilers.Supervision) apis.Health {
	if report.Err != nil {
		return apis.Health{State: apis.StateError, Message: errorText(report.Err)}
	}
	switch supervision {
	case reconcilers.Withdraw:
		if report.Object == nil && report.Health == nil {
			return apis.Health{State: apis.StateDisabled}
		}
		if report.Health == nil {
			return apis.Health{State: apis.StateDisabling}
		}
		h := *report.Health
		h.State, h.Grade = apis.StateDisabling, ""
		return h
	case reconcilers.Suspend:
		return r.suspensionOf(report)
	}
	switch {
	case report.Health != nil:
		return *report.Health
	case report.Object == nil:
		return apis.Health{State: apis.StateCreating, Message: "does not exist yet"}
	}
	return r.healthOfObject(report)
}

// healthOfObject says how an object is that is there.
func (r rules) healthOfObject(report reconcilers.ObservedObject) apis.Health {
	if rule := r.health[report.Kind.GroupKind()]; rule != nil {
		return rule(report.Object)
	}
	return healthOf(report.Object, report.Kind)
}

// suspensionOf says how an object is that is to be suspended.
func (r rules) suspensionOf(report reconcilers.ObservedObject) apis.Health {
	switch {
	case report.Health != nil:
		h := *report.Health
		switch h.State {
		case apis.StateSuspended, apis.StateSuspending, apis.StatePendingSuspension, apis.StateError, apis.StateUnknown:
		case apis.StateHealthy, apis.StateOperational, apis.StateCompleted:
			h.State = apis.StateSuspended
		default:
			h.State = apis.StateSuspending
		}
		return h
	case report.Object == nil:
		return apis.Health{State: apis.StateSuspended}
	}
	return r.suspension.Of(withKind(report.Object, report.Kind))
}

// healthOf says how an object of a kind is. If the kind is empty, the object knows it.
func healthOf(object client.Object, kind schema.GroupVersionKind) apis.Health {
	if kind.Empty() {
		return health.Of(object)
	}
	return health.OfKind(kind, object)
}

// withKind returns the object with its kind, which typed objects often lack. It does not change object.
func withKind(object client.Object, kind schema.GroupVersionKind) client.Object {
	if kind.Empty() || !object.GetObjectKind().GroupVersionKind().Empty() {
		return object
	}
	object = object.DeepCopyObject().(client.Object)
	object.GetObjectKind().SetGroupVersionKind(kind)
	return object
}
