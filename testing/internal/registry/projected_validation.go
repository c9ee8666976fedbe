package registry

import (
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateItems(items []corev1.KeyToPath, mode *int32, at *field.Path) field.ErrorList {
	errs := validateMode(mode, at.Child("defaultMode"))
	for i := range items {
		path := at.Child("items").Index(i)
		errs = append(errs, needs("key", items[i].Key, "path", items[i].Path)(path)...)
		errs = append(errs, local(items[i].Path, path.Child("path"))...)
		errs = append(errs, validateMode(items[i].Mode, path.Child("mode"))...)
	}
	return errs
}

// validateMode requires permissions of a file, if there are any.
func validateMode(mode *int32, at *field.Path) field.ErrorList {
	if mode == nil || *mode >= 0 && *mode <= 0o777 {
		return nil
	}
	return field.ErrorList{field.Invalid(at, *mode, "must be a number between 0 and 0777 (octal), both inclusive")}
}

func noBacksteps(name string, at *field.Path) field.ErrorList {
	if !slices.Contains(strings.Split(name, "/"), "..") {
		return nil
	}
	return field.ErrorList{field.Invalid(at, name, "must not contain '..'")}
}

// descending requires a relative path that does not leave its folder.
func descending(name string, at *field.Path) field.ErrorList {
	errs := noBacksteps(name, at)
	if path.IsAbs(name) {
		errs = append(errs, field.Invalid(at, name, "must be a relative path"))
	}
	return errs
}

// local requires the path of a file of a volume. What begins with two dots is the kubelet's.
func local(name string, at *field.Path) field.ErrorList {
	errs := descending(name, at)
	if strings.HasPrefix(name, "..") && !strings.HasPrefix(name, "../") {
		errs = append(errs, field.Invalid(at, name, "must not start with '..'"))
	}
	return errs
}

// The fields of a pod that it can read of itself, as files and in its environment, see "Downward API" in the
// documentation.
var (
	fileFields = []string{
		"metadata.name", "metadata.namespace", "metadata.labels", "metadata.annotations", "metadata.uid",
	}
	envFields = []string{
		"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
		"status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
	}
	readResources = []string{
		"limits.cpu", "limits.memory", "limits.ephemeral-storage", "requests.cpu", "requests.memory",
		"requests.ephemeral-storage",
	}
)

func validateDownwardFiles(files []corev1.DownwardAPIVolumeFile, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range files {
		file := &files[i]
		errs = append(errs, required(at.Child("path"), file.Path)...)
		errs = append(errs, local(file.Path, at.Child("path"))...)
		errs = append(errs, validateMode(file.Mode, at.Child("mode"))...)
		switch {
		case (file.FieldRef == nil) == (file.ResourceFieldRef == nil):
			errs = append(errs, field.Required(at, "one of fieldRef and resourceFieldRef is required"))
		case file.FieldRef != nil:
			errs = append(errs, validateFieldRef(file.FieldRef, fileFields, at.Child("fieldRef"))...)
		default:
			errs = append(errs,
				required(at.Child("resourceFieldRef", "containerName"), file.ResourceFieldRef.ContainerName)...)
			errs = append(errs, validateResourceRef(file.ResourceFieldRef, at.Child("resourceFieldRef"))...)
		}
	}
	return errs
}

// validateFieldRef requires one of the fields, or a label or an annotation.
func validateFieldRef(ref *corev1.ObjectFieldSelector, fields []string, at *field.Path) field.ErrorList {
	errs := needs("apiVersion", ref.APIVersion, "fieldPath", ref.FieldPath)(at)
	if len(errs) > 0 {
		return errs
	}
	name, key, indexed := strings.Cut(ref.FieldPath, "['")
	key, closed := strings.CutSuffix(key, "']")
	switch {
	case ref.APIVersion != "v1":
		return field.ErrorList{field.Invalid(at.Child("apiVersion"), ref.APIVersion, "is not supported")}
	case indexed && closed && name == "metadata.annotations":
		return invalid(at, key, validation.IsQualifiedName(strings.ToLower(key)))
	case indexed && closed && name == "metadata.labels":
		return invalid(at, key, validation.IsQualifiedName(key))
	default:
		return supported(at.Child("fieldPath"), ref.FieldPath, fields...)
	}
}

func validateResourceRef(ref *corev1.ResourceFieldSelector, at *field.Path) field.ErrorList {
	if ref.Resource == "" {
		return required(at.Child("resource"), ref.Resource)
	}
	var errs field.ErrorList
	if !strings.HasPrefix(ref.Resource, "requests.hugepages-") && !strings.HasPrefix(ref.Resource,
		"limits.hugepages-") {
		errs = supported(at.Child("resource"), ref.Resource, readResources...)
	}
	units := []string{"1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"}
	if strings.HasSuffix(ref.Resource, ".cpu") {
		units = []string{"1m", "1"}
	}
	if divisor := ref.Divisor; len(errs) == 0 && !divisor.IsZero() {
		errs = append(errs, supported(at.Child("divisor"), divisor.String(), units...)...)
	}
	return errs
}

// validateProjected requires sources whose files have paths that differ.
func validateProjected(p *corev1.ProjectedVolumeSource, at *field.Path) field.ErrorList {
	errs := validateMode(p.DefaultMode, at.Child("defaultMode"))
	var paths []string
	for i := range p.Sources {
		source, path := &p.Sources[i], at.Child("sources").Index(i)
		var found []string
		count := 0
		use := func(name string, validate func(at *field.Path) field.ErrorList) {
			count++
			errs = append(errs, validate(path.Child(name))...)
		}
		if s := source.Secret; s != nil {
			use("secret", func(at *field.Path) field.ErrorList {
				return append(required(at.Child("name"), s.Name), validateItems(s.Items, nil, at)...)
			})
			found = append(found, pathsOf(s.Items)...)
		}
		if s := source.ConfigMap; s != nil {
			use("configMap", func(at *field.Path) field.ErrorList {
				return append(required(at.Child("name"), s.Name), validateItems(s.Items, nil, at)...)
			})
			found = append(found, pathsOf(s.Items)...)
		}
		if s := source.DownwardAPI; s != nil {
			use("downwardAPI", func(at *field.Path) field.ErrorList { return validateDownwardFiles(s.Items, at) })
			for _, file := range s.Items {
				found = append(found, file.Path)
			}
		}
		if s := source.ServiceAccountToken; s != nil {
			use("serviceAccountToken", func(at *field.Path) field.ErrorList { return validateTokenSource(s, at) })
		}
		if s := source.ClusterTrustBundle; s != nil {
			use("clusterTrustBundle", func(at *field.Path) field.ErrorList { return validateTrustBundle(s, at) })
			found = append(found, s.Path)
		}
		if s := source.PodCertificate; s != nil {
			use("podCertificate", func(at *field.Path) field.ErrorList { return validatePodCertificate(s, at) })
			found = append(found, s.CredentialBundlePath, s.KeyPath, s.CertificateChainPath)
		}
		if count > 1 {
			errs = append(errs, field.Forbidden(path, "may not specify more than 1 volume type per source"))
		}
		paths = append(paths, slices.DeleteFunc(found, func(p string) bool { return p == "" })...)
	}
	if len(sets.New(paths...)) < len(paths) {
		errs = append(errs, field.Invalid(at, paths, "conflicting duplicate paths"))
	}
	return errs
}

func pathsOf(items []corev1.KeyToPath) []string {
	var paths []string
	for _, item := range items {
		paths = append(paths, item.Path)
	}
	return paths
}

func validateTokenSource(s *corev1.ServiceAccountTokenProjection, at *field.Path) field.ErrorList {
	errs := append(required(at.Child("path"), s.Path), local(s.Path, at.Child("path"))...)
	return append(errs, between(at.Child("expirationSeconds"), s.ExpirationSeconds, 10*60, 1<<32)...)
}

// validateTrustBundle requires a name, or a signer and what selects its bundles.
func validateTrustBundle(s *corev1.ClusterTrustBundleProjection, at *field.Path) field.ErrorList {
	errs := append(required(at.Child("path"), s.Path), local(s.Path, at.Child("path"))...)
	switch {
	case (s.Name == nil) == (s.SignerName == nil):
		return append(errs, field.Required(at, "either name or signerName must be specified"))
	case s.Name != nil && s.LabelSelector != nil:
		errs = append(errs,
			field.Invalid(at.Child("labelSelector"), s.LabelSelector, "must be unset if name is specified"))
	case s.SignerName != nil:
		errs = append(errs, validateSignerName(*s.SignerName, at.Child("signerName"))...)
		errs = append(errs, validateSelector(s.LabelSelector, at.Child("labelSelector"))...)
	}
	if s.Name != nil {
		errs = append(errs, requiredName(at.Child("name"), (*s.Name)[strings.LastIndexByte(*s.Name, ':')+1:])...)
	}
	return errs
}

// validatePodCertificate requires what to sign, and a file for it.
func validatePodCertificate(s *corev1.PodCertificateProjection, at *field.Path) field.ErrorList {
	errs := validateSignerName(s.SignerName, at.Child("signerName"))
	errs = append(errs, supported(at.Child("keyType"), s.KeyType, "RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384",
		"ECDSAP521", "ED25519")...)
	longest := int32(91 * 24 * 60 * 60)
	if domain, _, _ := strings.Cut(s.SignerName, "/"); strings.HasSuffix(domain, ".kubernetes.io") ||
		domain == "kubernetes.io" {
		longest = 24 * 60 * 60
	}
	errs = append(errs, between(at.Child("maxExpirationSeconds"), s.MaxExpirationSeconds, 60*60, longest)...)
	for name, path := range ordered(map[string]string{
		"credentialBundlePath": s.CredentialBundlePath, "keyPath": s.KeyPath,
		"certificateChainPath": s.CertificateChainPath,
	}) {
		errs = append(errs, local(path, at.Child(name))...)
	}
	if s.CredentialBundlePath+s.KeyPath+s.CertificateChainPath == "" {
		errs = append(errs, field.Required(at, "specify at least one of credentialBundlePath, keyPath, and "+
			"certificateChainPath"))
	}
	for key := range ordered(s.UserAnnotations) {
		errs = append(errs, validation.IsDomainPrefixedKey(at.Child("userAnnotations"), strings.ToLower(key))...)
	}
	return errs
}

// validateSignerName requires a domain and a path.
func validateSignerName(name string, at *field.Path) field.ErrorList {
	domain, path, ok := strings.Cut(name, "/")
	if !ok || strings.Contains(path, "/") {
		return field.ErrorList{field.Invalid(at, name, "must be a fully qualified domain and path")}
	}
	errs := invalid(at, name, validation.IsDNS1123Subdomain(domain))
	for label := range strings.SplitSeq(domain, ".") {
		errs = append(errs, invalid(at, name, labelName(label, false))...)
	}
	if !strings.Contains(domain, ".") {
		errs = append(errs, field.Invalid(at, name, "should be a domain with at least two segments separated by dots"))
	}
	for segment := range strings.SplitSeq(path, ".") {
		errs = append(errs, invalid(at, name, validation.IsDNS1123Subdomain(segment))...)
	}
	return errs
}
