package registry

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// completeEndpoints sets the defaults of the Kubernetes API reference, EndpointPort v1 core.
//
//lint:ignore SA1019 API servers serve the kind
func completeEndpoints(e, _ *corev1.Endpoints) {
	for i := range e.Subsets {
		for j := range e.Subsets[i].Ports {
			setIfZero(&e.Subsets[i].Ports[j].Protocol, corev1.ProtocolTCP)
		}
	}
}

// completeEndpointSlice sets the defaults of the Kubernetes API reference, EndpointPort v1 discovery.k8s.io.
func completeEndpointSlice(e, _ *discoveryv1.EndpointSlice) {
	for i := range e.Ports {
		setDefault(&e.Ports[i].Name, "")
		setDefault(&e.Ports[i].Protocol, corev1.ProtocolTCP)
	}
}

// validateEndpointSlice requires what the Kubernetes API reference requires, EndpointSlice v1 discovery.k8s.io.
func validateEndpointSlice(e, old *discoveryv1.EndpointSlice) field.ErrorList {
	at := field.NewPath("addressType")
	errs := oneOf(at, e.AddressType, discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6,
		discoveryv1.AddressTypeFQDN)
	if old != nil && e.AddressType != old.AddressType {
		errs = append(errs, immutable(at, e.AddressType))
	}
	if len(errs) == 0 {
		errs = validateEndpoints(e, field.NewPath("endpoints"))
	}
	names := sets.New[string]()
	for i, port := range e.Ports {
		path := field.NewPath("ports").Index(i)
		if port.Name != nil {
			if *port.Name != "" {
				errs = append(errs, invalid(path.Child("name"), *port.Name, labelName(*port.Name, false))...)
			}
			if names.Has(*port.Name) {
				errs = append(errs, field.Duplicate(path.Child("name"), *port.Name))
			}
			names.Insert(*port.Name)
		}
		if port.Protocol != nil {
			errs = append(errs, validateProtocol(path.Child("protocol"), *port.Protocol)...)
		}
	}
	return errs
}

// validateEndpoints requires addresses of the type of the slice.
func validateEndpoints(e *discoveryv1.EndpointSlice, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range e.Endpoints {
		path := at.Index(i).Child("addresses")
		if len(e.Endpoints[i].Addresses) == 0 {
			errs = append(errs, field.Required(path, "must contain at least 1 address"))
		}
		for j, address := range e.Endpoints[i].Addresses {
			if e.AddressType == discoveryv1.AddressTypeFQDN {
				errs = append(errs, validation.IsFullyQualifiedDomainName(path.Index(j), address)...)
				continue
			}
			addr, err := netip.ParseAddr(address)
			if err != nil || addr.Is4() != (e.AddressType == discoveryv1.AddressTypeIPv4) {
				errs = append(errs, field.Invalid(path.Index(j), address, "must be of the type of the slice"))
			}
		}
	}
	return errs
}
