package sharder

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// leaseOf returns the Lease "one" with a holder, renewed at noon for 15 seconds.
func leaseOf(holder string) *coordinationv1.Lease {
	at := metav1.NewMicroTime(noon)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	lease.Spec = coordinationv1.LeaseSpec{
		HolderIdentity: &holder, AcquireTime: &at, RenewTime: &at, LeaseDurationSeconds: new(int32(15)),
	}
	return lease
}

func TestStepOf(t *testing.T) {
	never := func(spec *coordinationv1.LeaseSpec) { spec.RenewTime = nil }
	for name, test := range map[string]struct {
		holder string
		change func(spec *coordinationv1.LeaseSpec)
		after  time.Duration
		want   leaseStep
	}{
		"renewed": {"one", nil, 5 * time.Second, leaseStep{state: Ready, again: 10 * time.Second}},
		"about to expire": {
			"one", nil, 15*time.Second - 1, leaseStep{state: Ready, again: 1}},
		"expired": {
			"one", nil, 15 * time.Second, leaseStep{state: Expired, again: 15 * time.Second}},
		"expired for its duration": {
			"one", nil, 30 * time.Second, leaseStep{state: Uncertain, take: true, again: 15 * time.Second}},
		"held without a time of renewal": {
			"one", never, time.Hour, leaseStep{state: Expired, again: 15 * time.Second}},
		"released": {
			"", nil, 5 * time.Second, leaseStep{state: Dead, again: 70 * time.Second}},
		"without a holder": {
			"", func(s *coordinationv1.LeaseSpec) { s.HolderIdentity = nil }, 5 * time.Second,
			leaseStep{state: Dead, again: 70 * time.Second}},
		"taken": {
			Identity, nil, 20 * time.Second, leaseStep{state: Dead, again: 55 * time.Second}},
		"dead for a minute": {
			Identity, nil, 75 * time.Second, leaseStep{state: Orphaned, delete: true}},
		"released without a time of renewal": {
			"", never, time.Hour, leaseStep{state: Dead, again: time.Minute}},
	} {
		t.Run(name, func(t *testing.T) {
			lease := leaseOf(test.holder)
			if test.change != nil {
				test.change(&lease.Spec)
			}
			if got := stepOf(lease, noon.Add(test.after)); got != test.want {
				t.Errorf("the step is %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestATakenLeaseIsHeldForTwiceItsDuration(t *testing.T) {
	spec := leaseOf("one").Spec
	now := metav1.NewMicroTime(noon.Add(time.Minute))
	take(&spec, now, *spec.LeaseDurationSeconds)
	if *spec.HolderIdentity != Identity || *spec.LeaseDurationSeconds != 30 || *spec.LeaseTransitions != 1 ||
		!spec.RenewTime.Equal(&now) || !spec.AcquireTime.Equal(&now) {
		t.Errorf("the Lease is %+v, want one of %s for 30 seconds from now on, after one transition", spec, Identity)
	}
}
