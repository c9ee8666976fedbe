package registry

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// completeSigningRequest keeps a request as it was created.
func completeSigningRequest(r, old *certificatesv1.CertificateSigningRequest) {
	if old != nil {
		r.Spec = old.Spec
	}
}

// keyUsages are those of the Kubernetes API reference, CertificateSigningRequestSpec v1 certificates.k8s.io.
var keyUsages = []certificatesv1.KeyUsage{
	certificatesv1.UsageSigning, certificatesv1.UsageDigitalSignature, certificatesv1.UsageContentCommitment,
	certificatesv1.UsageKeyEncipherment, certificatesv1.UsageKeyAgreement, certificatesv1.UsageDataEncipherment,
	certificatesv1.UsageCertSign, certificatesv1.UsageCRLSign, certificatesv1.UsageEncipherOnly,
	certificatesv1.UsageDecipherOnly, certificatesv1.UsageAny, certificatesv1.UsageServerAuth,
	certificatesv1.UsageClientAuth, certificatesv1.UsageCodeSigning, certificatesv1.UsageEmailProtection,
	certificatesv1.UsageSMIME, certificatesv1.UsageIPsecEndSystem, certificatesv1.UsageIPsecTunnel,
	certificatesv1.UsageIPsecUser, certificatesv1.UsageTimestamping, certificatesv1.UsageOCSPSigning,
	certificatesv1.UsageMicrosoftSGC, certificatesv1.UsageNetscapeSGC,
}

// validateSigningRequest requires what the Kubernetes API reference requires, CertificateSigningRequestSpec v1
// certificates.k8s.io.
func validateSigningRequest(r, _ *certificatesv1.CertificateSigningRequest) field.ErrorList {
	at, spec := field.NewPath("spec"), &r.Spec
	var errs field.ErrorList
	if err := checkRequest(spec.Request); err != nil {
		errs = append(errs, field.Invalid(at.Child("request"), spec.Request, err.Error()))
	}
	if len(spec.Usages) == 0 {
		errs = append(errs, field.Required(at.Child("usages"), ""))
	}
	for i, usage := range spec.Usages {
		path := at.Child("usages").Index(i)
		errs = append(errs, supported(path, usage, keyUsages...)...)
		if slices.Contains(spec.Usages[:i], usage) {
			errs = append(errs, field.Duplicate(path, usage))
		}
	}
	if spec.SignerName == "kubernetes.io/legacy-unknown" {
		errs = append(errs, field.Invalid(at.Child("signerName"), spec.SignerName,
			"the legacy signerName is not allowed via this API version"))
	}
	errs = append(errs, validateSignerName(spec.SignerName, at.Child("signerName"))...)
	if seconds := spec.ExpirationSeconds; seconds != nil && *seconds < 600 {
		errs = append(errs, field.Invalid(at.Child("expirationSeconds"), *seconds,
			"may not specify a duration less than 600 seconds (10 minutes)"))
	}
	return errs
}

// checkRequest requires a request that is signed with the key that it is for.
func checkRequest(request []byte) error {
	block, _ := pem.Decode(request)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return errors.New("PEM block type must be CERTIFICATE REQUEST")
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return err
	}
	return parsed.CheckSignature()
}
