package registry

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// validateContainers validates all lists of containers.
func (p podRules) validateContainers(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(p.spec.Containers) == 0 {
		errs = append(errs, field.Required(at.Child("containers"), ""))
	}
	names := sets.New[string]()
	for i := range p.spec.Containers {
		c, path := &p.spec.Containers[i], at.Child("containers").Index(i)
		errs = append(errs, uniqueLabel(path.Child("name"), c.Name, names)...)
		errs = append(errs, p.validateContainer(c, path)...)
		errs = append(errs, p.validateProbes(c, path)...)
		errs = append(errs, validateRestarts(c, path)...)
	}
	for i := range p.spec.InitContainers {
		c, path := &p.spec.InitContainers[i], at.Child("initContainers").Index(i)
		errs = append(errs, uniqueLabel(path.Child("name"), c.Name, names)...)
		errs = append(errs, p.validateContainer(c, path)...)
		errs = append(errs, validateRestarts(c, path)...)
		errs = append(errs, validateHostPorts(p.spec.InitContainers[i:i+1], at.Child("initContainers"))...)
		if ptr.Deref(c.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways {
			errs = append(errs, p.validateProbes(c, path)...)
			continue
		}
		if c.Lifecycle != nil || c.LivenessProbe != nil || c.ReadinessProbe != nil || c.StartupProbe != nil {
			errs = append(errs, field.Forbidden(path, "lifecycle and probes may not be set for init containers "+
				"without restartPolicy=Always"))
		}
		for _, policy := range c.ResizePolicy {
			if policy.RestartPolicy == corev1.RestartContainer {
				errs = append(errs, field.Invalid(path.Child("resizePolicy"), policy.RestartPolicy,
					"must not be set to 'RestartContainer' for non-sidecar initContainers"))
			}
		}
	}
	errs = append(errs, p.validateEphemeral(names, at.Child("ephemeralContainers"))...)
	return append(errs, validateHostPorts(p.spec.Containers, at.Child("containers"))...)
}

// validateEphemeral requires containers with less than others have.
func (p podRules) validateEphemeral(names sets.Set[string], at *field.Path) field.ErrorList {
	var errs field.ErrorList
	others := names.Clone()
	for i := range p.spec.EphemeralContainers {
		e, path := &p.spec.EphemeralContainers[i], at.Index(i)
		c := corev1.Container(e.EphemeralContainerCommon)
		errs = append(errs, uniqueLabel(path.Child("name"), c.Name, names)...)
		errs = append(errs, p.validateContainer(&c, path)...)
		errs = append(errs, validateImages([]corev1.Container{c}, at)...)
		if target := e.TargetContainerName; target != "" && !others.Has(target) {
			errs = append(errs, field.NotFound(path.Child("targetContainerName"), target))
		}
		c.Resources.Claims = slices.Clone(c.Resources.Claims)
		if len(c.Ports) > 0 || c.Lifecycle != nil || c.LivenessProbe != nil || c.ReadinessProbe != nil ||
			c.StartupProbe != nil || c.RestartPolicy != nil || len(c.RestartPolicyRules) > 0 || c.ResizePolicy != nil ||
			!isSame(c.Resources, corev1.ResourceRequirements{}) ||
			slices.ContainsFunc(c.VolumeMounts,
				func(m corev1.VolumeMount) bool { return m.SubPath+m.SubPathExpr != "" }) {
			errs = append(errs, field.Forbidden(path, "has what cannot be set for an Ephemeral Container"))
		}
	}
	return errs
}

func validateHostPorts(containers []corev1.Container, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	ports := map[corev1.ContainerPort]bool{}
	for i := range containers {
		for j := range containers[i].Ports {
			port, path := &containers[i].Ports[j], at.Index(i).Child("ports").Index(j)
			if port.HostPort == 0 {
				continue
			}
			key := corev1.ContainerPort{Protocol: port.Protocol, HostIP: port.HostIP, HostPort: port.HostPort}
			if ports[key] {
				errs = append(errs, field.Duplicate(path.Child("hostPort"), port.HostPort))
			}
			ports[key] = true
		}
	}
	return errs
}

// uniqueLabel requires a name that is a DNS label and not among those that are used, and uses it.
func uniqueLabel(at *field.Path, name string, used sets.Set[string]) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	if used.Has(name) {
		return field.ErrorList{field.Duplicate(at, name)}
	}
	used.Insert(name)
	return invalid(at, name, labelName(name, false))
}

// validateClaims requires claims, or templates of them, each under a name of its own.
func (p podRules) validateClaims(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i := range p.spec.ResourceClaims {
		claim, path := &p.spec.ResourceClaims[i], at.Index(i)
		errs = append(errs, uniqueLabel(path.Child("name"), claim.Name, names)...)
		if (claim.ResourceClaimName == nil) == (claim.ResourceClaimTemplateName == nil) {
			errs = append(errs, field.Invalid(path, claim,
				"must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"))
		}
		for name, value := range ordered(map[string]*string{
			"resourceClaimName": claim.ResourceClaimName, "resourceClaimTemplateName": claim.ResourceClaimTemplateName,
		}) {
			if value != nil {
				errs = append(errs, invalid(path.Child(name), *value, subdomainName(*value, false))...)
			}
		}
	}
	return errs
}

