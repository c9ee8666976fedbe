package registry

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// validateService requires what the Kubernetes API reference requires, ServiceSpec v1 core.
func validateService(s, old *corev1.Service) field.ErrorList {
	at, spec := field.NewPath("spec"), &s.Spec
	var errs field.ErrorList
	headless := len(spec.ClusterIPs) == 1 && spec.ClusterIPs[0] == corev1.ClusterIPNone
	switch external := spec.Type == corev1.ServiceTypeExternalName; {
	case external:
		errs = append(errs, validateExternalName(spec, at)...)
	case len(spec.Ports) == 0 && !headless:
		errs = append(errs, field.Required(at.Child("ports"), ""))
	case headless && hasNodePorts(spec):
		errs = append(errs, field.Invalid(at.Child("clusterIPs").Index(0), spec.ClusterIPs[0],
			"may not be set to 'None' for "+string(spec.Type)+" services"))
	}
	errs = append(errs, validateServicePorts(spec, at.Child("ports"))...)
	errs = append(errs, validateLabels(spec.Selector, at.Child("selector"))...)
	errs = append(errs, validateAffinity(spec, at)...)
	errs = append(errs, oneOf(at.Child("type"), spec.Type, corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort,
		corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeExternalName)...)
	was := &corev1.ServiceSpec{}
	if old != nil {
		was = &old.Spec
	}
	if spec.Type != corev1.ServiceTypeExternalName {
		errs = append(errs, validateAddresses(spec, was, at)...)
	}
	for i, ip := range spec.ExternalIPs {
		path := at.Child("externalIPs").Index(i)
		if wrong := validation.IsValidIPForLegacyField(path, ip, true, was.ExternalIPs); len(wrong) > 0 {
			errs = append(errs, wrong...)
		} else {
			errs = append(errs, validateEndpointIP(ip, path)...)
		}
	}
	errs = append(errs, validateLoadBalancer(s, old, at)...)
	errs = append(errs, validateTraffic(spec, was, at)...)
	hints, mode := s.Annotations[corev1.DeprecatedAnnotationTopologyAwareHints],
		s.Annotations[corev1.AnnotationTopologyMode]
	if hints != "" && mode != "" && hints != mode {
		errs = append(errs, field.Invalid(metadata.Child("annotations").Key(corev1.AnnotationTopologyMode), mode,
			"must match the annotation of topology-aware hints"))
	}
	return errs
}

// validateExternalName requires a name, and nothing of addresses.
func validateExternalName(spec *corev1.ServiceSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if name := strings.TrimSuffix(spec.ExternalName, "."); name == "" {
		errs = append(errs, field.Required(at.Child("externalName"), ""))
	} else {
		errs = append(errs, invalid(at.Child("externalName"), name, subdomainName(name, false))...)
	}
	for _, f := range []struct {
		name string
		is   bool
	}{
		{"clusterIPs", len(spec.ClusterIPs) > 0}, {"ipFamilies", len(spec.IPFamilies) > 0},
		{"ipFamilyPolicy", spec.IPFamilyPolicy != nil},
	} {
		if f.is {
			errs = append(errs, field.Forbidden(at.Child(f.name), "may not be set for ExternalName services"))
		}
	}
	return errs
}

func validateAffinity(spec *corev1.ServiceSpec, at *field.Path) field.ErrorList {
	errs := oneOf(at.Child("sessionAffinity"), spec.SessionAffinity, corev1.ServiceAffinityClientIP,
		corev1.ServiceAffinityNone)
	path, config := at.Child("sessionAffinityConfig"), spec.SessionAffinityConfig
	switch {
	case spec.SessionAffinity == corev1.ServiceAffinityNone && config != nil:
		errs = append(errs, field.Forbidden(path, "must not be set when session affinity is None"))
	case spec.SessionAffinity != corev1.ServiceAffinityClientIP:
	case config == nil || config.ClientIP == nil || config.ClientIP.TimeoutSeconds == nil:
		errs = append(errs, field.Required(path, "when session affinity type is ClientIP"))
	default:
		errs = append(errs,
			between(path.Child("clientIP", "timeoutSeconds"), config.ClientIP.TimeoutSeconds, 1, 86400)...)
	}
	return errs
}

