package registry

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// keepAllocated keeps what was allocated, where the client leaves it out.
func keepAllocated(spec, old *corev1.ServiceSpec) {
	if old.Type == corev1.ServiceTypeExternalName {
		return
	}
	setIfZero(&spec.ClusterIP, old.ClusterIP)
	if len(spec.ClusterIPs) == 0 && spec.ClusterIP == old.ClusterIP {
		spec.ClusterIPs = old.ClusterIPs
	}
	if spec.IPFamilyPolicy == nil {
		spec.IPFamilyPolicy = old.IPFamilyPolicy
	}
	if len(spec.IPFamilies) == 0 {
		spec.IPFamilies = old.IPFamilies
	}
	if !hasNodePorts(spec) || !hasNodePorts(old) {
		return
	}
	has := func(ports []corev1.ServicePort, nodePort int32) bool {
		return slices.ContainsFunc(ports, func(p corev1.ServicePort) bool { return p.NodePort == nodePort })
	}
	sent := slices.Clone(spec.Ports)
	for i := range spec.Ports {
		port := &spec.Ports[i]
		for _, o := range old.Ports {
			if o.Name == port.Name && !has(sent, o.NodePort) {
				setIfZero(&port.NodePort, o.NodePort)
			}
		}
	}
	setIfZero(&spec.HealthCheckNodePort, old.HealthCheckNodePort)
}

// dropUnused drops what the type that the service had needed and the new one does not, unless the client changed it.
func dropUnused(spec, old *corev1.ServiceSpec) {
	if spec.Type == corev1.ServiceTypeExternalName && old.Type != corev1.ServiceTypeExternalName {
		dropIfSame(&spec.ClusterIP, old.ClusterIP)
		dropIfSame(&spec.ClusterIPs, old.ClusterIPs)
		dropIfSame(&spec.IPFamilies, old.IPFamilies)
		dropIfSame(&spec.IPFamilyPolicy, old.IPFamilyPolicy)
		dropIfSame(&spec.InternalTrafficPolicy, old.InternalTrafficPolicy)
	}
	if hasNodePorts(old) && !hasNodePorts(spec) && slices.EqualFunc(spec.Ports, old.Ports, sameNodePort) {
		for i := range spec.Ports {
			spec.Ports[i].NodePort = 0
		}
	}
	if isExternal(old) && !isExternal(spec) {
		dropIfSame(&spec.ExternalTrafficPolicy, old.ExternalTrafficPolicy)
	}
	if needsHealthCheck(old) && !needsHealthCheck(spec) {
		dropIfSame(&spec.HealthCheckNodePort, old.HealthCheckNodePort)
	}
	if old.Type == corev1.ServiceTypeLoadBalancer && spec.Type != corev1.ServiceTypeLoadBalancer {
		dropIfSame(&spec.AllocateLoadBalancerNodePorts, old.AllocateLoadBalancerNodePorts)
		dropIfSame(&spec.LoadBalancerClass, old.LoadBalancerClass)
	}
	if old.SessionAffinity == corev1.ServiceAffinityClientIP && spec.SessionAffinity == corev1.ServiceAffinityNone {
		dropIfSame(&spec.SessionAffinityConfig, old.SessionAffinityConfig)
	}
}

func sameNodePort(a, b corev1.ServicePort) bool { return a.NodePort == b.NodePort }

// dropIfSame empties a field that has the old value.
func dropIfSame[T any](field *T, old T) {
	if equality.Semantic.DeepEqual(*field, old) {
		var zero T
		*field = zero
	}
}