// validatePodResources requires resources of the whole pod that are enough for its containers.
func (p podRules) validatePodResources(at *field.Path) field.ErrorList {
	r := p.spec.Resources
	if r == nil {
		return nil
	}
	if p.spec.OS != nil && p.spec.OS.Name == corev1.Windows {
		return field.ErrorList{field.Forbidden(at, "may not be set for a windows pod")}
	}
	var errs field.ErrorList
	if r.Claims != nil {
		errs = append(errs, field.Forbidden(at.Child("claims"), "claims may not be set for Resources at pod-level"))
	}
	errs = append(errs, validateResources(r, nil, validatePodResource, at)...)
	requests := totalRequests(p.spec)
	for _, name := range slices.Sorted(maps.Keys(r.Requests)) {
		request := r.Requests[name]
		if total, ok := requests[name]; ok && total.Cmp(request) > 0 {
			errs = append(errs, field.Invalid(at.Child("requests").Key(string(name)), request.String(),
				"must be greater than or equal to aggregate container requests of "+total.String()))
		}
	}
	for _, c := range p.spec.Containers {
		for name, limit := range ordered(c.Resources.Limits) {
			if whole, ok := r.Limits[name]; ok && limit.Cmp(whole) > 0 {
				errs = append(errs, field.Invalid(at.Child("limits").Key(string(name)), limit.String(),
					"must be less than or equal to pod limits of "+whole.String()))
			}
		}
	}
	return errs
}

func validatePodResource(name corev1.ResourceName, at *field.Path) field.ErrorList {
	if name == corev1.ResourceCPU || name == corev1.ResourceMemory || isHugePages(name) {
		return validateContainerResource(name, at)
	}
	return field.ErrorList{field.NotSupported(at, name,
		[]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory})}
}

