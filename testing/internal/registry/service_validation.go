package registry

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateService requires what the Kubernetes API reference requires, ServiceSpec v1 core.
func validateService(s, old *corev1.Service) field.ErrorList {
	at, spec := field.NewPath("spec"), &s.Spec
	var errs field.ErrorList
	external := spec.Type == corev1.ServiceTypeExternalName
	if len(spec.Ports) == 0 && !external && spec.ClusterIP != corev1.ClusterIPNone {
		errs = append(errs, field.Required(at.Child("ports"), ""))
	}
	if external && spec.ExternalName == "" {
		errs = append(errs, field.Required(at.Child("externalName"), ""))
	}
	errs = append(errs, validateServicePorts(spec, at.Child("ports"))...)
	errs = append(errs, validateLabels(spec.Selector, at.Child("selector"))...)
	errs = append(errs, oneOf(at.Child("sessionAffinity"), spec.SessionAffinity, corev1.ServiceAffinityClientIP,
		corev1.ServiceAffinityNone)...)
	errs = append(errs, oneOf(at.Child("type"), spec.Type, corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort,
		corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeExternalName)...)
	for i, ip := range spec.ClusterIPs {
		if _, err := netip.ParseAddr(ip); err != nil && ip != corev1.ClusterIPNone {
			errs = append(errs, field.Invalid(at.Child("clusterIPs").Index(i), ip, "must be a valid IP address"))
		}
	}
	if old != nil && !external && old.Spec.Type != corev1.ServiceTypeExternalName &&
		!slices.Equal(spec.ClusterIPs, old.Spec.ClusterIPs) {
		errs = append(errs, field.Invalid(at.Child("clusterIPs").Index(0), spec.ClusterIPs, "may not change once set"))
	}
	return errs
}

// portKey is what must be unique among the ports of a service.
type portKey struct {
	protocol corev1.Protocol
	port     int32
}

func validateServicePorts(spec *corev1.ServiceSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	names, ports, nodePorts := sets.New[string](), sets.New[portKey](), sets.New[portKey]()
	for i := range spec.Ports {
		port, path := &spec.Ports[i], at.Index(i)
		if port.Name != "" || len(spec.Ports) > 1 {
			errs = append(errs, uniqueLabel(path.Child("name"), port.Name, names)...)
		}
		errs = append(errs, validatePortNumber(path.Child("port"), port.Port)...)
		errs = append(errs, validateProtocol(path.Child("protocol"), port.Protocol)...)
		errs = append(errs, validateTargetPort(path.Child("targetPort"), port.TargetPort)...)
		key := portKey{port.Protocol, port.Port}
		if ports.Has(key) {
			errs = append(errs, field.Duplicate(path, key))
		}
		ports.Insert(key)
		if port.NodePort == 0 {
			continue
		}
		if !hasNodePorts(spec) {
			errs = append(errs, field.Forbidden(path.Child("nodePort"),
				"may not be used when `type` is '"+string(spec.Type)+"'"))
			continue
		}
		key = portKey{port.Protocol, port.NodePort}
		if nodePorts.Has(key) {
			errs = append(errs, field.Invalid(path.Child("nodePort"), port.NodePort,
				"provided port is already allocated"))
		}
		nodePorts.Insert(key)
	}
	return errs
}

func validateTargetPort(at *field.Path, port intstr.IntOrString) field.ErrorList {
	if port.Type == intstr.String {
		return invalid(at, port.StrVal, validation.IsValidPortName(port.StrVal))
	}
	return validatePortNumber(at, port.IntVal)
}
