package registry

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The rules of this file are from the Kubernetes API reference, CustomResourceDefinition v1 apiextensions.k8s.io. The
// published package that has them all makes each test binary 22 MB larger, since it imports the client of webhooks. Not
// here are the rules for conversion webhooks, printer columns, selectable fields, the scale subresource, and API
// groups that are protected.

// validateDefinitionMetadata requires the name that the spec implies.
func validateDefinitionMetadata(definition *apiextensionsv1.CustomResourceDefinition) field.ErrorList {
	names, group := definition.Spec.Names, definition.Spec.Group
	return validateMetadata(definition, Cluster, func(name string, prefix bool) []string {
		problems := subdomainName(name, prefix)
		if name != names.Plural+"."+group {
			problems = append(problems, `must be spec.names.plural+"."+spec.group`)
		}
		return problems
	})
}

// validateDefinitionSpec returns what is wrong with a spec with defaults, but for the schemas.
func validateDefinitionSpec(spec *apiextensionsv1.CustomResourceDefinitionSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	group := path.Child("group")
	switch problems := utilvalidation.IsDNS1123Subdomain(spec.Group); {
	case spec.Group == "":
		errs = append(errs, field.Required(group, ""))
	case len(problems) > 0:
		errs = append(errs, field.Invalid(group, spec.Group, strings.Join(problems, ",")))
	case !strings.Contains(spec.Group, "."):
		errs = append(errs, field.Invalid(group, spec.Group, "should be a domain with at least one dot"))
	}
	scopes := []apiextensionsv1.ResourceScope{apiextensionsv1.ClusterScoped, apiextensionsv1.NamespaceScoped}
	if spec.Scope == "" {
		errs = append(errs, field.Required(path.Child("scope"), ""))
	} else if !slices.Contains(scopes, spec.Scope) {
		errs = append(errs, field.NotSupported(path.Child("scope"), spec.Scope, scopes))
	}
	if spec.PreserveUnknownFields {
		errs = append(errs, field.Invalid(path.Child("preserveUnknownFields"), true,
			"cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "+
				"spec.versions[*].schema instead"))
	}
	errs = append(errs, validateVersions(spec.Versions, path.Child("versions"))...)
	return append(errs, validateNames(&spec.Names, path.Child("names"))...)
}

func validateVersions(versions []apiextensionsv1.CustomResourceDefinitionVersion, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	stored := 0
	names := map[string]bool{}
	for i, version := range versions {
		if version.Storage {
			stored++
		}
		names[version.Name] = true
		if problems := utilvalidation.IsDNS1035Label(version.Name); len(problems) > 0 {
			detail := strings.Join(problems, ",")
			errs = append(errs, field.Invalid(path.Index(i).Child("name"), version.Name, detail))
			if i == 0 {
				// The internal version has the name of the first version a second time.
				errs = append(errs, field.Invalid(field.NewPath("spec", "version"), version.Name, detail))
			}
		}
	}
	if len(names) < len(versions) {
		errs = append(errs, field.Invalid(path, versions, "must contain unique version names"))
	}
	if stored != 1 {
		errs = append(errs, field.Invalid(path, versions, "must have exactly one version marked as storage version"))
	}
	return errs
}

func validateNames(names *apiextensionsv1.CustomResourceDefinitionNames, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range []struct {
		field, value string
		mixedCase    bool
	}{
		{"plural", names.Plural, false},
		{"singular", names.Singular, false},
		{"kind", names.Kind, true},
		{"listKind", names.ListKind, true},
	} {
		if name.value == "" {
			errs = append(errs, field.Required(path.Child(name.field), ""))
			continue
		}
		label, detail := name.value, ""
		if name.mixedCase {
			label, detail = strings.ToLower(label), "may have mixed case, but should otherwise match: "
		}
		if problems := utilvalidation.IsDNS1035Label(label); len(problems) > 0 {
			errs = append(errs, field.Invalid(path.Child(name.field), name.value, detail+strings.Join(problems, ",")))
		}
	}
	if names.Kind != "" && names.Kind == names.ListKind {
		errs = append(errs, field.Invalid(
			path.Child("listKind"), names.ListKind, "kind and listKind may not be the same"))
	}
	errs = append(errs, validateDNSLabels(names.ShortNames, path.Child("shortNames"))...)
	return append(errs, validateDNSLabels(names.Categories, path.Child("categories"))...)
}

func validateDNSLabels(values []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, value := range values {
		if problems := utilvalidation.IsDNS1035Label(value); len(problems) > 0 {
			errs = append(errs, field.Invalid(path.Index(i), value, strings.Join(problems, ",")))
		}
	}
	return errs
}

// validateStoredVersions requires that what may be stored can be read.
func validateStoredVersions(definition *apiextensionsv1.CustomResourceDefinition) field.ErrorList {
	path := field.NewPath("status", "storedVersions")
	stored := definition.Status.StoredVersions
	if len(stored) == 0 {
		return field.ErrorList{field.Invalid(path, stored, "must have at least one stored version")}
	}
	var errs field.ErrorList
	for _, version := range definition.Spec.Versions {
		if version.Storage && !slices.Contains(stored, version.Name) {
			errs = append(errs, field.Invalid(path, stored, "must have the storage version "+version.Name))
		}
	}
	for i, name := range stored {
		named := func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == name }
		if !slices.ContainsFunc(definition.Spec.Versions, named) {
			errs = append(errs, field.Invalid(path.Index(i), name, "missing from spec.versions; "+name+
				" was previously a storage version, and must remain in spec.versions until a storage migration "+
				"ensures no data remains persisted in "+name+" and removes "+name+" from status.storedVersions"))
		}
	}
	return errs
}

// validateDefinitionUpdate returns which fields must not change any more.
func validateDefinitionUpdate(spec, old *apiextensionsv1.CustomResourceDefinitionSpec) field.ErrorList {
	path := field.NewPath("spec")
	errs := validation.ValidateImmutableField(spec.Scope, old.Scope, path.Child("scope"))
	errs = append(errs, validation.ValidateImmutableField(
		spec.Names.Kind, old.Names.Kind, path.Child("names", "kind"))...)
	errs = append(errs, validation.ValidateImmutableField(spec.Group, old.Group, path.Child("group"))...)
	return append(errs, validation.ValidateImmutableField(
		spec.Names.Plural, old.Names.Plural, path.Child("names", "plural"))...)
}