// totalRequests is what all containers request at once, without what containers request one after the other.
func totalRequests(spec *corev1.PodSpec) corev1.ResourceList {
	total, most := corev1.ResourceList{}, corev1.ResourceList{}
	add := func(list corev1.ResourceList) {
		for name, amount := range list {
			sum := total[name]
			sum.Add(amount)
			total[name] = sum
		}
	}
	for _, c := range spec.InitContainers {
		if ptr.Deref(c.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways {
			add(c.Resources.Requests)
			raise(most, total)
			continue
		}
		now := total.DeepCopy()
		for name, amount := range c.Resources.Requests {
			sum := now[name]
			sum.Add(amount)
			now[name] = sum
		}
		raise(most, now)
	}
	for _, c := range spec.Containers {
		add(c.Resources.Requests)
	}
	raise(total, most)
	return total
}

func raise(list, by corev1.ResourceList) {
	for name, amount := range by {
		if now, ok := list[name]; !ok || now.Cmp(amount) < 0 {
			list[name] = amount
		}
	}
}

// validateHost validates what a pod shares with its host, and what its host can be.
func (p podRules) validateHost(at *field.Path) field.ErrorList {
	spec := p.spec
	var errs field.ErrorList
	for _, name := range []struct{ field, value string }{{"hostname", spec.Hostname}, {"subdomain", spec.Subdomain}} {
		if name.value != "" {
			errs = append(errs, invalid(at.Child(name.field), name.value, labelName(name.value, false))...)
		}
	}
	if host := spec.HostnameOverride; host != nil {
		path := at.Child("hostnameOverride")
		errs = append(errs, invalid(path, *host, subdomainName(*host, false))...)
		if len(*host) > 64 || spec.HostNetwork || isTrue(spec.SetHostnameAsFQDN) {
			errs = append(errs, field.Forbidden(path, "must be short, and of a pod that has no other name"))
		}
	}
	if isTrue(spec.ShareProcessNamespace) && spec.HostPID {
		errs = append(errs, field.Invalid(at.Child("shareProcessNamespace"), true,
			"ShareProcessNamespace and HostPID cannot both be enabled"))
	}
	if !ptr.Deref(spec.HostUsers, true) && (spec.HostNetwork || spec.HostPID || spec.HostIPC ||
		p.any(func(c *corev1.Container) bool { return len(c.VolumeDevices) > 0 })) {
		errs = append(errs, field.Forbidden(at.Child("hostUsers"), "shares nothing else with the host"))
	}
	for i := range spec.Containers {
		for j, port := range spec.Containers[i].Ports {
			if spec.HostNetwork && port.HostPort != 0 && port.HostPort != port.ContainerPort {
				errs = append(errs,
					field.Invalid(at.Child("containers").Index(i).Child("ports").Index(j).Child("hostPort"),
						port.HostPort, "must match `containerPort` when `hostNetwork` is true"))
			}
		}
	}
	for i := range spec.HostAliases {
		alias, path := &spec.HostAliases[i], at.Child("hostAliases").Index(i)
		errs = append(errs, validation.IsValidIPForLegacyField(path.Child("ip"), alias.IP, true, nil)...)
		for _, name := range alias.Hostnames {
			errs = append(errs, invalid(path.Child("hostnames"), name, subdomainName(name, false))...)
		}
	}
	return append(errs, p.validateOS(at)...)
}

// any reports whether a container is so.
func (p podRules) any(is func(c *corev1.Container) bool) bool {
	for i := range p.spec.EphemeralContainers {
		if c := corev1.Container(p.spec.EphemeralContainers[i].EphemeralContainerCommon); is(&c) {
			return true
		}
	}
	for _, c := range slices.Concat(p.spec.InitContainers, p.spec.Containers) {
		if is(&c) {
			return true
		}
	}
	return false
}

// validateOS forbids what the operating system does not have.
func (p podRules) validateOS(at *field.Path) field.ErrorList {
	spec := p.spec
	errs := p.validateHostProcess(at)
	if spec.OS == nil {
		return errs
	}
	errs = append(errs, oneOf(at.Child("os", "name"), spec.OS.Name, corev1.Linux, corev1.Windows)...)
	pod := ptr.Deref(spec.SecurityContext, corev1.PodSecurityContext{})
	switch spec.OS.Name {
	case corev1.Linux:
		if pod.WindowsOptions != nil || p.any(func(c *corev1.Container) bool {
			return c.SecurityContext != nil && c.SecurityContext.WindowsOptions != nil
		}) {
			errs = append(errs, field.Forbidden(at, "windows options cannot be set for a linux pod"))
		}
	case corev1.Windows:
		empty := corev1.PodSecurityContext{WindowsOptions: pod.WindowsOptions, RunAsNonRoot: pod.RunAsNonRoot}
		if len(pod.Sysctls) == 0 {
			pod.Sysctls = nil
		}
		if pod.SupplementalGroups != nil || !isSame(pod, empty) || spec.HostUsers != nil || spec.HostPID ||
			spec.HostIPC ||
			spec.ShareProcessNamespace != nil || p.any(func(c *corev1.Container) bool {
			s := ptr.Deref(c.SecurityContext, corev1.SecurityContext{})
			return s != corev1.SecurityContext{WindowsOptions: s.WindowsOptions, RunAsNonRoot: s.RunAsNonRoot}
		}) {
			errs = append(errs, field.Forbidden(at, "has what cannot be set for a windows pod"))
		}
	}
	return errs
}

// validateHostProcess requires that all containers are processes of a Windows host, or none.
func (p podRules) validateHostProcess(at *field.Path) field.ErrorList {
	option := func(o *corev1.WindowsSecurityContextOptions) *bool {
		if o == nil {
			return nil
		}
		return o.HostProcess
	}
	var whole *bool
	if p.spec.SecurityContext != nil {
		whole = option(p.spec.SecurityContext.WindowsOptions)
	}
	all, some, differs := true, false, false
	p.any(func(c *corev1.Container) bool {
		own := whole
		if c.SecurityContext != nil && option(c.SecurityContext.WindowsOptions) != nil {
			own = option(c.SecurityContext.WindowsOptions)
			differs = differs || whole != nil && *whole != *own
		}
		all, some = all && isTrue(own), some || isTrue(own)
		return false
	})
	if differs || some && (!all || !p.spec.HostNetwork) {
		return field.ErrorList{field.Invalid(at.Child("hostNetwork"), p.spec.HostNetwork,
			"if pod contains any hostProcess containers then all must be so, in the network of the host")}
	}
	return nil
}

// Limits of PodDNSConfig v1 core.
const (
	maxNameservers   = 3
	maxSearches      = 32
	maxSearchLetters = 2048
)

func validateDNS(spec *corev1.PodSpec, at *field.Path) field.ErrorList {
	errs := oneOf(at.Child("dnsPolicy"), spec.DNSPolicy, corev1.DNSClusterFirstWithHostNet, corev1.DNSClusterFirst,
		corev1.DNSDefault, corev1.DNSNone)
	at = at.Child("dnsConfig")
	c := ptr.Deref(spec.DNSConfig, corev1.PodDNSConfig{})
	if spec.DNSPolicy == corev1.DNSNone && len(c.Nameservers) == 0 {
		return append(errs, field.Required(at, "must provide at least one DNS nameserver when `dnsPolicy` is None"))
	}
	if len(c.Nameservers) > maxNameservers {
		errs = append(errs, field.TooMany(at.Child("nameservers"), len(c.Nameservers), maxNameservers))
	}
	for i, ip := range c.Nameservers {
		errs = append(errs, validation.IsValidIPForLegacyField(at.Child("nameservers").Index(i), ip, true, nil)...)
	}
	if len(c.Searches) > maxSearches || len(strings.Join(c.Searches, " ")) > maxSearchLetters {
		errs = append(errs, field.TooMany(at.Child("searches"), len(c.Searches), maxSearches))
	}
	for i, search := range c.Searches {
		if search != "." {
			errs = append(errs, invalid(at.Child("searches").Index(i), search,
				validation.IsDNS1123SubdomainWithUnderscore(strings.TrimSuffix(search, ".")))...)
		}
	}
	for i, option := range c.Options {
		errs = append(errs, required(at.Child("options").Index(i), option.Name)...)
	}
	return errs
}
