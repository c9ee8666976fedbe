package component

import corev1 "k8s.io/api/core/v1"

// The structs in this file are for specs, where components commonly let users say the same things. Nothing in this toolkit reads
// them; what becomes of them is up to the generator.

// ImageSpec says which image to run.
//
// +kubebuilder:object:generate=true
type ImageSpec struct {
	// Repository is the image without tag.
	// +optional
	Repository string `json:"repository,omitempty"`
	// Tag of the image.
	// +optional
	Tag string `json:"tag,omitempty"`
	// PullPolicy says when the image is pulled.
	// +optional
	// +kubebuilder:validation:Enum=Always;Never;IfNotPresent
	// +kubebuilder:default=IfNotPresent
	PullPolicy corev1.PullPolicy `json:"pullPolicy,omitempty"`
	// PullSecret is the name of the Secret to pull the image with.
	// +optional
	PullSecret string `json:"pullSecret,omitempty"`
}

// KubernetesProperties are what users can say about pods with one container.
//
// +kubebuilder:object:generate=true
type KubernetesProperties struct {
	KubernetesPodProperties       `json:",inline"`
	KubernetesContainerProperties `json:",inline"`
}

// KubernetesPodProperties are what users can say about pods.
//
// +kubebuilder:object:generate=true
type KubernetesPodProperties struct {
	// NodeSelector are labels of the nodes to run on.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// Affinity to nodes and to other pods.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`
	// TopologySpreadConstraints say how pods are spread over nodes.
	// +optional
	// +listType=atomic
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`
	// Tolerations of taints of nodes.
	// +optional
	// +listType=atomic
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// PriorityClassName is the name of the pods' PriorityClass.
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`
	// PodSecurityContext is the security context of the pods.
	// +optional
	PodSecurityContext *corev1.PodSecurityContext `json:"podSecurityContext,omitempty"`
	// PodLabels are labels of the pods.
	// +optional
	PodLabels map[string]string `json:"podLabels,omitempty"`
	// PodAnnotations are annotations of the pods.
	// +optional
	PodAnnotations map[string]string `json:"podAnnotations,omitempty"`
}

// KubernetesContainerProperties are what users can say about containers.
//
// +kubebuilder:object:generate=true
type KubernetesContainerProperties struct {
	// SecurityContext is that of the container.
	// +optional
	SecurityContext *corev1.SecurityContext `json:"securityContext,omitempty"`
	// Resources that the container requests and is limited to.
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`
}

// ServiceProperties are what users can say about a Service.
//
// +kubebuilder:object:generate=true
type ServiceProperties struct {
	// Type of the Service.
	// +optional
	// +kubebuilder:validation:Enum=ClusterIP;NodePort;LoadBalancer;ExternalName
	// +kubebuilder:default=ClusterIP
	Type corev1.ServiceType `json:"type,omitempty"`
	// LoadBalancerSourceRanges are the addresses that may use the load balancer.
	// +optional
	// +listType=atomic
	LoadBalancerSourceRanges []string `json:"loadBalancerSourceRanges,omitempty"`
	// ExternalTrafficPolicy says how traffic from outside is distributed.
	// +optional
	// +kubebuilder:validation:Enum=Cluster;Local
	// +kubebuilder:default=Cluster
	ExternalTrafficPolicy corev1.ServiceExternalTrafficPolicy `json:"externalTrafficPolicy,omitempty"`
	// Labels of the Service.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations of the Service.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// IngressProperties are what users can say about an Ingress.
//
// +kubebuilder:object:generate=true
type IngressProperties struct {
	// Class is the name of the IngressClass.
	// +optional
	Class string `json:"class,omitempty"`
	// Labels of the Ingress.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations of the Ingress.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}
