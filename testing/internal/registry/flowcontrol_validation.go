package registry

import (
	"math"
	"slices"
	"strings"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"
	"k8s.io/utils/ptr"
)

// validateFlowSchema requires what the Kubernetes API reference requires, FlowSchemaSpec v1
// flowcontrol.apiserver.k8s.io. Two schemas are fixed.
func validateFlowSchema(s, _ *flowcontrolv1.FlowSchema) field.ErrorList {
	at, spec := field.NewPath("spec"), &s.Spec
	errs := between(at.Child("matchingPrecedence"), &spec.MatchingPrecedence, 1, 10_000)
	if spec.MatchingPrecedence == 1 && s.Name != flowcontrolv1.FlowSchemaNameExempt {
		errs = append(errs, field.Invalid(at.Child("matchingPrecedence"), spec.MatchingPrecedence,
			"only the schema named 'exempt' may have matchingPrecedence 1"))
	}
	if method := spec.DistinguisherMethod; method != nil {
		errs = append(errs, supported(at.Child("distinguisherMethod", "type"), method.Type,
			flowcontrolv1.FlowDistinguisherMethodByUserType, flowcontrolv1.FlowDistinguisherMethodByNamespaceType)...)
	}
	errs = append(errs,
		requiredName(at.Child("priorityLevelConfiguration", "name"), spec.PriorityLevelConfiguration.Name)...)
	for i := range spec.Rules {
		errs = append(errs, validateFlowRule(&spec.Rules[i], at.Child("rules").Index(i))...)
	}
	for _, fixed := range bootstrap.MandatoryFlowSchemas {
		if fixed.Name == s.Name && !equality.Semantic.DeepEqual(&fixed.Spec, spec) {
			errs = append(errs, field.Invalid(at, "", "spec of '"+s.Name+"' must equal the fixed value"))
		}
	}
	return errs
}

func validateFlowRule(r *flowcontrolv1.PolicyRulesWithSubjects, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(r.Subjects) == 0 {
		errs = append(errs, field.Required(at.Child("subjects"), atLeastOne))
	}
	for i := range r.Subjects {
		errs = append(errs, validateFlowSubject(&r.Subjects[i], at.Child("subjects").Index(i))...)
	}
	if len(r.ResourceRules)+len(r.NonResourceRules) == 0 {
		errs = append(errs,
			field.Required(at, "at least one of resourceRules and nonResourceRules has to be non-empty"))
	}
	for i, rule := range r.ResourceRules {
		path := at.Child("resourceRules").Index(i)
		errs = append(errs, validateVerbs(rule.Verbs, path.Child("verbs"))...)
		errs = append(errs, wildcardAlone(rule.APIGroups, path.Child("apiGroups"))...)
		errs = append(errs, wildcardAlone(rule.Resources, path.Child("resources"))...)
		if !rule.ClusterScope || len(rule.Namespaces) > 0 {
			errs = append(errs, wildcardAlone(rule.Namespaces, path.Child("namespaces"))...)
		}
		for _, namespace := range rule.Namespaces {
			if namespace != flowcontrolv1.NamespaceEvery {
				errs = append(errs, invalid(path.Child("namespaces"), namespace, labelName(namespace, false))...)
			}
		}
	}
	for i, rule := range r.NonResourceRules {
		path := at.Child("nonResourceRules").Index(i)
		errs = append(errs, validateVerbs(rule.Verbs, path.Child("verbs"))...)
		errs = append(errs, wildcardAlone(rule.NonResourceURLs, path.Child("nonResourceURLs"))...)
		for _, url := range rule.NonResourceURLs {
			if !isFlowURL(url) {
				errs = append(errs, field.Invalid(path.Child("nonResourceURLs"), url, "must be a path"))
			}
		}
	}
	return errs
}

// isFlowURL reports whether a path of requests is one, perhaps with a wildcard for the rest of it.
func isFlowURL(url string) bool {
	rest, _ := strings.CutSuffix(url, "/*")
	return url == "*" || url == "/" || strings.HasPrefix(url, "/") && !strings.ContainsAny(rest, " *") &&
		!strings.Contains(url, "//")
}

// wildcardAlone requires values, and none beside a wildcard.
func wildcardAlone(values []string, at *field.Path) field.ErrorList {
	switch {
	case len(values) == 0:
		return field.ErrorList{field.Required(at, atLeastOne)}
	case len(values) > 1 && slices.Contains(values, "*"):
		return field.ErrorList{field.Invalid(at, values, "if '*' is present, must not specify others")}
	}
	return nil
}

func validateVerbs(verbs []string, at *field.Path) field.ErrorList {
	errs := wildcardAlone(verbs, at)
	for _, verb := range verbs {
		errs = append(errs, supported(at, verb, "*", "get", "list", "create", "update", "delete", "deletecollection",
			"patch", "watch", "proxy")...)
	}
	return errs
}

