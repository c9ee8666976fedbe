package controllers

import (
	"sync"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var (
	podKind        = schema.GroupKind{Kind: "Pod"}
	nodeKind       = schema.GroupKind{Kind: "Node"}
	namespaceKind  = schema.GroupKind{Kind: "Namespace"}
	serviceKind    = schema.GroupKind{Kind: "Service"}
	secretKind     = schema.GroupKind{Kind: "Secret"}
	claimKind      = schema.GroupKind{Kind: "PersistentVolumeClaim"}
	volumeKind     = schema.GroupKind{Kind: "PersistentVolume"}
	deploymentKind = schema.GroupKind{Group: appsv1.GroupName, Kind: "Deployment"}
	replicaSetKind = schema.GroupKind{Group: appsv1.GroupName, Kind: "ReplicaSet"}
	statefulKind   = schema.GroupKind{Group: appsv1.GroupName, Kind: "StatefulSet"}
	daemonKind     = schema.GroupKind{Group: appsv1.GroupName, Kind: "DaemonSet"}
	revisionKind   = schema.GroupKind{Group: appsv1.GroupName, Kind: "ControllerRevision"}
	jobKind        = schema.GroupKind{Group: batchv1.GroupName, Kind: "Job"}
	cronJobKind    = schema.GroupKind{Group: batchv1.GroupName, Kind: "CronJob"}
	sliceKind      = schema.GroupKind{Group: discoveryv1.GroupName, Kind: "EndpointSlice"}
	classKind      = schema.GroupKind{Group: storagev1.GroupName, Kind: "StorageClass"}
	autoscalerKind = schema.GroupKind{Group: autoscalingv2.GroupName, Kind: "HorizontalPodAutoscaler"}
	budgetKind     = schema.GroupKind{Group: policyv1.GroupName, Kind: "PodDisruptionBudget"}
	definitionKind = schema.GroupKind{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition"}
	validatingKind = schema.GroupKind{Group: admissionv1.GroupName, Kind: "ValidatingWebhookConfiguration"}
	mutatingKind   = schema.GroupKind{Group: admissionv1.GroupName, Kind: "MutatingWebhookConfiguration"}
)

// typed are the kinds that controllers decide about, in the version that they are watched in. Of all others, and these
// are many, only the metadata is watched.
var typed = map[schema.GroupKind]string{
	podKind: "v1", nodeKind: "v1", namespaceKind: "v1", serviceKind: "v1", secretKind: "v1",
	claimKind: "v1", volumeKind: "v1", deploymentKind: "v1", replicaSetKind: "v1", statefulKind: "v1",
	daemonKind: "v1", revisionKind: "v1", jobKind: "v1", cronJobKind: "v1", sliceKind: "v1", classKind: "v1",
	autoscalerKind: "v2", budgetKind: "v1", definitionKind: "v1", validatingKind: "v1", mutatingKind: "v1",
}

// scheme has the types of the typed kinds. That of k8s.io/client-go is not used, because operators add their kinds to
// it.
var scheme = sync.OnceValue(func() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(s))
	utilruntime.Must(apiextensionsv1.AddToScheme(s))
	return s
})

// kindOf returns the kind of a typed object.
func kindOf(obj client.Object) schema.GroupKind {
	kinds, _, err := scheme().ObjectKinds(obj)
	utilruntime.Must(err)
	return kinds[0].GroupKind()
}

func keyOf(obj client.Object) key { return key{kindOf(obj), obj.GetNamespace(), obj.GetName()} }
