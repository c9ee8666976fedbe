package registry

import (
	"maps"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The tables of this file say what is special about built-in kinds, see the Kubernetes API reference: the paths of its
// operations have the scope, and the status if it is a subresource.

// clusterScoped are the kinds whose objects are in no namespace.
var clusterScoped = set(map[string][]string{
	"": {"ComponentStatus", "Namespace", "Node", "PersistentVolume"},
	"admissionregistration.k8s.io": {
		"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration",
	},
	"apiextensions.k8s.io":         {"CustomResourceDefinition"},
	"authentication.k8s.io":        {"SelfSubjectReview", "TokenReview"},
	"authorization.k8s.io":         {"SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview"},
	"certificates.k8s.io":          {"CertificateSigningRequest", "ClusterTrustBundle"},
	"flowcontrol.apiserver.k8s.io": {"FlowSchema", "PriorityLevelConfiguration"},
	"imagepolicy.k8s.io":           {"ImageReview"},
	"internal.apiserver.k8s.io":    {"StorageVersion"},
	"networking.k8s.io":            {"IPAddress", "IngressClass", "ServiceCIDR"},
	"node.k8s.io":                  {"RuntimeClass"},
	"rbac.authorization.k8s.io":    {"ClusterRole", "ClusterRoleBinding"},
	"resource.k8s.io":              {"DeviceClass", "DeviceTaintRule", "ResourcePoolStatusRequest", "ResourceSlice"},
	"scheduling.k8s.io":            {"PriorityClass"},
	"storage.k8s.io": {
		"CSIDriver", "CSINode", "StorageClass", "VolumeAttachment", "VolumeAttributesClass",
	},
	"storagemigration.k8s.io": {"StorageVersionMigration"},
})

// withoutSubresource are the kinds with a status that is no subresource.
var withoutSubresource = set(map[string][]string{
	"authentication.k8s.io": {"SelfSubjectReview", "TokenRequest", "TokenReview"},
	"authorization.k8s.io": {
		"LocalSubjectAccessReview", "SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview",
	},
})

// withoutGeneration are the kinds whose objects have no generation.
var withoutGeneration = set(map[string][]string{
	"": {
		"ConfigMap", "Endpoints", "Event", "LimitRange", "Namespace", "Node", "PersistentVolume",
		"PersistentVolumeClaim", "ResourceQuota", "Secret", "Service", "ServiceAccount",
	},
	"apps":                      {"ControllerRevision"},
	"certificates.k8s.io":       {"CertificateSigningRequest", "ClusterTrustBundle", "PodCertificateRequest"},
	"coordination.k8s.io":       {"Lease"},
	"events.k8s.io":             {"Event"},
	"networking.k8s.io":         {"IPAddress", "ServiceCIDR"},
	"node.k8s.io":               {"RuntimeClass"},
	"rbac.authorization.k8s.io": {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"},
	"resource.k8s.io":           {"ResourceClaim", "ResourceClaimTemplate"},
	"storage.k8s.io": {
		"CSIDriver", "CSINode", "CSIStorageCapacity", "StorageClass", "VolumeAttachment", "VolumeAttributesClass",
	},
	"storagemigration.k8s.io": {"StorageVersionMigration"},
})

// raisesGeneration reports whether a change of the metadata raises the generation. It does for two kinds: the revision
// of a deployment is an annotation, and consumers of endpoint slices look at labels.
func raisesGeneration(kind schema.GroupKind, obj, old client.Object) bool {
	switch kind {
	case schema.GroupKind{Group: "apps", Kind: "Deployment"}:
		return !maps.Equal(obj.GetAnnotations(), old.GetAnnotations())
	case schema.GroupKind{Group: "discovery.k8s.io", Kind: "EndpointSlice"}:
		return !maps.Equal(obj.GetLabels(), old.GetLabels())
	default:
		return false
	}
}

// conditionalUpdate are the kinds whose updates need a resource version.
var conditionalUpdate = set(map[string][]string{
	"admissionregistration.k8s.io": {
		"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration",
	},
	"certificates.k8s.io":       {"ClusterTrustBundle", "PodCertificateRequest"},
	"coordination.k8s.io":       {"Lease", "LeaseCandidate"},
	"internal.apiserver.k8s.io": {"StorageVersion"},
	"node.k8s.io":               {"RuntimeClass"},
	"policy":                    {"PodDisruptionBudget"},
	"resource.k8s.io":           {"DeviceTaintRule", "ResourcePoolStatusRequest"},
	"storage.k8s.io":            {"CSIDriver", "CSINode", "CSIStorageCapacity", "VolumeAttachment"},
	"storagemigration.k8s.io":   {"StorageVersionMigration"},
})

// createOnUpdate are the kinds of which an update creates an object that does not exist.
var createOnUpdate = set(map[string][]string{
	"":                          {"Endpoints", "Event", "LimitRange", "Service"},
	"coordination.k8s.io":       {"Lease", "LeaseCandidate"},
	"events.k8s.io":             {"Event"},
	"node.k8s.io":               {"RuntimeClass"},
	"rbac.authorization.k8s.io": {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"},
})

// keepOnStatus keeps of the metadata what an update of the status does not write. The API conventions say that it
// writes none, but for most kinds API servers let it write labels, annotations, finalizers and owner references.
func keepOnStatus(kind schema.GroupKind, obj, old client.Object) {
	switch {
	case withStatusAlone[kind]:
		keepMetadata(obj, old)
	case kind == schema.GroupKind{Group: "apps", Kind: "Deployment"}:
		obj.SetLabels(old.GetLabels())
	case kind == schema.GroupKind{Kind: "Pod"}:
		obj.SetOwnerReferences(old.GetOwnerReferences())
	}
}

// withStatusAlone are the kinds of which an update of the status writes no metadata.
var withStatusAlone = set(map[string][]string{
	"admissionregistration.k8s.io": {"ValidatingAdmissionPolicy"},
	"certificates.k8s.io":          {"PodCertificateRequest"},
	"flowcontrol.apiserver.k8s.io": {"FlowSchema", "PriorityLevelConfiguration"},
	"networking.k8s.io":            {"ServiceCIDR"},
	"resource.k8s.io":              {"DeviceTaintRule", "ResourceClaim"},
	"storage.k8s.io":               {"CSINode", "VolumeAttachment"},
	"storagemigration.k8s.io":      {"StorageVersionMigration"},
})

// anyFinalizer are the kinds whose finalizers need no domain.
var anyFinalizer = set(map[string][]string{
	"": {"Event"},
	"admissionregistration.k8s.io": {
		"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration",
	},
	"coordination.k8s.io": {"Lease", "LeaseCandidate"},
	"node.k8s.io":         {"RuntimeClass"},
	"policy":              {"PodDisruptionBudget"},
})

// nameRules are those of the kinds whose names are not DNS subdomains.
var nameRules = map[schema.GroupKind]nameRule{
	{Kind: "Event"}:                      segmentName,
	{Kind: "Namespace"}:                  labelName,
	{Kind: "Service"}:                    labelName,
	{Group: "apps", Kind: "StatefulSet"}: labelName,
	{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}: segmentName,
	{Group: "networking.k8s.io", Kind: "IPAddress"}:                   addressName,
	{Group: "policy", Kind: "PodDisruptionBudget"}:                    segmentName,
	{Group: rbac, Kind: "ClusterRole"}:                                segmentName,
	{Group: rbac, Kind: "ClusterRoleBinding"}:                         segmentName,
	{Group: rbac, Kind: "Role"}:                                       segmentName,
	{Group: rbac, Kind: "RoleBinding"}:                                segmentName,
}

func set(kinds map[string][]string) map[schema.GroupKind]bool {
	s := map[schema.GroupKind]bool{}
	for group, names := range kinds {
		for _, name := range names {
			s[schema.GroupKind{Group: group, Kind: name}] = true
		}
	}
	return s
}
