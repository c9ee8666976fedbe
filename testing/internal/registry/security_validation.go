package registry

import (
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// validateSecurity requires what the Kubernetes API reference requires, SecurityContext v1 core.
func (p podRules) validateSecurity(c *corev1.SecurityContext, at *field.Path) field.ErrorList {
	if c == nil {
		return nil
	}
	errs := validateUsers(c.RunAsUser, c.RunAsGroup, at)
	if mount := c.ProcMount; mount != nil {
		errs = append(errs,
			supported(at.Child("procMount"), *mount, corev1.DefaultProcMount, corev1.UnmaskedProcMount)...)
		if *mount == corev1.UnmaskedProcMount && ptr.Deref(p.spec.HostUsers, true) {
			errs = append(errs,
				field.Invalid(at.Child("procMount"), *mount, "`hostUsers` must be false to use `Unmasked`"))
		}
	}
	if !ptr.Deref(c.AllowPrivilegeEscalation, true) && isTrue(c.Privileged) {
		errs = append(errs,
			field.Invalid(at, "", "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"))
	}
	errs = append(errs, validateSeccomp(c.SeccompProfile, at.Child("seccompProfile"))...)
	errs = append(errs, validateAppArmor(c.AppArmorProfile, at.Child("appArmorProfile"))...)
	return append(errs, validateWindowsOptions(c.WindowsOptions, at.Child("windowsOptions"))...)
}

func validateUsers(user, group *int64, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if user != nil {
		errs = append(errs, invalid(at.Child("runAsUser"), *user, validation.IsValidUserID(*user))...)
	}
	if group != nil {
		errs = append(errs, invalid(at.Child("runAsGroup"), *group, validation.IsValidGroupID(*group))...)
	}
	return errs
}

// validatePodSecurity requires what the Kubernetes API reference requires, PodSecurityContext v1 core.
func validatePodSecurity(spec *corev1.PodSpec, at *field.Path) field.ErrorList {
	c := spec.SecurityContext
	if c == nil {
		return nil
	}
	errs := validateUsers(c.RunAsUser, c.RunAsGroup, at)
	groups := c.SupplementalGroups
	if c.FSGroup != nil {
		groups = append(groups[:len(groups):len(groups)], *c.FSGroup)
	}
	for _, group := range groups {
		errs = append(errs, invalid(at.Child("supplementalGroups"), group, validation.IsValidGroupID(group))...)
	}
	if policy := c.FSGroupChangePolicy; policy != nil {
		errs = append(errs, supported(at.Child("fsGroupChangePolicy"), *policy, corev1.FSGroupChangeOnRootMismatch,
			corev1.FSGroupChangeAlways)...)
	}
	if policy := c.SupplementalGroupsPolicy; policy != nil {
		errs = append(errs, supported(at.Child("supplementalGroupsPolicy"), *policy,
			corev1.SupplementalGroupsPolicyMerge, corev1.SupplementalGroupsPolicyStrict)...)
	}
	if policy := c.SELinuxChangePolicy; policy != nil {
		errs = append(errs, supported(at.Child("seLinuxChangePolicy"), *policy, corev1.SELinuxChangePolicyRecursive,
			corev1.SELinuxChangePolicyMountOption)...)
	}
	errs = append(errs, validateSysctls(spec, at.Child("sysctls"))...)
	errs = append(errs, validateSeccomp(c.SeccompProfile, at.Child("seccompProfile"))...)
	errs = append(errs, validateAppArmor(c.AppArmorProfile, at.Child("appArmorProfile"))...)
	return append(errs, validateWindowsOptions(c.WindowsOptions, at.Child("windowsOptions"))...)
}

var sysctlName = regexp.MustCompile(`^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$`)

// validateSysctls requires parameters of the kernel, each once, and none of a namespace that is the host's.
func validateSysctls(spec *corev1.PodSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, s := range spec.SecurityContext.Sysctls {
		path, dotted := at.Index(i).Child("name"), strings.ReplaceAll(s.Name, "/", ".")
		switch {
		case s.Name == "":
			errs = append(errs, field.Required(path, ""))
		case len(s.Name) > validation.DNS1123SubdomainMaxLength || !sysctlName.MatchString(s.Name):
			errs = append(errs, field.Invalid(path, s.Name, "must be a name of a sysctl"))
		case seen.Has(s.Name):
			errs = append(errs, field.Duplicate(path, s.Name))
		}
		seen.Insert(s.Name)
		ipc := strings.HasPrefix(dotted, "kernel.shm") || strings.HasPrefix(dotted, "kernel.msg") ||
			dotted == "kernel.sem" || strings.HasPrefix(dotted, "fs.mqueue.")
		if spec.HostNetwork && strings.HasPrefix(dotted, "net.") || spec.HostIPC && ipc {
			errs = append(errs, field.Invalid(path, s.Name, "may not be specified in a namespace of the host"))
		}
	}
	return errs
}

func validateSeccomp(p *corev1.SeccompProfile, at *field.Path) field.ErrorList {
	if p == nil {
		return nil
	}
	errs := oneOf(at.Child("type"), p.Type, corev1.SeccompProfileTypeLocalhost,
		corev1.SeccompProfileTypeRuntimeDefault, corev1.SeccompProfileTypeUnconfined)
	path := at.Child("localhostProfile")
	switch isLocal := p.Type == corev1.SeccompProfileTypeLocalhost; {
	case isLocal && p.LocalhostProfile == nil:
		errs = append(errs, field.Required(path, "must be set when seccomp type is Localhost"))
	case isLocal:
		errs = append(errs, descending(*p.LocalhostProfile, path)...)
	case p.LocalhostProfile != nil:
		errs = append(errs, field.Invalid(path, *p.LocalhostProfile, "can only be set when seccomp type is Localhost"))
	}
	return errs
}

func validateAppArmor(p *corev1.AppArmorProfile, at *field.Path) field.ErrorList {
	if p == nil {
		return nil
	}
	errs := oneOf(at.Child("type"), p.Type, corev1.AppArmorProfileTypeLocalhost,
		corev1.AppArmorProfileTypeRuntimeDefault, corev1.AppArmorProfileTypeUnconfined)
	profile, path := ptr.Deref(p.LocalhostProfile, ""), at.Child("localhostProfile")
	switch isLocal := p.Type == corev1.AppArmorProfileTypeLocalhost; {
	case isLocal && profile == "":
		errs = append(errs, field.Required(path, "must be set when AppArmor type is Localhost"))
	case isLocal && profile != strings.TrimSpace(profile):
		errs = append(errs, field.Invalid(path, profile, "must not be padded with whitespace"))
	case isLocal && len(profile) > maxProfile:
		errs = append(errs, field.TooLong(path, "", maxProfile))
	case !isLocal && p.LocalhostProfile != nil:
		errs = append(errs, field.Invalid(path, profile, "can only be set when AppArmor type is Localhost"))
	}
	return errs
}

const maxProfile = 4095

// windowsUser is the form of a user, perhaps with a domain, see "Configure RunAsUserName for Windows pods and
// containers" in the documentation.
var windowsUser = regexp.MustCompile(`^([^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}\\|` +
	`[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(\.[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*\\)?` +
	`([^"/\\\[\]:;|=,+*?<>@\x00-\x1f]{1,104})$`)

func validateWindowsOptions(o *corev1.WindowsSecurityContextOptions, at *field.Path) field.ErrorList {
	if o == nil {
		return nil
	}
	var errs field.ErrorList
	if name := o.GMSACredentialSpecName; name != nil {
		errs = append(errs, invalid(at.Child("gmsaCredentialSpecName"), *name, subdomainName(*name, false))...)
	}
	if spec := o.GMSACredentialSpec; spec != nil && (*spec == "" || len(*spec) > maxCredentialSpec) {
		errs = append(errs,
			field.Invalid(at.Child("gmsaCredentialSpec"), *spec, "must be neither empty nor above 64 KiB"))
	}
	if o.RunAsUserName == nil {
		return errs
	}
	name := *o.RunAsUserName
	user := name[strings.LastIndexByte(name, '\\')+1:]
	if !windowsUser.MatchString(name) || strings.Trim(user, ". ") == "" {
		errs = append(errs, field.Invalid(at.Child("runAsUserName"), name, "must be a user, or a domain and a user"))
	}
	return errs
}

const maxCredentialSpec = 64 * 1024