// validateAddresses requires addresses and their families to agree. The first of them does not change.
func validateAddresses(spec, old *corev1.ServiceSpec, at *field.Path) field.ErrorList {
	path, ips := at.Child("clusterIPs"), spec.ClusterIPs
	var errs field.ErrorList
	if len(ips) > 0 && ips[0] != spec.ClusterIP || len(ips) == 0 && spec.ClusterIP != "" {
		errs = append(errs, field.Invalid(path, ips, "first value must match `clusterIP`"))
	}
	for i, family := range spec.IPFamilies {
		errs = append(errs,
			supported(at.Child("ipFamilies").Index(i), family, corev1.IPv4Protocol, corev1.IPv6Protocol)...)
		if slices.Contains(spec.IPFamilies[:i], family) {
			errs = append(errs, field.Duplicate(at.Child("ipFamilies").Index(i), family))
		}
	}
	if policy := spec.IPFamilyPolicy; policy != nil {
		errs = append(errs, supported(at.Child("ipFamilyPolicy"), *policy, corev1.IPFamilyPolicySingleStack,
			corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack)...)
	}
	headless := len(ips) > 0 && ips[0] == corev1.ClusterIPNone
	for i, ip := range ips {
		if i == 0 && headless {
			continue
		}
		errs = append(errs, validation.IsValidIPForLegacyField(path.Index(i), ip, true, old.ClusterIPs)...)
		if i < len(spec.IPFamilies) && !headless && (spec.IPFamilies[i] == corev1.IPv6Protocol) != strings.Contains(ip,
			":") {
			errs = append(errs, field.Invalid(path.Index(i), ip, "expected an address of the family in `ipFamilies`"))
		}
	}
	if len(ips) > 2 || len(ips) == 2 && (headless || strings.Contains(ips[0], ":") == strings.Contains(ips[1], ":")) {
		errs = append(errs, field.Invalid(path, ips, "may specify no more than one IP for each IP family"))
	}
	if old.Type == "" || old.Type == corev1.ServiceTypeExternalName ||
		headless && slices.Equal(old.ClusterIPs, []string{corev1.ClusterIPNone}) {
		return errs
	}
	errs = append(errs, validateKept(spec, ips, old.ClusterIPs, path, at)...)
	if headless != slices.Equal(old.ClusterIPs, []string{corev1.ClusterIPNone}) {
		return errs
	}
	return append(errs, validateKept(spec, spec.IPFamilies, old.IPFamilies, at.Child("ipFamilies"), at)...)
}

// validateKept requires that the first value stays, and all of them if there are as many. A second one goes if the
// policy says so.
func validateKept[T comparable](spec *corev1.ServiceSpec, values, old []T, path, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	same := min(len(values), len(old), 1)
	if len(values) == len(old) {
		same = len(old)
	}
	if len(values) == 0 && len(old) > 0 || !slices.Equal(values[:same], old[:same]) {
		errs = append(errs, field.Invalid(path.Index(0), values, "may not change once set"))
	}
	if policy := spec.IPFamilyPolicy; len(values) == 1 && len(old) > 1 &&
		(policy == nil || *policy != corev1.IPFamilyPolicySingleStack) {
		errs = append(errs, field.Invalid(at.Child("ipFamilyPolicy"), policy,
			"must be set to 'SingleStack' when releasing the secondary value"))
	}
	return errs
}

// validateLoadBalancer validates what only a load balancer has. Its class stays.
func validateLoadBalancer(s, old *corev1.Service, at *field.Path) field.ErrorList {
	spec, is := &s.Spec, s.Spec.Type == corev1.ServiceTypeLoadBalancer
	var errs field.ErrorList
	annotation, annotated := s.Annotations[corev1.AnnotationLoadBalancerSourceRangesKey]
	ranges, path := spec.LoadBalancerSourceRanges, at.Child("LoadBalancerSourceRanges")
	var before []string
	if old != nil {
		before = old.Spec.LoadBalancerSourceRanges
	}
	if len(ranges) == 0 && annotated {
		path = metadata.Child("annotations").Key(corev1.AnnotationLoadBalancerSourceRangesKey)
		if strings.TrimSpace(annotation) != "" &&
			(old == nil || old.Annotations[corev1.AnnotationLoadBalancerSourceRangesKey] != annotation) {
			ranges = strings.Split(annotation, ",")
		}
	}
	for i, cidr := range ranges {
		if !slices.Contains(before, cidr) {
			errs = append(errs,
				validation.IsValidCIDRForLegacyField(path.Index(i), strings.TrimSpace(cidr), true, nil)...)
		}
	}
	for _, f := range []struct {
		path *field.Path
		is   bool
	}{
		{path, len(ranges) > 0 || annotated},
		{at.Child("allocateLoadBalancerNodePorts"), spec.AllocateLoadBalancerNodePorts != nil},
		{at.Child("loadBalancerClass"), spec.LoadBalancerClass != nil},
	} {
		if f.is && !is {
			errs = append(errs, field.Forbidden(f.path, "may only be used when `type` is 'LoadBalancer'"))
		}
	}
	if class := spec.LoadBalancerClass; is && class != nil {
		errs = append(errs, invalid(at.Child("loadBalancerClass"), *class, validation.IsQualifiedName(*class))...)
	}
	if is && old != nil && old.Spec.Type == corev1.ServiceTypeLoadBalancer &&
		!ptr.Equal(spec.LoadBalancerClass, old.Spec.LoadBalancerClass) {
		errs = append(errs,
			field.Invalid(at.Child("loadBalancerClass"), spec.LoadBalancerClass, "may not change once set"))
	}
	return errs
}

