package registry

import (
	"fmt"
	"hash/fnv"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// completeService sets the defaults of the Kubernetes API reference, ServiceSpec v1 core, and allocates addresses and
// node ports, see "Virtual IPs and Service Proxies" in the documentation. What is allocated follows from the name of
// the service; an update keeps it.
func completeService(s, old *corev1.Service) {
	spec := &s.Spec
	setIfZero(&spec.Type, corev1.ServiceTypeClusterIP)
	setIfZero(&spec.SessionAffinity, corev1.ServiceAffinityNone)
	if spec.SessionAffinity == corev1.ServiceAffinityNone {
		spec.SessionAffinityConfig = nil
	}
	if spec.SessionAffinity == corev1.ServiceAffinityClientIP {
		setDefault(&spec.SessionAffinityConfig, corev1.SessionAffinityConfig{})
		setDefault(&spec.SessionAffinityConfig.ClientIP, corev1.ClientIPConfig{})
		setDefault(&spec.SessionAffinityConfig.ClientIP.TimeoutSeconds, corev1.DefaultClientIPServiceAffinitySeconds)
	}
	for i := range spec.Ports {
		port := &spec.Ports[i]
		setIfZero(&port.Protocol, corev1.ProtocolTCP)
		if port.TargetPort == (intstr.IntOrString{}) || port.TargetPort == intstr.FromString("") {
			port.TargetPort = intstr.FromInt32(port.Port)
		}
	}
	if old != nil {
		dropUnused(spec, &old.Spec)
	}
	if spec.Type != corev1.ServiceTypeLoadBalancer {
		s.Status.LoadBalancer = corev1.LoadBalancerStatus{}
	}
	completeServiceStatus(s)
	if spec.ClusterIP != "" && len(spec.ClusterIPs) == 0 && old == nil {
		spec.ClusterIPs = []string{spec.ClusterIP}
	}
	if spec.Type == corev1.ServiceTypeExternalName {
		return
	}
	setDefault(&spec.InternalTrafficPolicy, corev1.ServiceInternalTrafficPolicyCluster)
	if isExternal(spec) {
		setIfZero(&spec.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster)
	}
	if spec.Type == corev1.ServiceTypeLoadBalancer {
		setDefault(&spec.AllocateLoadBalancerNodePorts, true)
	}
	if old != nil {
		keepAllocated(spec, &old.Spec)
	}
	allocateAddress(s)
	allocateNodePorts(s)
}

// completeServiceStatus sets the default of ipMode, see KEP-1860, Kubernetes Service Load Balancer IP Mode.
func completeServiceStatus(s *corev1.Service) {
	for i := range s.Status.LoadBalancer.Ingress {
		if ingress := &s.Status.LoadBalancer.Ingress[i]; ingress.IP != "" {
			setDefault(&ingress.IPMode, corev1.LoadBalancerIPModeVIP)
		}
	}
}

// hasNodePorts reports whether services of the type are reached by ports of nodes.
func hasNodePorts(spec *corev1.ServiceSpec) bool {
	return spec.Type == corev1.ServiceTypeNodePort || spec.Type == corev1.ServiceTypeLoadBalancer
}

// isExternal reports whether a service is reached from outside of the cluster.
func isExternal(spec *corev1.ServiceSpec) bool {
	return hasNodePorts(spec) || spec.Type == corev1.ServiceTypeClusterIP && len(spec.ExternalIPs) > 0
}

// needsHealthCheck reports whether load balancers ask nodes whether they have endpoints of the service.
func needsHealthCheck(spec *corev1.ServiceSpec) bool {
	return spec.Type == corev1.ServiceTypeLoadBalancer &&
		spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}

// allocateAddress gives the service an IPv4 address, see [ClaimAddress] for those of others. A headless one has none,
// and one without a selector may have endpoints of both families.
func allocateAddress(s *corev1.Service) {
	spec := &s.Spec
	if spec.ClusterIP == "" && len(spec.ClusterIPs) == 0 {
		n := hash(s, 1<<20-2) + 1
		spec.ClusterIP = netip.AddrFrom4([4]byte{10, 96 + byte(n>>16), byte(n >> 8), byte(n)}).String()
	}
	if len(spec.ClusterIPs) == 0 {
		spec.ClusterIPs = []string{spec.ClusterIP}
	}
	policy, families := corev1.IPFamilyPolicySingleStack, []corev1.IPFamily{corev1.IPv4Protocol}
	if spec.ClusterIP == corev1.ClusterIPNone && len(spec.Selector) == 0 {
		policy, families = corev1.IPFamilyPolicyRequireDualStack, append(families, corev1.IPv6Protocol)
	}
	setDefault(&spec.IPFamilyPolicy, policy)
	if len(spec.IPFamilies) == 0 {
		spec.IPFamilies = families
	}
}

// The default range of node ports.
const (
	firstNodePort = 30000
	lastNodePort  = 32767
	// nodePorts is how many there are, but for the last, which is for health checks.
	nodePorts = lastNodePort - firstNodePort
)

// allocateNodePorts gives ports to those that have none, as long as there are some. They differ within the service. See
// [ClaimNodePorts] for those of others.
func allocateNodePorts(s *corev1.Service) {
	if needsHealthCheck(&s.Spec) && s.Spec.HealthCheckNodePort == 0 {
		s.Spec.HealthCheckNodePort = lastNodePort
	}
	if !hasNodePorts(&s.Spec) || s.Spec.AllocateLoadBalancerNodePorts != nil && !*s.Spec.AllocateLoadBalancerNodePorts {
		return
	}
	used := sets.New[int32]()
	for i := range s.Spec.Ports {
		used.Insert(s.Spec.Ports[i].NodePort)
	}
	first, tried := hash(s, nodePorts), uint32(0)
	for i := range s.Spec.Ports {
		for ; s.Spec.Ports[i].NodePort == 0 && tried < nodePorts; tried++ {
			if candidate := int32(firstNodePort + (first+tried)%nodePorts); !used.Has(candidate) {
				s.Spec.Ports[i].NodePort = candidate
			}
		}
	}
}

// ClaimAddress refuses an address that no service can have, or that the client asked for and another service has, and
// gives another address to a service to which one of others was allocated. Asked is what the client wants, if anything.
func ClaimAddress(s *corev1.Service, asked string, others []corev1.Service) field.ErrorList {
	spec := &s.Spec
	if spec.Type == corev1.ServiceTypeExternalName || spec.ClusterIP == corev1.ClusterIPNone {
		return nil
	}
	used := sets.New[string]()
	for i := range others {
		used.Insert(others[i].Spec.ClusterIPs...)
	}
	if asked == "" && len(spec.ClusterIPs) == 1 {
		for used.Has(spec.ClusterIP) {
			spec.ClusterIP = nextAddress(spec.ClusterIP)
		}
		spec.ClusterIPs = []string{spec.ClusterIP}
		return nil
	}
	var errs field.ErrorList
	for i, ip := range spec.ClusterIPs {
		path := field.NewPath("spec", "clusterIPs").Index(i)
		if addr, err := netip.ParseAddr(ip); err == nil && (!addresses.Contains(addr) || addr == addresses.Addr()) {
			errs = append(errs, field.Invalid(path, spec.ClusterIPs, "failed to allocate IP "+ip+
				": the provided IP is not in the valid range. The range of valid IPs is "+addresses.String()))
		}
		if used.Has(ip) {
			errs = append(errs, field.Invalid(path, spec.ClusterIPs, "failed to allocate IP "+ip+
				": provided IP is already allocated"))
		}
	}
	return errs
}

// addresses are those of services, which is what kubeadm configures.
var addresses = netip.MustParsePrefix("10.96.0.0/12")

// nextAddress returns the address after one, and the first after the last.
func nextAddress(ip string) string {
	if addr, err := netip.ParseAddr(ip); err == nil && addresses.Contains(addr.Next()) {
		return addr.Next().String()
	}
	return addresses.Addr().Next().String()
}

// NodePorts are the node ports of a service, in the order of its ports.
func NodePorts(s *corev1.Service) []int32 {
	ports := make([]int32, len(s.Spec.Ports))
	for i := range ports {
		ports[i] = s.Spec.Ports[i].NodePort
	}
	return ports
}

// ClaimNodePorts refuses node ports that a client asked for and that another service has, and gives others to those
// that were allocated. Asked are those that the client wants, in the order of the ports.
func ClaimNodePorts(s *corev1.Service, asked []int32, used sets.Set[int32]) field.ErrorList {
	var errs field.ErrorList
	own := sets.New(NodePorts(s)...)
	for i := range s.Spec.Ports {
		port, path := &s.Spec.Ports[i].NodePort, field.NewPath("spec", "ports").Index(i).Child("nodePort")
		isAsked := i < len(asked) && asked[i] == *port
		switch {
		case *port == 0:
		case isAsked && (*port < firstNodePort || *port > lastNodePort):
			errs = append(errs, field.Invalid(path, *port, fmt.Sprintf("provided port is not in the valid range. "+
				"The range of valid ports is %d-%d", firstNodePort, lastNodePort)))
		case isAsked && used.Has(*port):
			errs = append(errs, field.Invalid(path, *port, "provided port is already allocated"))
		case used.Has(*port):
			for tried := 0; (used.Has(*port) || own.Has(*port)) && tried < nodePorts; tried++ {
				*port = firstNodePort + (*port-firstNodePort+1)%nodePorts
			}
			own.Insert(*port)
		}
	}
	return errs
}

// hash is a number below n that follows from the name of the service.
func hash(s *corev1.Service, n uint32) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(s.Namespace + "/" + s.Name))
	return h.Sum32() % n
}
