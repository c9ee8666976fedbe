package edit

import (
	"cmp"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// EnsureServicePort makes a Service have a port, which takes the place of the one of the same name or, if there is
// none, of the one with the same number and protocol. A port without protocol is one of TCP.
func EnsureServicePort(service *corev1.Service, port corev1.ServicePort) error {
	switch {
	case service == nil:
		return missing("Service")
	case port.Port == 0:
		return errors.New("the port of the Service has no number")
	}
	sameName := func(p corev1.ServicePort) bool { return p.Name == port.Name && port.Name != "" }
	sameNumber := func(p corev1.ServicePort) bool {
		return p.Port == port.Port && protocolOf(p) == protocolOf(port)
	}
	at := slices.IndexFunc(service.Spec.Ports, sameName)
	if at < 0 {
		at = slices.IndexFunc(service.Spec.Ports, sameNumber)
	}
	same := func(p corev1.ServicePort) bool { return sameName(p) || sameNumber(p) }
	service.Spec.Ports = ensureAt(service.Spec.Ports, at, *port.DeepCopy(), same)
	return nil
}

// RemoveServicePort makes a Service have no port of a name.
func RemoveServicePort(service *corev1.Service, name string) error {
	if service == nil {
		return missing("Service")
	}
	service.Spec.Ports = remove(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == name })
	return nil
}

func protocolOf(port corev1.ServicePort) corev1.Protocol {
	return cmp.Or(port.Protocol, corev1.ProtocolTCP)
}
