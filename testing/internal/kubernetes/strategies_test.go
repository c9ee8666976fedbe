package kubernetes_test

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
	_ "k8s.io/kubernetes/pkg/apis/admissionregistration/install"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	_ "k8s.io/kubernetes/pkg/apis/certificates/install"
	_ "k8s.io/kubernetes/pkg/apis/coordination/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/discovery/install"
	_ "k8s.io/kubernetes/pkg/apis/events/install"
	_ "k8s.io/kubernetes/pkg/apis/flowcontrol/install"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	_ "k8s.io/kubernetes/pkg/apis/node/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"
	_ "k8s.io/kubernetes/pkg/apis/resource/install"
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/mutatingwebhookconfiguration"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingwebhookconfiguration"
	"k8s.io/kubernetes/pkg/registry/apps/controllerrevision"
	"k8s.io/kubernetes/pkg/registry/apps/daemonset"
	"k8s.io/kubernetes/pkg/registry/apps/deployment"
	"k8s.io/kubernetes/pkg/registry/apps/replicaset"
	"k8s.io/kubernetes/pkg/registry/apps/statefulset"
	"k8s.io/kubernetes/pkg/registry/autoscaling/horizontalpodautoscaler"
	"k8s.io/kubernetes/pkg/registry/batch/cronjob"
	"k8s.io/kubernetes/pkg/registry/batch/job"
	"k8s.io/kubernetes/pkg/registry/certificates/certificates"
	"k8s.io/kubernetes/pkg/registry/coordination/lease"
	"k8s.io/kubernetes/pkg/registry/core/configmap"
	"k8s.io/kubernetes/pkg/registry/core/endpoint"
	"k8s.io/kubernetes/pkg/registry/core/event"
	"k8s.io/kubernetes/pkg/registry/core/limitrange"
	"k8s.io/kubernetes/pkg/registry/core/namespace"
	"k8s.io/kubernetes/pkg/registry/core/node"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolume"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim"
	"k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/pkg/registry/core/podtemplate"
	"k8s.io/kubernetes/pkg/registry/core/replicationcontroller"
	"k8s.io/kubernetes/pkg/registry/core/resourcequota"
	"k8s.io/kubernetes/pkg/registry/core/secret"
	"k8s.io/kubernetes/pkg/registry/core/service"
	"k8s.io/kubernetes/pkg/registry/core/serviceaccount"
	"k8s.io/kubernetes/pkg/registry/discovery/endpointslice"
	"k8s.io/kubernetes/pkg/registry/flowcontrol/flowschema"
	"k8s.io/kubernetes/pkg/registry/flowcontrol/prioritylevelconfiguration"
	"k8s.io/kubernetes/pkg/registry/networking/ingress"
	"k8s.io/kubernetes/pkg/registry/networking/ingressclass"
	"k8s.io/kubernetes/pkg/registry/networking/ipaddress"
	"k8s.io/kubernetes/pkg/registry/networking/networkpolicy"
	"k8s.io/kubernetes/pkg/registry/networking/servicecidr"
	"k8s.io/kubernetes/pkg/registry/node/runtimeclass"
	"k8s.io/kubernetes/pkg/registry/policy/poddisruptionbudget"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrole"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrolebinding"
	"k8s.io/kubernetes/pkg/registry/rbac/role"
	"k8s.io/kubernetes/pkg/registry/rbac/rolebinding"
	"k8s.io/kubernetes/pkg/registry/scheduling/priorityclass"
	"k8s.io/kubernetes/pkg/registry/storage/csidriver"
	"k8s.io/kubernetes/pkg/registry/storage/csinode"
	"k8s.io/kubernetes/pkg/registry/storage/csistoragecapacity"
	"k8s.io/kubernetes/pkg/registry/storage/storageclass"
	"k8s.io/kubernetes/pkg/registry/storage/volumeattachment"
	"k8s.io/kubernetes/pkg/registry/storage/volumeattributesclass"
)

// unjudged are the kinds that have no strategy below, with the reason.
var unjudged = map[schema.GroupKind]string{
	{Group: admission, Kind: "MutatingAdmissionPolicy"}:                 policies,
	{Group: admission, Kind: "MutatingAdmissionPolicyBinding"}:          policies,
	{Group: admission, Kind: "ValidatingAdmissionPolicy"}:               policies,
	{Group: admission, Kind: "ValidatingAdmissionPolicyBinding"}:        policies,
	{Group: "certificates.k8s.io", Kind: "ClusterTrustBundle"}:          signers,
	{Group: "certificates.k8s.io", Kind: "PodCertificateRequest"}:       signers,
	{Group: "resource.k8s.io", Kind: "DeviceClass"}:                     devices,
	{Group: "resource.k8s.io", Kind: "DeviceTaintRule"}:                 devices,
	{Group: "resource.k8s.io", Kind: "ResourceClaim"}:                   devices,
	{Group: "resource.k8s.io", Kind: "ResourceClaimTemplate"}:           devices,
	{Group: "resource.k8s.io", Kind: "ResourceSlice"}:                   devices,
	{Group: "storagemigration.k8s.io", Kind: "StorageVersionMigration"}: migrations,
}

