package readiness

import (
	"github.com/espalier-dev/espalier/component"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// static are kinds that are served by every API server, and have no status, or one in which no rule finds anything: neither
// conditions nor an observed generation.
var static = map[schema.GroupKind]bool{
	{Kind: "ConfigMap"}:      true,
	{Kind: "Secret"}:         true,
	{Kind: "ServiceAccount"}: true,
	{Kind: "LimitRange"}:     true,
	{Kind: "ResourceQuota"}:  true,
	{Kind: "Endpoints"}:      true,
	{Kind: "PodTemplate"}:    true,

	{Group: "rbac.authorization.k8s.io", Kind: "Role"}:               true,
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:        true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:        true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}: true,

	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:     true,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}:   true,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicyBinding"}: true,

	{Group: "batch", Kind: "CronJob"}:                     true,
	{Group: "coordination.k8s.io", Kind: "Lease"}:         true,
	{Group: "discovery.k8s.io", Kind: "EndpointSlice"}:    true,
	{Group: "networking.k8s.io", Kind: "IngressClass"}:    true,
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}:   true,
	{Group: "node.k8s.io", Kind: "RuntimeClass"}:          true,
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:   true,
	{Group: "storage.k8s.io", Kind: "CSIDriver"}:          true,
	{Group: "storage.k8s.io", Kind: "StorageClass"}:       true,
	{Group: "storage.k8s.io", Kind: "CSIStorageCapacity"}: true,
}

// Static tells whether objects of the kind, with these settings, are ready as soon as they exist, whatever becomes of them.
func Static(kind schema.GroupKind, settings component.Settings) bool {
	hint := settings.StatusHint
	return static[kind] &&
		settings.ReadyWhen == "" &&
		!hint.HasObservedGeneration && !hint.HasReadyCondition && len(hint.Conditions) == 0
}
