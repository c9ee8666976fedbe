package registry

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// completeNetworkPolicy sets the defaults of the Kubernetes API reference, NetworkPolicySpec v1 networking.k8s.io.
func completeNetworkPolicy(p, _ *networkingv1.NetworkPolicy) {
	for i := range p.Spec.Ingress {
		completePolicyPorts(p.Spec.Ingress[i].Ports)
	}
	for i := range p.Spec.Egress {
		completePolicyPorts(p.Spec.Egress[i].Ports)
	}
	if len(p.Spec.PolicyTypes) > 0 {
		return
	}
	p.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
	if len(p.Spec.Egress) > 0 {
		p.Spec.PolicyTypes = append(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress)
	}
}

func completePolicyPorts(ports []networkingv1.NetworkPolicyPort) {
	for i := range ports {
		setDefault(&ports[i].Protocol, corev1.ProtocolTCP)
	}
}

// validateNetworkPolicy requires what the Kubernetes API reference requires, NetworkPolicySpec v1 networking.k8s.io.
func validateNetworkPolicy(p, _ *networkingv1.NetworkPolicy) field.ErrorList {
	at, spec := field.NewPath("spec"), &p.Spec
	errs := validateSelector(&spec.PodSelector, at.Child("podSelector"))
	for i, rule := range spec.Ingress {
		path := at.Child("ingress").Index(i)
		errs = append(errs, validatePolicyPorts(rule.Ports, path.Child("ports"))...)
		errs = append(errs, validatePeers(rule.From, path.Child("from"))...)
	}
	for i, rule := range spec.Egress {
		path := at.Child("egress").Index(i)
		errs = append(errs, validatePolicyPorts(rule.Ports, path.Child("ports"))...)
		errs = append(errs, validatePeers(rule.To, path.Child("to"))...)
	}
	if len(spec.PolicyTypes) > 2 {
		errs = append(errs, field.Invalid(at.Child("policyTypes"), spec.PolicyTypes,
			"may not specify more than two policyTypes"))
	}
	for i, policyType := range spec.PolicyTypes {
		errs = append(errs, supported(at.Child("policyTypes").Index(i), policyType, networkingv1.PolicyTypeIngress,
			networkingv1.PolicyTypeEgress)...)
	}
	return errs
}

func validatePolicyPorts(ports []networkingv1.NetworkPolicyPort, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range ports {
		port, path := &ports[i], at.Index(i)
		if port.Protocol != nil {
			errs = append(errs, validateProtocol(path.Child("protocol"), *port.Protocol)...)
		}
		if port.Port != nil {
			errs = append(errs, validateTargetPort(path.Child("port"), *port.Port)...)
		}
		if port.EndPort == nil {
			continue
		}
		errs = append(errs, validatePortNumber(path.Child("endPort"), *port.EndPort)...)
		if port.Port == nil || port.Port.Type == intstr.String || port.Port.IntVal > *port.EndPort {
			errs = append(errs, field.Invalid(path.Child("endPort"), *port.EndPort,
				"must be greater than or equal to `port`, which must be a number"))
		}
	}
	return errs
}

func validatePeers(peers []networkingv1.NetworkPolicyPeer, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range peers {
		peer, path := &peers[i], at.Index(i)
		selected := peer.PodSelector != nil || peer.NamespaceSelector != nil
		switch {
		case !selected && peer.IPBlock == nil:
			errs = append(errs, field.Required(path, "must specify a peer"))
		case selected && peer.IPBlock != nil:
			errs = append(errs, field.Forbidden(path, "may not specify both ipBlock and another peer"))
		}
		errs = append(errs, validateSelector(peer.PodSelector, path.Child("podSelector"))...)
		errs = append(errs, validateSelector(peer.NamespaceSelector, path.Child("namespaceSelector"))...)
		if peer.IPBlock != nil {
			errs = append(errs, validateBlock(peer.IPBlock, path.Child("ipBlock"))...)
		}
	}
	return errs
}

// validateBlock requires exceptions within the block.
func validateBlock(block *networkingv1.IPBlock, at *field.Path) field.ErrorList {
	errs := validation.IsValidCIDRForLegacyField(at.Child("cidr"), block.CIDR, true, nil)
	if len(errs) > 0 {
		return errs
	}
	whole := netip.MustParsePrefix(block.CIDR)
	for i, except := range block.Except {
		path := at.Child("except").Index(i)
		errs = append(errs, validation.IsValidCIDRForLegacyField(path, except, true, nil)...)
		if part, err := netip.ParsePrefix(except); err == nil &&
			(part.Bits() <= whole.Bits() || !whole.Contains(part.Addr())) {
			errs = append(errs, field.Invalid(path, except, "must be a strict subset of `cidr`"))
		}
	}
	return errs
}