const (
	admission  = "admissionregistration.k8s.io"
	policies   = "registry only completes policies of admission"
	devices    = "nothing that runs here uses devices, so registry only completes their kinds"
	signers    = "nothing that runs here signs certificates for pods, so registry accepts any"
	migrations = "nothing that runs here stores an object in several versions, so registry accepts any"
)

// strategies are those of Kubernetes, by kind.
var strategies = map[schema.GroupKind]rest.RESTCreateUpdateStrategy{
	{Kind: "ConfigMap"}:             configmap.Strategy,
	{Kind: "Endpoints"}:             endpoint.Strategy,
	{Kind: "Event"}:                 event.Strategy,
	{Kind: "LimitRange"}:            limitrange.Strategy,
	{Kind: "Namespace"}:             namespace.Strategy,
	{Kind: "Node"}:                  node.Strategy,
	{Kind: "PersistentVolume"}:      persistentvolume.Strategy,
	{Kind: "PersistentVolumeClaim"}: persistentvolumeclaim.Strategy,
	{Kind: "Pod"}:                   pod.Strategy,
	{Kind: "PodTemplate"}:           podtemplate.Strategy,
	{Kind: "ReplicationController"}: replicationcontroller.Strategy,
	{Kind: "ResourceQuota"}:         resourcequota.Strategy,
	{Kind: "Secret"}:                secret.Strategy,
	{Kind: "Service"}:               service.Strategy,
	{Kind: "ServiceAccount"}:        serviceaccount.Strategy,

	{Group: "admissionregistration.k8s.io",
		Kind: "MutatingWebhookConfiguration"}: mutatingwebhookconfiguration.Strategy,
	{Group: "admissionregistration.k8s.io",
		Kind: "ValidatingWebhookConfiguration"}: validatingwebhookconfiguration.Strategy,

	{Group: "apps", Kind: "ControllerRevision"}: controllerrevision.Strategy,
	{Group: "apps", Kind: "DaemonSet"}:          daemonset.Strategy,
	{Group: "apps", Kind: "Deployment"}:         deployment.Strategy,
	{Group: "apps", Kind: "ReplicaSet"}:         replicaset.Strategy,
	{Group: "apps", Kind: "StatefulSet"}:        statefulset.Strategy,

	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}: horizontalpodautoscaler.Strategy,

	{Group: "batch", Kind: "CronJob"}: cronjob.Strategy,
	{Group: "batch", Kind: "Job"}:     job.Strategy,

	{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}: certificates.Strategy,

	{Group: "coordination.k8s.io", Kind: "Lease"}: lease.Strategy,

	{Group: "discovery.k8s.io", Kind: "EndpointSlice"}: endpointslice.Strategy,

	{Group: "events.k8s.io", Kind: "Event"}: event.Strategy,

	{Group: "flowcontrol.apiserver.k8s.io", Kind: "FlowSchema"}:                 flowschema.Strategy,
	{Group: "flowcontrol.apiserver.k8s.io", Kind: "PriorityLevelConfiguration"}: prioritylevelconfiguration.Strategy,

	{Group: "networking.k8s.io", Kind: "IPAddress"}:     ipaddress.Strategy,
	{Group: "networking.k8s.io", Kind: "Ingress"}:       ingress.Strategy,
	{Group: "networking.k8s.io", Kind: "IngressClass"}:  ingressclass.Strategy,
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}: networkpolicy.Strategy,
	{Group: "networking.k8s.io", Kind: "ServiceCIDR"}:   servicecidr.Strategy,

	{Group: "node.k8s.io", Kind: "RuntimeClass"}: runtimeclass.Strategy,

	{Group: "policy", Kind: "PodDisruptionBudget"}: poddisruptionbudget.Strategy,

	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:        clusterrole.Strategy,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}: clusterrolebinding.Strategy,
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}:               role.Strategy,
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:        rolebinding.Strategy,

	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}: priorityclass.Strategy,

	{Group: "storage.k8s.io", Kind: "CSIDriver"}:             csidriver.Strategy,
	{Group: "storage.k8s.io", Kind: "CSINode"}:               csinode.Strategy,
	{Group: "storage.k8s.io", Kind: "CSIStorageCapacity"}:    csistoragecapacity.Strategy,
	{Group: "storage.k8s.io", Kind: "StorageClass"}:          storageclass.Strategy,
	{Group: "storage.k8s.io", Kind: "VolumeAttachment"}:      volumeattachment.Strategy,
	{Group: "storage.k8s.io", Kind: "VolumeAttributesClass"}: volumeattributesclass.Strategy,
}
