package health

import (
	"github.com/espalier-dev/espalier/internal/content"
	"github.com/espalier-dev/espalier/internal/kinds"
	"github.com/espalier-dev/espalier/internal/objectstatus"
)

// judgeWorkload differs from kstatus in what follows. A replica that cannot be created is a failure. A Deployment that
// is paused, and a workload whose pods a user replaces by deleting them, is healthy if its pods are ready, old or new.
func judgeWorkload(s *subject, found finding) finding {
	if s.stale() {
		return found
	}
	r := s.replicas()
	switch {
	case found.level == waiting && r.keepsOld && r.observed && r.ready >= r.desired && r.total <= r.desired:
		return finding{}
	case found.level == well && r.ready < r.desired:
		return finding{level: waiting, message: objectstatus.Progress(r.ready, r.desired, "replica", "ready")}
	case found.level == well && r.total > r.desired:
		return finding{level: waiting, message: objectstatus.Surplus(r.total - r.desired)}
	case found.level != waiting:
		return found
	}
	if c, ok := s.condition("ReplicaFailure"); ok && c.Status == "True" {
		found.level = failing
	} else if content.Is(s.object, "spec", "paused") {
		found.reason, found.message = ReasonPaused, "paused: "+found.message
	}
	return found
}

// replicas says how far a workload is.
type replicas struct {
	desired, total, ready int64
	// observed is whether the numbers are about the present generation.
	observed bool
	// rolling is whether pods of an old revision are still replaced by new ones. rolledOut is whether all pods of this
	// revision are known to have been ready once.
	rolling, rolledOut bool
	// keepsOld is whether pods of an old revision may stay.
	keepsOld bool
}

// onlyScaled reports whether the roll-out is complete, so that only the number of ready pods is not the desired one.
func (r replicas) onlyScaled(s *subject) bool {
	starts := s.first() && (r.total < r.desired || r.ready == 0)
	return r.observed && (r.rolledOut || !r.rolling && !starts)
}

// replicas returns how far a workload is.
func (s *subject) replicas() replicas {
	kind := s.object.GroupVersionKind().GroupKind()
	status := func(field string) int64 { return content.Number(s.object, 0, "status", field) }
	onDelete := content.Text(s.object, "spec", "updateStrategy", "type") == "OnDelete"
	r := replicas{
		desired:  content.Number(s.object, 1, "spec", "replicas"),
		total:    status("replicas"),
		ready:    status("readyReplicas"),
		observed: content.Observed(s.object),
	}
	switch kind {
	case kinds.Deployment:
		updated := status("updatedReplicas")
		r.keepsOld = content.Is(s.object, "spec", "paused")
		r.rolling = updated < r.desired || r.total > updated
		if c, ok := s.condition("Progressing"); ok {
			r.rolledOut = c.Reason == "NewReplicaSetAvailable" && r.total <= updated
			r.rolling = !r.rolledOut
		}
	case kinds.StatefulSet:
		partition := content.Number(s.object, 0, "spec", "updateStrategy", "rollingUpdate", "partition")
		r.keepsOld = onDelete
		switch {
		case onDelete:
		case partition > 0:
			r.rolling = status("updatedReplicas") < r.desired-partition
		default:
			r.rolling = content.Text(s.object, "status", "currentRevision") !=
				content.Text(s.object, "status", "updateRevision")
		}
	case kinds.DaemonSet:
		r.desired = status("desiredNumberScheduled")
		r.total, r.ready = status("currentNumberScheduled"), status("numberReady")
		r.keepsOld = onDelete && content.Field(s.object, "status", "desiredNumberScheduled") != nil
		r.rolling = !onDelete && status("updatedNumberScheduled") < min(r.total, r.desired)
	}
	return r
}
