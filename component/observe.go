package component

import (
	"cmp"
	"context"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/engine"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/reconcilers"
)

// observe tells the supervisor how the objects are. As long as all are as they should be, they are reported as one,
// under the name of the resource. Nothing is reported of a component that has no objects and is to have none.
func (j *job[T]) observe(ctx context.Context, err error) {
	if j.dryRun || j.facts.withdrawn || j.facts.withdrawing && !j.hasObjects() {
		return
	}
	node := reconcilers.RetrievePath(ctx)
	if j.report != nil && !j.report.Unchanged {
		j.state.reported = observationsOf(j.report, j.supervision)
	}
	whole := j.wholeHealth(err)
	if whole != nil {
		j.supervisor.Observe(reconcilers.ObservedObject{
			Node: node, Kind: j.kind, Namespace: j.resource.GetNamespace(), Name: j.resource.GetName(),
			Health: whole, Err: err,
		})
	}
	if j.report == nil {
		return
	}
	for _, object := range j.state.reported {
		object.Node = node
		j.supervisor.Observe(object)
	}
}

// wholeHealth returns how the component is as a whole; nil if only its objects say that.
func (j *job[T]) wholeHealth(err error) *apis.Health {
	s, report := &j.facts, j.report
	switch {
	case s.suspended:
		return &apis.Health{State: apis.StateUnknown, Reason: ReasonSuspended, Message: "reconciliation is suspended"}
	case report == nil || err != nil && len(report.Failures) == 0:
		return &apis.Health{State: apis.StateUnknown}
	case s.varies != "":
		return &apis.Health{
			State: apis.StateFailing, Grade: apis.StateDegraded, Reason: ReasonNondeterministic, Message: s.varies,
		}
	case !s.done:
		return nil
	case s.suspends:
		return &apis.Health{State: apis.StateSuspended}
	default:
		return &apis.Health{State: apis.StateHealthy}
	}
}

// observationsOf returns what a run found out about single objects. Of a run that left nothing to do, these are only
// the objects that are not as they should be.
func observationsOf(report *engine.Report, supervision reconcilers.Supervision) []reconcilers.ObservedObject {
	obstacles := make(map[plan.Key]*plan.Obstacle, len(report.Plan.Obstacles))
	for i := range report.Plan.Obstacles {
		o := &report.Plan.Obstacles[i]
		obstacles[o.Key] = o
	}
	desired := map[plan.Key]*plan.Desired{}
	for i := range report.Input.Desired {
		if d := &report.Input.Desired[i]; d.Auxiliary || d.Unchecked {
			desired[d.Key] = d
		}
	}
	var all []reconcilers.ObservedObject
	add := func(key plan.Key, version string, health apis.Health, err error) {
		object := observation(key, version, health, err)
		if d := desired[key]; d != nil {
			object.Auxiliary, object.Unchecked = d.Auxiliary, d.Unchecked
		}
		all = append(all, object)
	}
	for i := range report.Inventory {
		record := &report.Inventory[i]
		key := plan.KeyOf(*record)
		health, err := healthOf(record, obstacles[key], supervision), report.Failures[key]
		delete(obstacles, key)
		if report.Plan.Done && err == nil && isWell(health.State) {
			continue
		}
		add(key, record.Version, health, err)
	}
	for i := range report.Plan.Obstacles {
		// It is in the way of an object, or a type that others use.
		if o := &report.Plan.Obstacles[i]; obstacles[o.Key] != nil {
			add(o.Key, "", healthOf(nil, o, supervision), report.Failures[o.Key])
		}
	}
	return all
}

func observation(key plan.Key, version string, health apis.Health, err error) reconcilers.ObservedObject {
	return reconcilers.ObservedObject{
		Kind: key.GroupKind().WithVersion(version), Namespace: key.Namespace, Name: key.Name, Health: &health, Err: err,
	}
}

// isWell reports whether an object with the state is as it should be.
func isWell(state apis.State) bool {
	return state == apis.StateHealthy || state == apis.StateCompleted || state == apis.StateSuspended
}

// healthOf says how an object is, by its record and by what is in the way. Each may be nil.
//
//	object                      Maintain, Withdraw             Suspend
//	in use by others            Blocked                        Blocked
//	of others, and not ready    Blocked                        Blocked
//	not ours                    Failing (Down)                 Failing (Down)
//	contested                   Failing (Degraded)             Failing (Degraded)
//	gone for good               Completed                      Completed
//	Current                     Healthy                        Suspended
//	Failed                      Failing (Down)                 Failing (Down)
//	not written yet             Creating, Updating             PendingSuspension
//	InProgress, NotFound        Creating, Updating             Suspending
//	Terminating                 Updating                       Suspending
//	Unknown                     Unknown                        Unknown
func healthOf(record *apis.InventoryRecord, obstacle *plan.Obstacle, supervision reconcilers.Supervision) apis.Health {
	if obstacle != nil {
		switch obstacle.Kind {
		case plan.ObstacleBlocked:
			return apis.Health{State: apis.StateBlocked, Message: obstacle.Message}
		case plan.ObstacleNotOurs:
			return failing(apis.StateDown, "NotOurs", obstacle.Message)
		case plan.ObstacleContested:
			return failing(apis.StateDegraded, ReasonContested, obstacle.Message)
		case plan.ObstacleFailed:
			return failing(apis.StateDown, "", obstacle.Message)
		}
	}
	if record == nil {
		return apis.Health{State: apis.StateBlocked, Message: obstacle.Message}
	}
	status := record.Status
	if status == "" && record.Phase == apis.PhaseReady {
		status = apis.ObjectCurrent
	}
	health := apis.Health{Message: record.Message}
	if obstacle != nil {
		health.Message = cmp.Or(obstacle.Message, health.Message)
	}
	suspends := supervision == reconcilers.Suspend
	switch {
	case record.Phase == apis.PhaseCompleted:
		return apis.Health{State: apis.StateCompleted}
	case status == apis.ObjectFailed:
		return failing(apis.StateDown, "", health.Message)
	case supervision == reconcilers.Withdraw:
		health.State = apis.StateUpdating
	case status == apis.ObjectCurrent:
		health.State = apis.StateHealthy
		if suspends {
			health.State = apis.StateSuspended
		}
	case suspends && record.Phase == apis.PhaseScheduledForApplication:
		health.State = apis.StatePendingSuspension
	case status == apis.ObjectUnknown || status == "":
		health.State = apis.StateUnknown
	case suspends:
		health.State = apis.StateSuspending
	case status == apis.ObjectNotFound, status == apis.ObjectInProgress && isNew(record):
		health.State = apis.StateCreating
	default:
		health.State = apis.StateUpdating
	}
	return health
}

func failing(grade apis.State, reason, text string) apis.Health {
	return apis.Health{State: apis.StateFailing, Grade: grade, Reason: reason, Message: text}
}

// isNew reports whether the object was not ready since it was created.
func isNew(record *apis.InventoryRecord) bool {
	return record.UID == "" || record.Phase == apis.PhaseCreating || record.Phase == apis.PhaseRecreating
}
