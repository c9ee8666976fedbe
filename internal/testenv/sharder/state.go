package sharder

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
)

// State is the state of a shard's Lease.
type State string

const (
	// Ready is the state of a Lease that its shard holds and that has not expired.
	Ready State = "ready"
	// Expired is the state of a Lease that expired less than its duration ago.
	Expired State = "expired"
	// Uncertain is the state of a Lease that expired longer ago. The sharder tries to take it.
	Uncertain State = "uncertain"
	// Dead is the state of a Lease that its shard does not hold: it was released, or taken.
	Dead State = "dead"
	// Orphaned is the state of a dead Lease a minute after it expired. The sharder deletes it.
	Orphaned State = "orphaned"
)

// available reports whether objects are assigned to a shard in this state.
func (s State) available() bool { return s == Ready || s == Expired || s == Uncertain }

const (
	// Identity holds the Leases that the sharder has taken.
	Identity = "shardlease-controller"
	// defaultDuration is the duration of a Lease that lacks it, or a time.
	defaultDuration = 15 * time.Second
	// orphanedAfter is how long ago a dead Lease expired that is deleted.
	orphanedAfter = time.Minute
)

// expiry returns when a Lease expires, and its duration. A Lease that lacks a time or the duration expires now.
func expiry(lease *coordinationv1.Lease, now time.Time) (expires time.Time, duration time.Duration) {
	spec := lease.Spec
	if spec.AcquireTime == nil || spec.RenewTime == nil || spec.LeaseDurationSeconds == nil {
		return now, defaultDuration
	}
	duration = time.Duration(*spec.LeaseDurationSeconds) * time.Second
	return spec.RenewTime.Add(duration), duration
}

// StateOf returns the state of a Lease at a time.
func StateOf(lease *coordinationv1.Lease, now time.Time) State {
	expires, duration := expiry(lease, now)
	switch {
	case ptr.Deref(lease.Spec.HolderIdentity, "") != lease.Name:
		if now.Before(expires.Add(orphanedAfter)) {
			return Dead
		}
		return Orphaned
	case now.Before(expires):
		return Ready
	case now.Before(expires.Add(duration)):
		return Expired
	}
	return Uncertain
}

// leaseStep is what the sharder does about a Lease. The state is written to the label first if the label has another
// one.
type leaseStep struct {
	state State
	// take and delete are what is done to the Lease then. At most one is set.
	take, delete bool
	// again is how long it takes until the Lease is looked at next without an event, 0 if it is not.
	again time.Duration
}

// stepOf returns what the sharder does about a Lease at a time.
func stepOf(lease *coordinationv1.Lease, now time.Time) leaseStep {
	expires, duration := expiry(lease, now)
	step := leaseStep{state: StateOf(lease, now)}
	switch step.state {
	case Ready:
		step.again = expires.Sub(now)
	case Expired:
		step.again = expires.Add(duration).Sub(now)
	case Uncertain:
		step.take, step.again = true, duration
	case Dead:
		step.again = expires.Add(orphanedAfter).Sub(now)
	case Orphaned:
		step.delete = true
	}
	return step
}
