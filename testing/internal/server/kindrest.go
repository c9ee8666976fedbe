package server

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
)

// kindREST serves the objects of a kind.
type kindREST struct {
	*genericregistry.Store
	kind schema.GroupKind
}

var (
	_ rest.ShortNamesProvider = kindREST{}
	_ rest.CategoriesProvider = kindREST{}
)

// ShortNames implements [rest.ShortNamesProvider].
func (r kindREST) ShortNames() []string {
	if name, ok := shortNames[r.kind]; ok {
		return []string{name}
	}
	return nil
}

// Categories implements [rest.CategoriesProvider].
func (r kindREST) Categories() []string {
	switch {
	case r.kind.Group == "admissionregistration.k8s.io":
		return []string{"api-extensions"}
	case slices.Contains(categoryAll, r.kind):
		return []string{"all"}
	}
	return nil
}

// shortNames are those of "Resource types" in the documentation of kubectl.
var shortNames = map[schema.GroupKind]string{
	{Kind: "ConfigMap"}:             "cm",
	{Kind: "Endpoints"}:             "ep",
	{Kind: "Event"}:                 "ev",
	{Kind: "LimitRange"}:            "limits",
	{Kind: "Namespace"}:             "ns",
	{Kind: "Node"}:                  "no",
	{Kind: "PersistentVolume"}:      "pv",
	{Kind: "PersistentVolumeClaim"}: "pvc",
	{Kind: "Pod"}:                   "po",
	{Kind: "ReplicationController"}: "rc",
	{Kind: "ResourceQuota"}:         "quota",
	{Kind: "Service"}:               "svc",
	{Kind: "ServiceAccount"}:        "sa",

	{Group: "apps", Kind: "DaemonSet"}:                                "ds",
	{Group: "apps", Kind: "Deployment"}:                               "deploy",
	{Group: "apps", Kind: "ReplicaSet"}:                               "rs",
	{Group: "apps", Kind: "StatefulSet"}:                              "sts",
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}:           "hpa",
	{Group: "batch", Kind: "CronJob"}:                                 "cj",
	{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}: "csr",
	{Group: "networking.k8s.io", Kind: "IPAddress"}:                   "ip",
	{Group: "networking.k8s.io", Kind: "Ingress"}:                     "ing",
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}:               "netpol",
	{Group: "policy", Kind: "PodDisruptionBudget"}:                    "pdb",
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:               "pc",
	{Group: "storage.k8s.io", Kind: "StorageClass"}:                   "sc",
	{Group: "storage.k8s.io", Kind: "VolumeAttributesClass"}:          "vac",
}

// categoryAll are the kinds that "kubectl get all" shows.
var categoryAll = []schema.GroupKind{
	{Kind: "Pod"}, {Kind: "ReplicationController"}, {Kind: "Service"},
	{Group: "apps", Kind: "DaemonSet"}, {Group: "apps", Kind: "Deployment"},
	{Group: "apps", Kind: "ReplicaSet"}, {Group: "apps", Kind: "StatefulSet"},
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"},
	{Group: "batch", Kind: "CronJob"}, {Group: "batch", Kind: "Job"},
}
