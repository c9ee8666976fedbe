package server

import (
	"context"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
)

// newApproval returns the subresource approval of signing requests, see the Kubernetes API reference,
// CertificateSigningRequest v1 certificates.k8s.io. It writes the conditions of the status.
func newApproval(store *genericregistry.Store) statusREST {
	approval := newStatus(store, "status")
	approval.store.UpdateStrategy = approvalStrategy{approval.store.UpdateStrategy.(strategy)}
	return approval
}

type approvalStrategy struct{ strategy }

// PrepareForUpdate implements [rest.RESTUpdateStrategy].
func (s approvalStrategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	s.strategy.PrepareForUpdate(ctx, obj, old)
	obj.(*certificatesv1.CertificateSigningRequest).Status.Certificate =
		old.(*certificatesv1.CertificateSigningRequest).Status.Certificate
}
