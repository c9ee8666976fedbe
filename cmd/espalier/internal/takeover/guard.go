package takeover

import (
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// quiet is how long an operator must not have written anything.
const quiet = time.Minute

// atWork returns an error if a Lease says that an operator is running.
func atWork(lease *coordinationv1.Lease, now time.Time) error {
	spec := &lease.Spec
	if spec.HolderIdentity == nil || *spec.HolderIdentity == "" || spec.RenewTime == nil {
		return nil
	}
	seconds := int32(0)
	if spec.LeaseDurationSeconds != nil {
		seconds = *spec.LeaseDurationSeconds
	}
	until := spec.RenewTime.Add(time.Duration(seconds) * time.Second)
	if !now.Before(until) {
		return nil
	}
	return fmt.Errorf("the operator is running: %s holds the Lease %s/%s, renewed at %s for %d seconds; stop it first",
		*spec.HolderIdentity, lease.Namespace, lease.Name, spec.RenewTime.UTC().Format(time.RFC3339), seconds)
}

// wroteLately returns an error if a field manager has written an object within the last minute.
func wroteLately(object metav1.Object, manager string, now time.Time) error {
	for _, entry := range object.GetManagedFields() {
		if entry.Manager != manager || entry.Time == nil || now.Sub(entry.Time.Time) >= quiet {
			continue
		}
		return fmt.Errorf("the operator is running: its field manager %s has written it at %s, which is less than a "+
			"minute ago; stop it first", manager, entry.Time.UTC().Format(time.RFC3339))
	}
	return nil
}
