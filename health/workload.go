package health

import (
	"cmp"
	"fmt"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/content"
	"github.com/espalier-dev/espalier/internal/kinds"
)

// judgeWorkload differs from kstatus in what follows, which no wave of a component sees. A replica that cannot be
// created is a failure. A Deployment that is paused, and a workload whose pods a user replaces by deleting them, is
// healthy if its pods are ready, old or new.
func judgeWorkload(s *subject, v verdict) verdict {
	r := s.replicas()
	if v.status == apis.ObjectCurrent {
		if r.ready < r.desired || r.total > r.desired {
			v = inProgress(cmp.Or(short(r.ready, r.desired, "replica", "ready"), surplus(r.total, r.desired)))
		}
		return v.toWaves(current)
	}
	c, _ := s.condition("ReplicaFailure")
	refused := c.Status == "True"
	v.message = r.missing
	if v.status == apis.ObjectFailed {
		v.message = "progress deadline exceeded: " + v.message
	}
	if refused && c.Reason != "" {
		// The message of the condition names another pod each time.
		v.message += " (" + c.Reason + ")"
	}
	switch {
	case v.status != apis.ObjectInProgress:
		return v
	case r.keepsOld && r.observed && r.ready >= r.desired && r.total <= r.desired:
		return current.toWaves(v)
	case refused:
		return failed(v.message).toWaves(v)
	case content.Is(s.object, "spec", "paused"):
		return inProgress("paused: " + v.message).because(ReasonPaused).toWaves(v)
	}
	return v
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
	// missing says what is still missing if the workload is not Current by kstatus.
	missing string
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
	updated, available := status("updatedReplicas"), status("availableReplicas")
	r := replicas{
		desired:  s.number(1, "spec", "replicas"),
		total:    status("replicas"),
		ready:    status("readyReplicas"),
		observed: content.Observed(s.object),
	}
	switch s.kind {
	case kinds.Deployment:
		r.keepsOld = content.Is(s.object, "spec", "paused")
		r.rolling = updated < r.desired || r.total > updated
		if c, ok := s.condition("Progressing"); ok {
			r.rolledOut = c.Reason == "NewReplicaSetAvailable" && r.total <= updated
			r.rolling = !r.rolledOut
		}
		if updated < available {
			r.missing = short(updated, r.desired, "replica", "updated")
		}
		r.missing = cmp.Or(r.missing, short(available, r.desired, "replica", "available"),
			short(r.ready, r.desired, "replica", "ready"), surplus(r.total, r.desired))
	case kinds.ReplicaSet:
		r.missing = cmp.Or(short(available, r.desired, "replica", "available"), surplus(r.total, r.desired))
	case kinds.StatefulSet:
		partition := s.number(0, "spec", "updateStrategy", "rollingUpdate", "partition")
		r.keepsOld = onDelete
		r.rolling = !onDelete && s.text("status", "currentRevision") != s.text("status", "updateRevision")
		if partition > 0 {
			// Replicas below the partition are not updated.
			r.rolling = !onDelete && updated < r.desired-partition
		}
		r.missing = cmp.Or(short(min(r.total, r.ready), r.desired, "replica", "ready"), surplus(r.total, r.desired),
			short(updated, r.desired-partition, "replica", "updated"))
	case kinds.DaemonSet:
		r.desired = status("desiredNumberScheduled")
		r.total, r.ready = status("currentNumberScheduled"), status("numberReady")
		updated, available = status("updatedNumberScheduled"), min(r.ready, status("numberAvailable"))
		counted := content.Field(s.object, "status", "desiredNumberScheduled") != nil
		r.keepsOld = onDelete && counted
		r.rolling = !onDelete && updated < min(r.total, r.desired)
		switch {
		case !counted || content.Field(s.object, "status", "observedGeneration") == nil:
			r.missing = "has not been observed yet"
		case updated < available:
			r.missing = short(updated, r.desired, "node", "updated")
		}
		r.missing = cmp.Or(r.missing, short(available, r.desired, "node", "ready"))
	}
	r.missing = cmp.Or(r.missing, "the roll-out is not finished")
	return r
}

// short says how far a roll-out is, as in "1 of 3 replicas available". It is empty if n is enough.
func short(n, wanted int64, noun, state string) string {
	if n >= wanted {
		return ""
	}
	return fmt.Sprintf("%d of %s %s", n, count(wanted, noun), state)
}

// surplus says how many replicas are too many. It is empty if none is.
func surplus(total, wanted int64) string {
	if total <= wanted {
		return ""
	}
	return waitingFor(total-wanted, "surplus replica", "go")
}