func validateFlowSubject(s *flowcontrolv1.Subject, at *field.Path) field.ErrorList {
	errs := supported(at.Child("kind"), s.Kind, flowcontrolv1.SubjectKindServiceAccount,
		flowcontrolv1.SubjectKindUser, flowcontrolv1.SubjectKindGroup)
	account, user, group := s.ServiceAccount, s.User, s.Group
	for name, f := range ordered(map[string]struct{ is, wanted bool }{
		"serviceAccount": {account != nil, s.Kind == flowcontrolv1.SubjectKindServiceAccount},
		"user":           {user != nil, s.Kind == flowcontrolv1.SubjectKindUser},
		"group":          {group != nil, s.Kind == flowcontrolv1.SubjectKindGroup},
	}) {
		if f.is != f.wanted && len(errs) == 0 {
			errs = append(errs, field.Forbidden(at.Child(name), "must be set if and only if the kind says so"))
		}
	}
	if account != nil {
		path := at.Child("serviceAccount")
		errs = append(errs, requiredLabel(path.Child("namespace"), account.Namespace)...)
		if account.Name != flowcontrolv1.NameAll {
			errs = append(errs, requiredName(path.Child("name"), account.Name)...)
		}
	}
	if user != nil {
		errs = append(errs, required(at.Child("user", "name"), user.Name)...)
	}
	if group != nil {
		errs = append(errs, required(at.Child("group", "name"), group.Name)...)
	}
	return errs
}

// validatePriorityLevel requires what the Kubernetes API reference requires, PriorityLevelConfigurationSpec v1
// flowcontrol.apiserver.k8s.io. One level is fixed, and of another one all but its shares.
func validatePriorityLevel(p, _ *flowcontrolv1.PriorityLevelConfiguration) field.ErrorList {
	at, spec := field.NewPath("spec"), &p.Spec
	errs := oneOf(at.Child("type"), spec.Type, flowcontrolv1.PriorityLevelEnablementExempt,
		flowcontrolv1.PriorityLevelEnablementLimited)
	exempt := spec.Type == flowcontrolv1.PriorityLevelEnablementExempt
	if exempt != (p.Name == flowcontrolv1.PriorityLevelConfigurationNameExempt) {
		errs = append(errs,
			field.Invalid(at.Child("type"), spec.Type, "must be 'Exempt' if and only if `name` is 'exempt'"))
	}
	if exempt == (spec.Limited != nil) || !exempt && spec.Exempt != nil {
		errs = append(errs, field.Forbidden(at.Child("limited"), "must be set if and only if the type says so"))
	}
	if e := spec.Exempt; e != nil {
		errs = append(errs, notNegative(at.Child("exempt", "nominalConcurrencyShares"), e.NominalConcurrencyShares)...)
		errs = append(errs, between(at.Child("exempt", "lendablePercent"), e.LendablePercent, 0, 100)...)
	}
	if l := spec.Limited; l != nil {
		path := at.Child("limited")
		errs = append(errs, notNegative(path.Child("nominalConcurrencyShares"), l.NominalConcurrencyShares)...)
		errs = append(errs, between(path.Child("lendablePercent"), l.LendablePercent, 0, 100)...)
		errs = append(errs, notNegative(path.Child("borrowingLimitPercent"), l.BorrowingLimitPercent)...)
		errs = append(errs, validateLimitResponse(&l.LimitResponse, path.Child("limitResponse"))...)
	}
	for _, fixed := range bootstrap.MandatoryPriorityLevelConfigurations {
		want := fixed.Spec.DeepCopy()
		if want.Exempt != nil {
			want.Exempt = spec.Exempt
		}
		if fixed.Name == p.Name && !equality.Semantic.DeepEqual(want, spec) {
			errs = append(errs, field.Invalid(at, "", "spec of '"+p.Name+"' must equal the fixed value"))
		}
	}
	if _, ok := p.Annotations["flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares"]; ok {
		errs = append(errs, field.Forbidden(metadata.Child("annotations"), "annotation is forbidden"))
	}
	return errs
}

// maxHashBits are those of a hash that deals queues to flows.
const maxHashBits = 60

func validateLimitResponse(r *flowcontrolv1.LimitResponse, at *field.Path) field.ErrorList {
	errs := oneOf(at.Child("type"), r.Type, flowcontrolv1.LimitResponseTypeQueue,
		flowcontrolv1.LimitResponseTypeReject)
	if queues := r.Type == flowcontrolv1.LimitResponseTypeQueue; queues != (r.Queuing != nil) {
		return append(errs, field.Forbidden(at.Child("queuing"), "must be set if and only if the type is Queue"))
	}
	if r.Queuing == nil {
		return errs
	}
	q := ptr.Deref(r.Queuing, flowcontrolv1.QueuingConfiguration{})
	at = at.Child("queuing")
	errs = append(errs, positive(at.Child("queueLengthLimit"), &q.QueueLengthLimit)...)
	errs = append(errs, between(at.Child("queues"), &q.Queues, 1, 10*1000*1000)...)
	errs = append(errs, between(at.Child("handSize"), &q.HandSize, 1, q.Queues)...)
	if math.Ceil(math.Log2(float64(q.Queues))*float64(q.HandSize)) > maxHashBits {
		errs = append(errs, field.Invalid(at.Child("handSize"), q.HandSize, "needs too many bits of a hash"))
	}
	return errs
}
