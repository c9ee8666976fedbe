package registry

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validatePodAffinity(a *corev1.Affinity, at *field.Path) field.ErrorList {
	if a == nil {
		return nil
	}
	var errs field.ErrorList
	const needed, wanted = "requiredDuringSchedulingIgnoredDuringExecution",
		"preferredDuringSchedulingIgnoredDuringExecution"
	if n := a.NodeAffinity; n != nil {
		path := at.Child("nodeAffinity")
		if n.RequiredDuringSchedulingIgnoredDuringExecution != nil {
			errs = append(errs,
				validateNodeSelector(n.RequiredDuringSchedulingIgnoredDuringExecution, path.Child(needed))...)
		}
		for i := range n.PreferredDuringSchedulingIgnoredDuringExecution {
			term, path := &n.PreferredDuringSchedulingIgnoredDuringExecution[i], path.Child(wanted).Index(i)
			errs = append(errs, between(path.Child("weight"), &term.Weight, 1, 100)...)
			errs = append(errs, validateNodeTerm(&term.Preference, true, path.Child("preference"))...)
		}
	}
	terms := func(name string, required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
		for i := range required {
			errs = append(errs, validatePodTerm(&required[i], at.Child(name, needed).Index(i))...)
		}
		for i := range preferred {
			path := at.Child(name, wanted).Index(i)
			errs = append(errs, between(path.Child("weight"), &preferred[i].Weight, 1, 100)...)
			errs = append(errs, validatePodTerm(&preferred[i].PodAffinityTerm, path.Child("podAffinityTerm"))...)
		}
	}
	if p := a.PodAffinity; p != nil {
		terms("podAffinity", p.RequiredDuringSchedulingIgnoredDuringExecution,
			p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if p := a.PodAntiAffinity; p != nil {
		terms("podAntiAffinity", p.RequiredDuringSchedulingIgnoredDuringExecution,
			p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return errs
}

func validateNodeSelector(s *corev1.NodeSelector, at *field.Path) field.ErrorList {
	at = at.Child("nodeSelectorTerms")
	if len(s.NodeSelectorTerms) == 0 {
		return field.ErrorList{field.Required(at, "must have at least one node selector term")}
	}
	var errs field.ErrorList
	for i := range s.NodeSelectorTerms {
		errs = append(errs, validateNodeTerm(&s.NodeSelectorTerms[i], false, at.Index(i))...)
	}
	return errs
}

// validateNodeTerm lets what is only preferred have any values.
func validateNodeTerm(t *corev1.NodeSelectorTerm, anyValue bool, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, r := range t.MatchExpressions {
		path := at.Child("matchExpressions").Index(i)
		switch count := len(r.Values); r.Operator {
		case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
			if count == 0 {
				errs = append(errs,
					field.Required(path.Child("values"), "must be specified when `operator` is 'In' or 'NotIn'"))
			}
		case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
			if count > 0 {
				errs = append(errs, field.Forbidden(path.Child("values"),
					"may not be specified when `operator` is 'Exists' or 'DoesNotExist'"))
			}
		case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
			if count != 1 {
				errs = append(errs, field.Required(path.Child("values"),
					"must be specified single value when `operator` is 'Lt' or 'Gt'"))
			}
		default:
			errs = append(errs, field.Invalid(path.Child("operator"), r.Operator, "not a valid selector operator"))
		}
		errs = append(errs, metav1validation.ValidateLabelName(r.Key, path.Child("key"))...)
		for _, value := range r.Values {
			if !anyValue {
				errs = append(errs, invalid(path.Child("values"), value, validation.IsValidLabelValue(value))...)
			}
		}
	}
	for i, r := range t.MatchFields {
		path := at.Child("matchFields").Index(i)
		errs = append(errs,
			supported(path.Child("operator"), r.Operator, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn)...)
		errs = append(errs, supported(path.Child("key"), r.Key, metav1.ObjectNameField)...)
		if len(r.Values) != 1 {
			errs = append(errs, field.Required(path.Child("values"), "must be only one value"))
		}
		for _, value := range r.Values {
			errs = append(errs, invalid(path.Child("values"), value, subdomainName(value, false))...)
		}
	}
	return errs
}

func validatePodTerm(t *corev1.PodAffinityTerm, at *field.Path) field.ErrorList {
	errs := append(validateSelector(t.LabelSelector, at.Child("labelSelector")),
		validateSelector(t.NamespaceSelector, at.Child("namespaceSelector"))...)
	for _, name := range t.Namespaces {
		errs = append(errs, invalid(at.Child("namespace"), name, labelName(name, false))...)
	}
	errs = append(errs, validateMatchKeys(t.MatchLabelKeys, t.MismatchLabelKeys, t.LabelSelector, at)...)
	return append(errs, metav1validation.ValidateLabelName(t.TopologyKey, at.Child("topologyKey"))...)
}

// validateMatchKeys requires keys of labels that are not in the selector, unless the API server added them to it.
func validateMatchKeys(match, mismatch []string, selector *metav1.LabelSelector, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if selector == nil && len(match)+len(mismatch) > 0 {
		return field.ErrorList{field.Forbidden(at.Child("matchLabelKeys"),
			"must not be specified when labelSelector is not set")}
	}
	for _, key := range slices.Concat(match, mismatch) {
		errs = append(errs, metav1validation.ValidateLabelName(key, at.Child("matchLabelKeys"))...)
	}
	for _, key := range match {
		if slices.Contains(mismatch, key) {
			errs = append(errs, field.Invalid(at.Child("matchLabelKeys"), key,
				"exists in both matchLabelKeys and mismatchLabelKeys"))
		}
		times := 0
		if _, ok := selector.MatchLabels[key]; ok {
			times++
		}
		for _, r := range selector.MatchExpressions {
			if r.Key == key {
				times++
			}
		}
		if times > 1 {
			errs = append(errs, field.Invalid(at, key, "exists in both matchLabelKeys and labelSelector"))
		}
	}
	return errs
}

func validateSpread(constraints []corev1.TopologySpreadConstraint, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range constraints {
		c, path := &constraints[i], at.Index(i)
		errs = append(errs, positive(path.Child("maxSkew"), &c.MaxSkew)...)
		errs = append(errs, required(path.Child("topologyKey"), c.TopologyKey)...)
		errs = append(errs, supported(path.Child("whenUnsatisfiable"), c.WhenUnsatisfiable, corev1.DoNotSchedule,
			corev1.ScheduleAnyway)...)
		if slices.ContainsFunc(constraints[:i], func(o corev1.TopologySpreadConstraint) bool {
			return o.TopologyKey == c.TopologyKey && o.WhenUnsatisfiable == c.WhenUnsatisfiable
		}) {
			errs = append(errs, field.Duplicate(path.Child("{topologyKey, whenUnsatisfiable}"), c.TopologyKey))
		}
		errs = append(errs, positive(path.Child("minDomains"), c.MinDomains)...)
		if c.MinDomains != nil && c.WhenUnsatisfiable != corev1.DoNotSchedule {
			errs = append(errs, field.Invalid(path.Child("minDomains"), *c.MinDomains,
				"can only use minDomains if whenUnsatisfiable=DoNotSchedule"))
		}
		for name, policy := range ordered(map[string]*corev1.NodeInclusionPolicy{
			"nodeAffinityPolicy": c.NodeAffinityPolicy, "nodeTaintsPolicy": c.NodeTaintsPolicy,
		}) {
			if policy != nil {
				errs = append(errs, supported(path.Child(name), *policy, corev1.NodeInclusionPolicyIgnore,
					corev1.NodeInclusionPolicyHonor)...)
			}
		}
		errs = append(errs, validateMatchKeys(c.MatchLabelKeys, nil, c.LabelSelector, path)...)
		errs = append(errs, validateSelector(c.LabelSelector, path.Child("labelSelector"))...)
	}
	return errs
}

func validateTolerations(tolerations []corev1.Toleration, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range tolerations {
		errs = append(errs, validateToleration(&tolerations[i], at.Index(i))...)
	}
	return errs
}

func validateToleration(t *corev1.Toleration, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if t.Key != "" {
		errs = append(errs, metav1validation.ValidateLabelName(t.Key, at.Child("key"))...)
	} else if t.Operator != corev1.TolerationOpExists {
		errs = append(errs, field.Invalid(at.Child("operator"), t.Operator,
			"operator must be Exists when `key` is empty, which means \"match all values and all keys\""))
	}
	switch t.Operator {
	case corev1.TolerationOpEqual, "":
		errs = append(errs, invalid(at.Child("operator"), t.Value, validation.IsValidLabelValue(t.Value))...)
	case corev1.TolerationOpExists:
		if t.Value != "" {
			errs = append(errs, field.Invalid(at.Child("operator"), t.Value,
				"value must be empty when `operator` is 'Exists'"))
		}
	default:
		errs = append(errs, supported(at.Child("operator"), t.Operator, corev1.TolerationOpEqual,
			corev1.TolerationOpExists)...)
	}
	if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
		errs = append(errs, field.Invalid(at.Child("effect"), t.Effect,
			"effect must be 'NoExecute' when `tolerationSeconds` is set"))
	}
	return append(errs, supported(at.Child("effect"), t.Effect, "", corev1.TaintEffectNoSchedule,
		corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)...)
}
