package health

import (
	"github.com/espalier-dev/espalier/internal/content"
	"github.com/espalier-dev/espalier/internal/kinds"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
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
		return finding{level: waiting, message: progress(r.ready, r.desired, "replica", "ready")}
	case found.level == well && r.total > r.desired:
		return finding{level: waiting, message: waitingFor(r.total-r.desired, "surplus replica", "go")}
	case found.level != waiting:
		return found
	}
	if s.has("ReplicaFailure", "True") {
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
	status := func(field string) int64 { return s.number(0, "status", field) }
	onDelete := s.text("spec", "updateStrategy", "type") == "OnDelete"
	r := replicas{
		desired:  s.number(1, "spec", "replicas"),
		total:    status("replicas"),
		ready:    status("readyReplicas"),
		observed: content.Observed(s.object),
	}
	switch s.kind {
	case kinds.Deployment:
		updated := status("updatedReplicas")
		r.keepsOld = content.Is(s.object, "spec", "paused")
		r.rolling = updated < r.desired || r.total > updated
		if c, ok := s.condition("Progressing"); ok {
			r.rolledOut = c.Reason == "NewReplicaSetAvailable" && r.total <= updated
			r.rolling = !r.rolledOut
		}
	case kinds.StatefulSet:
		partition := s.number(0, "spec", "updateStrategy", "rollingUpdate", "partition")
		r.keepsOld = onDelete
		switch {
		case onDelete:
		case partition > 0:
			r.rolling = status("updatedReplicas") < r.desired-partition
		default:
			r.rolling = s.text("status", "currentRevision") !=
				s.text("status", "updateRevision")
		}
	case kinds.DaemonSet:
		r.desired = status("desiredNumberScheduled")
		r.total, r.ready = status("currentNumberScheduled"), status("numberReady")
		r.keepsOld = onDelete && content.Field(s.object, "status", "desiredNumberScheduled") != nil
		r.rolling = !onDelete && status("updatedNumberScheduled") < min(r.total, r.desired)
	}
	return r
}

const unfinished = "the roll-out is not finished"

// whyDeployment says why a Deployment is not Current by kstatus.
func (s *subject) whyDeployment(computed *kstatus.Result) string {
	wanted := s.number(1, "spec", "replicas")
	total := s.number(0, "status", "replicas")
	updated := s.number(0, "status", "updatedReplicas")
	available := s.number(0, "status", "availableReplicas")
	ready := s.number(0, "status", "readyReplicas")

	text := unfinished
	switch {
	case updated < wanted && updated < available:
		text = progress(updated, wanted, "replica", "updated")
	case available < wanted:
		text = progress(available, wanted, "replica", "available")
	case ready < wanted:
		text = progress(ready, wanted, "replica", "ready")
	case total > wanted:
		text = waitingFor(total-wanted, "surplus replica", "go")
	}
	if computed.Status == kstatus.FailedStatus {
		text = "progress deadline exceeded: " + text
	}
	return text + s.replicaFailure()
}

func (s *subject) whyReplicaSet(*kstatus.Result) string {
	wanted := s.number(1, "spec", "replicas")
	total := s.number(0, "status", "replicas")
	available := s.number(0, "status", "availableReplicas")

	text := unfinished
	switch {
	case available < wanted:
		text = progress(available, wanted, "replica", "available")
	case total > wanted:
		text = waitingFor(total-wanted, "surplus replica", "go")
	}
	return text + s.replicaFailure()
}

func (s *subject) whyStatefulSet(*kstatus.Result) string {
	wanted := s.number(1, "spec", "replicas")
	total := s.number(0, "status", "replicas")
	updated := s.number(0, "status", "updatedReplicas")
	ready := min(total, s.number(0, "status", "readyReplicas"))
	// Replicas below the partition are not updated.
	changing := max(0, wanted-s.number(0, "spec", "updateStrategy", "rollingUpdate", "partition"))

	switch {
	case ready < wanted:
		return progress(ready, wanted, "replica", "ready")
	case total > wanted:
		return waitingFor(total-wanted, "surplus replica", "go")
	case updated < changing:
		return progress(updated, changing, "replica", "updated")
	}
	return unfinished
}

func (s *subject) whyDaemonSet(*kstatus.Result) string {
	wanted := s.number(-1, "status", "desiredNumberScheduled")
	updated := s.number(0, "status", "updatedNumberScheduled")
	ready := min(s.number(0, "status", "numberReady"), s.number(0, "status", "numberAvailable"))

	switch {
	case wanted < 0 || content.Field(s.object, "status", "observedGeneration") == nil:
		return "has not been observed yet"
	case updated < wanted && updated < ready:
		return progress(updated, wanted, "node", "updated")
	case ready < wanted:
		return progress(ready, wanted, "node", "ready")
	}
	return unfinished
}

// replicaFailure says why replicas cannot be created. It omits the message of the condition, which names another pod
// each time.
func (s *subject) replicaFailure() string {
	if c, ok := s.condition("ReplicaFailure"); ok && c.Status == "True" && c.Reason != "" {
		return " (" + c.Reason + ")"
	}
	return ""
}
