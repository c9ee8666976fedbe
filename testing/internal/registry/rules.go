package registry

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// rules are what is special about the contents of one version of a built-in kind. Old is nil if the object is created.
type rules struct {
	// complete sets defaults, and what an API server fills in.
	complete func(obj, old client.Object)
	// validate says what is wrong with the contents, and which of them must not change.
	validate func(obj, old client.Object) field.ErrorList
}

// contentRules are the rules of the kinds that have some.
var contentRules = map[schema.GroupVersionKind]rules{
	{Version: "v1", Kind: "ConfigMap"}:             of(nil, validateConfigMap),
	{Version: "v1", Kind: "Endpoints"}:             of(completeEndpoints, validateEndpoints),
	{Version: "v1", Kind: "Event"}:                 of(nil, validateEvent),
	{Version: "v1", Kind: "LimitRange"}:            of(completeLimitRange, validateLimitRange),
	{Version: "v1", Kind: "Namespace"}:             of(completeNamespace, validateNamespace),
	{Version: "v1", Kind: "Node"}:                  of(completeNode, validateNode),
	{Version: "v1", Kind: "PersistentVolume"}:      of(completePersistentVolume, validatePersistentVolume),
	{Version: "v1", Kind: "PersistentVolumeClaim"}: of(completeClaim, validateClaim),
	{Version: "v1", Kind: "Pod"}:                   of(completePod, validatePod),
	{Version: "v1", Kind: "PodTemplate"}:           of(completePodTemplate, validatePodTemplate),
	{Version: "v1", Kind: "ReplicationController"}: of(completeReplicationController, validateReplicationController),
	{Version: "v1", Kind: "ResourceQuota"}:         of(nil, validateQuota),
	{Version: "v1", Kind: "Secret"}:                of(completeSecret, validateSecret),
	{Version: "v1", Kind: "Service"}:               of(completeService, validateService),

	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingAdmissionPolicy"}: of(
		completeMutatingPolicy, nil),
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingAdmissionPolicyBinding"}: of(
		completeMutatingPolicyBinding, nil),
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"}: of(
		completeMutating, validateMutating),
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicy"}: of(
		completeValidatingPolicy, nil),
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicyBinding"}: of(
		completeValidatingPolicyBinding, nil),
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"}: of(
		completeValidating, validateValidating),

	{Group: "apps", Version: "v1", Kind: "ControllerRevision"}: of(nil, validateRevision),
	{Group: "apps", Version: "v1", Kind: "DaemonSet"}:          of(completeDaemonSet, validateDaemonSet),
	{Group: "apps", Version: "v1", Kind: "Deployment"}:         of(completeDeployment, validateDeployment),
	{Group: "apps", Version: "v1", Kind: "ReplicaSet"}:         of(completeReplicaSet, validateReplicaSet),
	{Group: "apps", Version: "v1", Kind: "StatefulSet"}:        of(completeStatefulSet, validateStatefulSet),

	{Group: "autoscaling", Version: "v1", Kind: "HorizontalPodAutoscaler"}: of(
		completeAutoscalerV1, validateAutoscalerV1),
	{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"}: of(completeAutoscaler, validateAutoscaler),

	{Group: "batch", Version: "v1", Kind: "CronJob"}: of(completeCronJob, validateCronJob),
	{Group: "batch", Version: "v1", Kind: "Job"}:     of(completeJob, validateJob),

	{Group: "certificates.k8s.io", Version: "v1", Kind: "CertificateSigningRequest"}: of(
		completeSigningRequest, validateSigningRequest),

	{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}: of(completeLease, validateLease),

	{Group: "discovery.k8s.io", Version: "v1", Kind: "EndpointSlice"}: of(completeEndpointSlice, validateEndpointSlice),

	{Group: "events.k8s.io", Version: "v1", Kind: "Event"}: of(nil, validateNewEvent),

	{Group: "flowcontrol.apiserver.k8s.io", Version: "v1", Kind: "FlowSchema"}: of(
		completeFlowSchema, validateFlowSchema),
	{Group: "flowcontrol.apiserver.k8s.io", Version: "v1", Kind: "PriorityLevelConfiguration"}: of(
		completePriorityLevel, validatePriorityLevel),

	{Group: "networking.k8s.io", Version: "v1", Kind: "IPAddress"}:    of(nil, validateAddress),
	{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"}:      of(nil, validateIngress),
	{Group: "networking.k8s.io", Version: "v1", Kind: "IngressClass"}: of(completeIngressClass, validateIngressClass),
	{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"}: of(
		completeNetworkPolicy, validateNetworkPolicy),
	{Group: "networking.k8s.io", Version: "v1", Kind: "ServiceCIDR"}: of(nil, validateServiceRange),

	{Group: "node.k8s.io", Version: "v1", Kind: "RuntimeClass"}: of(nil, validateRuntimeClass),

	{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"}: of(nil, validateDisruptionBudget),

	{Group: rbac, Version: "v1", Kind: "ClusterRole"}: of(nil, validateClusterRole),
	{Group: rbac, Version: "v1", Kind: "ClusterRoleBinding"}: of(
		completeClusterRoleBinding, validateClusterRoleBinding),
	{Group: rbac, Version: "v1", Kind: "Role"}:        of(nil, validateRole),
	{Group: rbac, Version: "v1", Kind: "RoleBinding"}: of(completeRoleBinding, validateRoleBinding),

	{Group: "resource.k8s.io", Version: "v1", Kind: "ResourceClaim"}:         of(completeResourceClaim, nil),
	{Group: "resource.k8s.io", Version: "v1", Kind: "ResourceClaimTemplate"}: of(completeResourceClaimTemplate, nil),

	{Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClass"}: of(
		completePriorityClass, validatePriorityClass),

	{Group: "storage.k8s.io", Version: "v1", Kind: "CSIDriver"}:          of(completeDriver, validateDriver),
	{Group: "storage.k8s.io", Version: "v1", Kind: "CSINode"}:            of(nil, validateCSINode),
	{Group: "storage.k8s.io", Version: "v1", Kind: "CSIStorageCapacity"}: of(nil, validateCapacity),
	{Group: "storage.k8s.io", Version: "v1", Kind: "StorageClass"}: of(completeStorageClass,
		validateStorageClass),
	{Group: "storage.k8s.io", Version: "v1", Kind: "VolumeAttachment"}:      of(completeAttachment, validateAttachment),
	{Group: "storage.k8s.io", Version: "v1", Kind: "VolumeAttributesClass"}: of(nil, validateAttributesClass),
}

const rbac = "rbac.authorization.k8s.io"

// noRules do nothing.
var noRules = of[struct{}](nil, nil)

// of makes rules of those for a Go type. A function that is nil does nothing.
func of[T any](complete func(obj, old *T), validate func(obj, old *T) field.ErrorList) rules {
	r := rules{
		complete: func(client.Object, client.Object) {},
		validate: func(client.Object, client.Object) field.ErrorList { return nil },
	}
	typed := func(obj client.Object) *T {
		t, _ := any(obj).(*T)
		return t
	}
	if complete != nil {
		r.complete = func(obj, old client.Object) { complete(typed(obj), typed(old)) }
	}
	if validate != nil {
		r.validate = func(obj, old client.Object) field.ErrorList { return validate(typed(obj), typed(old)) }
	}
	return r
}
