// Package kinds names the built-in kinds that the toolkit treats specially, each once.
package kinds

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The kinds are identified by group and kind, in any version.
var (
	APIService               = schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}
	ConfigMap                = schema.GroupKind{Kind: "ConfigMap"}
	CronJob                  = schema.GroupKind{Group: "batch", Kind: "CronJob"}
	CustomResourceDefinition = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	DaemonSet                = schema.GroupKind{Group: "apps", Kind: "DaemonSet"}
	Deployment               = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	GRPCRoute                = schema.GroupKind{Group: "gateway.networking.k8s.io", Kind: "GRPCRoute"}
	Gateway                  = schema.GroupKind{Group: "gateway.networking.k8s.io", Kind: "Gateway"}
	HTTPRoute                = schema.GroupKind{Group: "gateway.networking.k8s.io", Kind: "HTTPRoute"}
	HorizontalPodAutoscaler  = schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}
	Ingress                  = schema.GroupKind{Group: "networking.k8s.io", Kind: "Ingress"}
	Job                      = schema.GroupKind{Group: "batch", Kind: "Job"}
	Namespace                = schema.GroupKind{Kind: "Namespace"}
	PersistentVolume         = schema.GroupKind{Kind: "PersistentVolume"}
	PersistentVolumeClaim    = schema.GroupKind{Kind: "PersistentVolumeClaim"}
	Pod                      = schema.GroupKind{Kind: "Pod"}
	ReplicaSet               = schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}
	Secret                   = schema.GroupKind{Kind: "Secret"}
	Service                  = schema.GroupKind{Kind: "Service"}
	StatefulSet              = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}
)

// IsContainer reports whether the deletion of an object of the kind deletes other objects: the instances of a type, or
// the objects in a namespace.
func IsContainer(kind schema.GroupKind) bool {
	return kind == Namespace || DefinesTypes(kind)
}

// clusterScoped are the kinds of Kubernetes itself whose objects have no namespace, by group.
var clusterScoped = map[string][]string{
	"": {"ComponentStatus", "Namespace", "Node", "PersistentVolume"},
	"admissionregistration.k8s.io": {
		"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration",
	},
	"apiextensions.k8s.io":         {"CustomResourceDefinition"},
	"apiregistration.k8s.io":       {"APIService"},
	"certificates.k8s.io":          {"CertificateSigningRequest", "ClusterTrustBundle"},
	"flowcontrol.apiserver.k8s.io": {"FlowSchema", "PriorityLevelConfiguration"},
	"internal.apiserver.k8s.io":    {"StorageVersion"},
	"networking.k8s.io":            {"IPAddress", "IngressClass", "ServiceCIDR"},
	"node.k8s.io":                  {"RuntimeClass"},
	"rbac.authorization.k8s.io":    {"ClusterRole", "ClusterRoleBinding"},
	"resource.k8s.io":              {"DeviceClass", "DeviceTaintRule", "ResourceSlice"},
	"scheduling.k8s.io":            {"PriorityClass"},
	"storage.k8s.io": {
		"CSIDriver", "CSINode", "StorageClass", "VolumeAttachment", "VolumeAttributesClass",
	},
	"storagemigration.k8s.io": {"StorageVersionMigration"},
}

// IsClusterScoped reports whether an object of the kind has no namespace. It knows the kinds of Kubernetes itself.
func IsClusterScoped(kind schema.GroupKind) bool {
	return slices.Contains(clusterScoped[kind.Group], kind.Kind)
}

// IsBuiltIn reports whether the kinds of a group are those of Kubernetes itself.
func IsBuiltIn(group string) bool {
	_, known := clusterScoped[group]
	name, official := strings.CutSuffix(group, ".k8s.io")
	return known || !strings.Contains(name, ".") && (official || name == group)
}

// DefinesTypes reports whether an object of the kind makes the API server serve other types.
func DefinesTypes(kind schema.GroupKind) bool {
	return kind == CustomResourceDefinition || kind == APIService
}

// HoldsData reports whether an object of the kind holds data that is lost with it: its own, or that of the objects that
// go with it.
func HoldsData(kind schema.GroupKind) bool {
	return kind == PersistentVolumeClaim || kind == StatefulSet || kind == Namespace || kind == CustomResourceDefinition
}

// createOnly are the kinds of Kubernetes itself whose objects are questions: a create answers one, and keeps nothing.
var createOnly = map[string][]string{
	"":                      {"Binding"},
	"authentication.k8s.io": {"SelfSubjectReview", "TokenReview"},
	"authorization.k8s.io": {
		"LocalSubjectAccessReview", "SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview",
	},
}

// IsCreateOnly reports whether objects of the kind can be created and are not kept, so that they can neither be read
// nor deleted.
func IsCreateOnly(kind schema.GroupKind) bool {
	return slices.Contains(createOnly[kind.Group], kind.Kind)
}