func validateTraffic(spec, old *corev1.ServiceSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	external := at.Child("externalTrafficPolicy")
	switch policy := spec.ExternalTrafficPolicy; {
	case isExternal(spec):
		errs = append(errs, oneOf(external, policy, corev1.ServiceExternalTrafficPolicyCluster,
			corev1.ServiceExternalTrafficPolicyLocal)...)
	case policy != "":
		errs = append(errs, field.Invalid(external, policy, "may only be set for externally-accessible services"))
	}
	port := at.Child("healthCheckNodePort")
	switch {
	case needsHealthCheck(spec):
		errs = append(errs, validatePortNumber(port, spec.HealthCheckNodePort)...)
		if needsHealthCheck(old) && spec.HealthCheckNodePort != old.HealthCheckNodePort {
			errs = append(errs, field.Forbidden(port, "field is immutable"))
		}
	case spec.HealthCheckNodePort != 0:
		errs = append(errs, field.Invalid(port, spec.HealthCheckNodePort,
			"may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"))
	}
	if policy := spec.InternalTrafficPolicy; policy != nil {
		errs = append(errs, supported(at.Child("internalTrafficPolicy"), *policy,
			corev1.ServiceInternalTrafficPolicyCluster, corev1.ServiceInternalTrafficPolicyLocal)...)
	}
	if distribution := spec.TrafficDistribution; distribution != nil {
		errs = append(errs, supported(at.Child("trafficDistribution"), *distribution,
			corev1.ServiceTrafficDistributionPreferClose, corev1.ServiceTrafficDistributionPreferSameZone,
			corev1.ServiceTrafficDistributionPreferSameNode)...)
	}
	return errs
}

func validateServicePorts(spec *corev1.ServiceSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	names, ports, nodePorts := sets.New[string](), map[corev1.ServicePort]bool{}, map[corev1.ServicePort]bool{}
	for i := range spec.Ports {
		port, path := &spec.Ports[i], at.Index(i)
		if port.Name != "" || len(spec.Ports) > 1 {
			errs = append(errs, uniqueLabel(path.Child("name"), port.Name, names)...)
		}
		errs = append(errs, validatePortNumber(path.Child("port"), port.Port)...)
		errs = append(errs, validateProtocol(path.Child("protocol"), port.Protocol)...)
		errs = append(errs, validateTargetPort(path.Child("targetPort"), port.TargetPort)...)
		errs = append(errs, validateAppProtocol(port.AppProtocol, path)...)
		key := corev1.ServicePort{Protocol: port.Protocol, Port: port.Port}
		if ports[key] {
			errs = append(errs, field.Duplicate(path, key))
		}
		ports[key] = true
		if port.NodePort == 0 {
			continue
		}
		if spec.Type == corev1.ServiceTypeClusterIP {
			errs = append(errs, field.Forbidden(path.Child("nodePort"), "may not be used when `type` is 'ClusterIP'"))
		}
		key = corev1.ServicePort{Protocol: port.Protocol, NodePort: port.NodePort}
		if nodePorts[key] {
			errs = append(errs, field.Invalid(path.Child("nodePort"), port.NodePort,
				"provided port is already allocated"))
		}
		nodePorts[key] = true
	}
	return errs
}

func validateTargetPort(at *field.Path, port intstr.IntOrString) field.ErrorList {
	if port.Type == intstr.String {
		return invalid(at, port.StrVal, validation.IsValidPortName(port.StrVal))
	}
	return validatePortNumber(at, port.IntVal)
}
