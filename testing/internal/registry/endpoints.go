package registry

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"
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
// The old topology is dropped, unless the endpoints stay as they were.
func completeEndpointSlice(e, old *discoveryv1.EndpointSlice) {
	if old == nil || !equality.Semantic.DeepEqual(e.Endpoints, old.Endpoints) {
		for i := range e.Endpoints {
			e.Endpoints[i].DeprecatedTopology = nil
		}
	}
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
		errs = validateSliceEndpoints(e, field.NewPath("endpoints"))
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
		errs = append(errs, validateAppProtocol(port.AppProtocol, path)...)
	}
	return errs
}

// validateEndpoints requires what the Kubernetes API reference requires, Endpoints v1 core.
//
//lint:ignore SA1019 API servers serve the kind
func validateEndpoints(e, _ *corev1.Endpoints) field.ErrorList {
	var errs field.ErrorList
	for i := range e.Subsets {
		subset, at := &e.Subsets[i], field.NewPath("subsets").Index(i)
		if len(subset.Addresses)+len(subset.NotReadyAddresses) == 0 {
			errs = append(errs, field.Required(at, "must specify `addresses` or `notReadyAddresses`"))
		}
		for _, address := range slices.Concat(subset.Addresses, subset.NotReadyAddresses) {
			path := at.Child("addresses")
			errs = append(errs, validation.IsValidIPForLegacyField(path.Child("ip"), address.IP, true, nil)...)
			errs = append(errs, validateEndpointIP(address.IP, path.Child("ip"))...)
			errs = append(errs, validateEndpointNames(optional(address.Hostname), address.NodeName, path)...)
		}
		for j, port := range subset.Ports {
			path := at.Child("ports").Index(j)
			if port.Name != "" || len(subset.Ports) > 1 {
				errs = append(errs, requiredLabel(path.Child("name"), port.Name)...)
			}
			errs = append(errs, validatePortNumber(path.Child("port"), port.Port)...)
			errs = append(errs, validateProtocol(path.Child("protocol"), port.Protocol)...)
			errs = append(errs, validateAppProtocol(port.AppProtocol, path)...)
		}
	}
	return errs
}

// optional returns nil for a text that is not there.
func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func validateEndpointNames(host, node *string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if host != nil {
		errs = append(errs, invalid(at.Child("hostname"), *host, labelName(*host, false))...)
	}
	if node != nil {
		errs = append(errs, invalid(at.Child("nodeName"), *node, subdomainName(*node, false))...)
	}
	return errs
}

func validateAppProtocol(protocol *string, at *field.Path) field.ErrorList {
	if protocol == nil {
		return nil
	}
	return invalid(at.Child("appProtocol"), *protocol, validation.IsQualifiedName(*protocol))
}

// validateEndpointIP requires an address that can be reached from elsewhere.
func validateEndpointIP(ip string, at *field.Path) field.ErrorList {
	addr := netutils.ParseIPSloppy(ip)
	if addr == nil || addr.IsUnspecified() || addr.IsLoopback() || addr.IsLinkLocalUnicast() ||
		addr.IsLinkLocalMulticast() {
		return field.ErrorList{field.Invalid(at, ip, "may not be an unspecified, loopback or link-local address")}
	}
	return nil
}

// Limits of the Kubernetes API reference, EndpointSlice v1 discovery.k8s.io.
const (
	maxEndpoints = 1000
	maxAddresses = 100
	maxHints     = 8
)

// validateSliceEndpoints requires addresses of the type of the slice.
func validateSliceEndpoints(e *discoveryv1.EndpointSlice, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(e.Endpoints) > maxEndpoints {
		return field.ErrorList{field.TooMany(at, len(e.Endpoints), maxEndpoints)}
	}
	for i := range e.Endpoints {
		endpoint, path := &e.Endpoints[i], at.Index(i).Child("addresses")
		switch {
		case len(endpoint.Addresses) == 0:
			errs = append(errs, field.Required(path, "must contain at least 1 address"))
		case len(endpoint.Addresses) > maxAddresses:
			errs = append(errs, field.TooMany(path, len(endpoint.Addresses), maxAddresses))
		}
		for j, address := range endpoint.Addresses {
			if e.AddressType == discoveryv1.AddressTypeFQDN {
				errs = append(errs, validation.IsFullyQualifiedDomainName(path.Index(j), address)...)
				continue
			}
			wrong := validation.IsValidIPForLegacyField(path.Index(j), address, true, nil)
			if strings.Contains(address, ":") != (e.AddressType == discoveryv1.AddressTypeIPv6) {
				wrong = append(wrong, field.Invalid(path.Index(j), address, "must be of the type of the slice"))
			}
			errs = append(append(errs, wrong...), validateEndpointIP(address, path.Index(j))...)
		}
		errs = append(errs, validateEndpointNames(endpoint.Hostname, endpoint.NodeName, at.Index(i))...)
		if endpoint.Hints != nil {
			errs = append(errs, validateHints(endpoint.Hints, at.Index(i).Child("hints"))...)
		}
	}
	return errs
}

// validateHints requires zones and nodes, each once.
func validateHints(hints *discoveryv1.EndpointHints, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	zones, nodes := sets.New[string](), sets.New[string]()
	for _, zone := range hints.ForZones {
		errs = append(errs, invalid(at.Child("forZones"), zone.Name, validation.IsValidLabelValue(zone.Name))...)
		zones.Insert(zone.Name)
	}
	for _, node := range hints.ForNodes {
		errs = append(errs, invalid(at.Child("forNodes"), node.Name, subdomainName(node.Name, false))...)
		nodes.Insert(node.Name)
	}
	if len(hints.ForZones) > maxHints || len(hints.ForNodes) > maxHints {
		errs = append(errs, field.TooMany(at, max(len(hints.ForZones), len(hints.ForNodes)), maxHints))
	}
	if len(zones) < len(hints.ForZones) || len(nodes) < len(hints.ForNodes) {
		errs = append(errs, field.Duplicate(at, ""))
	}
	return errs
}
