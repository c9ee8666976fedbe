package registry

import (
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"
)

// validateIngress requires what the Kubernetes API reference requires, IngressSpec v1 networking.k8s.io.
func validateIngress(ingress, old *networkingv1.Ingress) field.ErrorList {
	at, spec := field.NewPath("spec"), &ingress.Spec
	var errs field.ErrorList
	if len(spec.Rules) == 0 && spec.DefaultBackend == nil {
		errs = append(errs, field.Invalid(at, spec.Rules, "either `defaultBackend` or `rules` must be specified"))
	}
	if spec.DefaultBackend != nil {
		errs = append(errs, validateBackend(spec.DefaultBackend, at.Child("defaultBackend"))...)
	}
	class, annotated := ingress.Annotations["kubernetes.io/ingress.class"]
	if old == nil && annotated && spec.IngressClassName != nil && class != *spec.IngressClassName {
		errs = append(errs, field.Invalid(field.NewPath("annotations"), class,
			"must match `ingressClassName` when both are specified"))
	}
	for i := range spec.TLS {
		if name := spec.TLS[i].SecretName; name != "" {
			errs = append(errs,
				invalid(at.Child("tls").Index(i).Child("secretName"), name, subdomainName(name, false))...)
		}
		for j, host := range spec.TLS[i].Hosts {
			errs = append(errs, validateHost(host, at.Child("tls").Index(i).Child("hosts").Index(j))...)
		}
	}
	for i := range spec.Rules {
		errs = append(errs, validateIngressRule(&spec.Rules[i], at.Child("rules").Index(i))...)
	}
	if class := spec.IngressClassName; class != nil {
		errs = append(errs, invalid(at.Child("ingressClassName"), *class, subdomainName(*class, false))...)
	}
	return errs
}

func validateHost(host string, at *field.Path) field.ErrorList {
	if strings.Contains(host, "*") {
		return invalid(at, host, validation.IsWildcardDNS1123Subdomain(host))
	}
	return invalid(at, host, validation.IsDNS1123Subdomain(host))
}

func validateIngressRule(rule *networkingv1.IngressRule, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if rule.Host != "" {
		errs = validateHost(rule.Host, at.Child("host"))
		if netutils.ParseIPSloppy(rule.Host) != nil {
			errs = append(errs, field.Invalid(at.Child("host"), rule.Host, "must be a DNS name, not an IP address"))
		}
	}
	if rule.HTTP == nil {
		return errs
	}
	paths := at.Child("http", "paths")
	if len(rule.HTTP.Paths) == 0 {
		errs = append(errs, field.Required(paths, ""))
	}
	for i := range rule.HTTP.Paths {
		path := &rule.HTTP.Paths[i]
		errs = append(errs, validateIngressPath(path, paths.Index(i))...)
		errs = append(errs, validateBackend(&path.Backend, paths.Index(i).Child("backend"))...)
	}
	return errs
}

func validateIngressPath(path *networkingv1.HTTPIngressPath, at *field.Path) field.ErrorList {
	if path.PathType == nil {
		return field.ErrorList{field.Required(at.Child("pathType"), "pathType must be specified")}
	}
	switch *path.PathType {
	case networkingv1.PathTypeExact, networkingv1.PathTypePrefix:
		if !strings.HasPrefix(path.Path, "/") {
			return field.ErrorList{field.Invalid(at.Child("path"), path.Path, "must be an absolute path")}
		}
		for _, part := range []string{"//", "/./", "/../", "%2f", "%2F"} {
			if strings.Contains(path.Path, part) {
				return field.ErrorList{field.Invalid(at.Child("path"), path.Path, "must not contain '"+part+"'")}
			}
		}
		if strings.HasSuffix(path.Path, "/..") || strings.HasSuffix(path.Path, "/.") {
			return field.ErrorList{field.Invalid(at.Child("path"), path.Path, "cannot end with a dot segment")}
		}
		return nil
	case networkingv1.PathTypeImplementationSpecific:
		if path.Path != "" && !strings.HasPrefix(path.Path, "/") {
			return field.ErrorList{field.Invalid(at.Child("path"), path.Path, "must be an absolute path")}
		}
		return nil
	default:
		return oneOf(at.Child("pathType"), *path.PathType, networkingv1.PathTypeExact, networkingv1.PathTypePrefix,
			networkingv1.PathTypeImplementationSpecific)
	}
}

func validateBackend(backend *networkingv1.IngressBackend, at *field.Path) field.ErrorList {
	switch {
	case backend.Service != nil && backend.Resource != nil:
		return field.ErrorList{field.Invalid(at, "", "cannot set both resource and service backends")}
	case backend.Resource != nil:
		return validateReferenceTo(backend.Resource.APIGroup, backend.Resource.Kind, backend.Resource.Name,
			at.Child("resource"))
	case backend.Service == nil:
		return field.ErrorList{field.Invalid(at, "", "must have a service or a resource")}
	}
	service, path := backend.Service, at.Child("service")
	var errs field.ErrorList
	if service.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), ""))
	} else {
		errs = append(errs, invalid(path.Child("name"), service.Name, labelName(service.Name, false))...)
	}
	port := service.Port
	switch {
	case port.Name != "" && port.Number != 0:
		errs = append(errs, field.Invalid(at, "", "cannot set both port name & port number"))
	case port.Name != "":
		errs = append(errs, invalid(path.Child("port", "name"), port.Name, validation.IsValidPortName(port.Name))...)
	case port.Number != 0:
		errs = append(errs, validatePortNumber(path.Child("port", "number"), port.Number)...)
	default:
		errs = append(errs, field.Required(at, "port name or number is required"))
	}
	return errs
}

// validateReferenceTo requires a kind and a name.
func validateReferenceTo(group *string, kind, name string, at *field.Path) field.ErrorList {
	errs := append(pathSegment(at.Child("kind"), kind), pathSegment(at.Child("name"), name)...)
	if group != nil {
		errs = append(errs, invalid(at.Child("apiGroup"), *group, subdomainName(*group, false))...)
	}
	return errs
}
