// Package kinds names the built-in kinds that the toolkit treats specially, each once.
package kinds

import "k8s.io/apimachinery/pkg/runtime/schema"

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

// DefinesTypes reports whether an object of the kind makes the API server serve other types.
func DefinesTypes(kind schema.GroupKind) bool {
	return kind == CustomResourceDefinition || kind == APIService
}

// HoldsData reports whether an object of the kind holds data that is lost with it: its own, or that of the objects that
// go with it.
func HoldsData(kind schema.GroupKind) bool {
	return kind == PersistentVolumeClaim || kind == StatefulSet || kind == Namespace || kind == CustomResourceDefinition
}
