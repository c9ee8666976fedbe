package registry

import "k8s.io/apimachinery/pkg/runtime/schema"

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
	"storage.k8s.io": {"CSINode"},
})

// withoutGeneration are the kinds whose objects have no generation.
var withoutGeneration = set(map[string][]string{
	"": {
		"ConfigMap", "Endpoints", "Event", "LimitRange", "Namespace", "Node", "PersistentVolume",
		"PersistentVolumeClaim", "ResourceQuota", "Secret", "Service", "ServiceAccount",
	},
	"apps":                      {"ControllerRevision"},
	"coordination.k8s.io":       {"Lease"},
	"events.k8s.io":             {"Event"},
	"rbac.authorization.k8s.io": {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"},
	"storage.k8s.io":            {"StorageClass", "VolumeAttachment"},
})

func set(kinds map[string][]string) map[schema.GroupKind]bool {
	s := map[schema.GroupKind]bool{}
	for group, names := range kinds {
		for _, name := range names {
			s[schema.GroupKind{Group: group, Kind: name}] = true
		}
	}
	return s
}
