package registry

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// completeLease drops what the strategies of coordinated leader election need: API servers have no such election by
// default.
func completeLease(l, _ *coordinationv1.Lease) { l.Spec.Strategy, l.Spec.PreferredHolder = nil, nil }

// validateLease requires what the Kubernetes API reference requires, LeaseSpec v1 coordination.k8s.io.
func validateLease(l, _ *coordinationv1.Lease) field.ErrorList {
	at := field.NewPath("spec")
	errs := positive(at.Child("leaseDurationSeconds"), l.Spec.LeaseDurationSeconds)
	return append(errs, notNegative(at.Child("leaseTransitions"), l.Spec.LeaseTransitions)...)
}
