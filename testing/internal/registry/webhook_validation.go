package registry

import (
	"net/url"
	"slices"
	"strings"
	"sync"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/environment"
)

// webhook is what the two kinds of webhooks have in common.
type webhook struct {
	name           string
	client         *admissionv1.WebhookClientConfig
	rules          []admissionv1.RuleWithOperations
	failurePolicy  *admissionv1.FailurePolicyType
	matchPolicy    *admissionv1.MatchPolicyType
	sideEffects    *admissionv1.SideEffectClass
	timeoutSeconds *int32
	versions       []string
	selectors      map[string]*metav1.LabelSelector
	conditions     []admissionv1.MatchCondition
}

func validateValidating(c, _ *admissionv1.ValidatingWebhookConfiguration) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i := range c.Webhooks {
		w := &c.Webhooks[i]
		errs = append(errs, validateWebhook(&webhook{
			w.Name, &w.ClientConfig, w.Rules, w.FailurePolicy, w.MatchPolicy, w.SideEffects, w.TimeoutSeconds,
			w.AdmissionReviewVersions, selectors(w.NamespaceSelector, w.ObjectSelector), w.MatchConditions,
		}, names, field.NewPath("webhooks").Index(i))...)
	}
	return errs
}

func validateMutating(c, _ *admissionv1.MutatingWebhookConfiguration) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i := range c.Webhooks {
		w, at := &c.Webhooks[i], field.NewPath("webhooks").Index(i)
		errs = append(errs, validateWebhook(&webhook{
			w.Name, &w.ClientConfig, w.Rules, w.FailurePolicy, w.MatchPolicy, w.SideEffects, w.TimeoutSeconds,
			w.AdmissionReviewVersions, selectors(w.NamespaceSelector, w.ObjectSelector), w.MatchConditions,
		}, names, at)...)
		if w.ReinvocationPolicy != nil {
			errs = append(errs, supported(at.Child("reinvocationPolicy"), *w.ReinvocationPolicy,
				admissionv1.NeverReinvocationPolicy, admissionv1.IfNeededReinvocationPolicy)...)
		}
	}
	return errs
}

func selectors(namespace, object *metav1.LabelSelector) map[string]*metav1.LabelSelector {
	return map[string]*metav1.LabelSelector{"namespaceSelector": namespace, "objectSelector": object}
}

// validateWebhook requires what the Kubernetes API reference requires, ValidatingWebhook v1
// admissionregistration.k8s.io.
func validateWebhook(w *webhook, names sets.Set[string], at *field.Path) field.ErrorList {
	errs := validation.IsFullyQualifiedName(at.Child("name"), w.name)
	if len(errs) == 0 && names.Has(w.name) {
		errs = append(errs, field.Duplicate(at.Child("name"), w.name))
	}
	names.Insert(w.name)
	errs = append(errs, validateReviewVersions(w.versions, at.Child("admissionReviewVersions"))...)
	for i := range w.rules {
		errs = append(errs, validateRule(&w.rules[i], at.Child("rules").Index(i))...)
	}
	if w.failurePolicy != nil {
		errs = append(errs, supported(at.Child("failurePolicy"), *w.failurePolicy, admissionv1.Fail,
			admissionv1.Ignore)...)
	}
	if w.matchPolicy != nil {
		errs = append(errs, supported(at.Child("matchPolicy"), *w.matchPolicy, admissionv1.Exact,
			admissionv1.Equivalent)...)
	}
	switch {
	case w.sideEffects == nil:
		errs = append(errs, field.Required(at.Child("sideEffects"), ""))
	default:
		errs = append(errs, supported(at.Child("sideEffects"), *w.sideEffects, admissionv1.SideEffectClassNone,
			admissionv1.SideEffectClassNoneOnDryRun)...)
	}
	if t := w.timeoutSeconds; t != nil && (*t < 1 || *t > 30) {
		errs = append(errs, field.Invalid(at.Child("timeoutSeconds"), *t, "must be between 1 and 30 seconds"))
	}
	for name, selector := range ordered(w.selectors) {
		errs = append(errs, validateSelector(selector, at.Child(name))...)
	}
	errs = append(errs, validateMatchConditions(w.conditions, at.Child("matchConditions"))...)
	return append(errs, validateClientConfig(w.client, at.Child("clientConfig"))...)
}

// validateReviewVersions requires one that API servers know.
func validateReviewVersions(versions []string, at *field.Path) field.ErrorList {
	switch {
	case len(versions) == 0:
		return field.ErrorList{field.Required(at, "must specify one of v1, v1beta1")}
	case !slices.Contains(versions, "v1") && !slices.Contains(versions, "v1beta1"):
		return field.ErrorList{field.Invalid(at, versions, "must include at least one of v1, v1beta1")}
	}
	var errs field.ErrorList
	for i, version := range versions {
		errs = append(errs, invalid(at.Index(i), version, validation.IsDNS1035Label(version))...)
		if slices.Contains(versions[:i], version) {
			errs = append(errs, field.Invalid(at.Index(i), version, "duplicate version"))
		}
	}
	return errs
}

func validateClientConfig(c *admissionv1.WebhookClientConfig, at *field.Path) field.ErrorList {
	if (c.URL == nil) == (c.Service == nil) {
		return field.ErrorList{field.Required(at, "exactly one of url or service is required")}
	}
	if c.URL != nil {
		return validateURL(*c.URL, at.Child("url"))
	}
	service, path := c.Service, at.Child("service")
	var errs field.ErrorList
	if service.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), ""))
	}
	if service.Namespace == "" {
		errs = append(errs, field.Required(path.Child("namespace"), ""))
	}
	if service.Port != nil {
		errs = append(errs, validatePortNumber(path.Child("port"), *service.Port)...)
	}
	if service.Path != nil {
		errs = append(errs, validateWebhookPath(*service.Path, path.Child("path"))...)
	}
	return errs
}

// validateWebhookPath requires a path whose parts are DNS subdomains. None is the root.
func validateWebhookPath(path string, at *field.Path) field.ErrorList {
	if path == "" || path == "/" {
		return nil
	}
	rest, ok := strings.CutPrefix(path, "/")
	if !ok {
		return field.ErrorList{field.Invalid(at, path, "must start with a '/'")}
	}
	var errs field.ErrorList
	for part := range strings.SplitSeq(strings.TrimSuffix(rest, "/"), "/") {
		errs = append(errs, invalid(at, path, subdomainName(part, false))...)
	}
	return errs
}

func validateURL(text string, at *field.Path) field.ErrorList {
	parsed, err := url.Parse(text)
	switch {
	case err != nil:
		return field.ErrorList{field.Required(at, "url must be a valid URL: "+err.Error())}
	case parsed.Scheme != "https", parsed.Host == "", parsed.User != nil, parsed.Fragment != "", parsed.RawQuery != "":
		return field.ErrorList{field.Invalid(at, text,
			"must be https, with a host, and without user, query and fragment")}
	}
	return nil
}

// validateRule requires rules that match something.
func validateRule(rule *admissionv1.RuleWithOperations, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, list := range []struct {
		name   string
		values []string
	}{{"apiVersions", rule.APIVersions}, {"resources", rule.Resources}} {
		if len(list.values) == 0 {
			errs = append(errs, field.Required(at.Child(list.name), ""))
		}
		if list.name == "apiVersions" && len(list.values) > 1 && slices.Contains(list.values, "*") {
			errs = append(errs, field.Invalid(at.Child(list.name), list.values,
				"if '*' is present, must not specify other API versions"))
		}
		for i, value := range list.values {
			if value == "" {
				errs = append(errs, field.Required(at.Child(list.name).Index(i), ""))
			}
		}
	}
	if len(rule.APIGroups) == 0 {
		errs = append(errs, field.Required(at.Child("apiGroups"), ""))
	}
	if len(rule.APIGroups) > 1 && slices.Contains(rule.APIGroups, "*") {
		errs = append(errs, field.Invalid(at.Child("apiGroups"), rule.APIGroups,
			"if '*' is present, must not specify other API groups"))
	}
	if len(rule.Operations) == 0 {
		errs = append(errs, field.Required(at.Child("operations"), ""))
	}
	for i, operation := range rule.Operations {
		errs = append(errs, supported(at.Child("operations").Index(i), operation, admissionv1.OperationAll,
			admissionv1.Create, admissionv1.Update, admissionv1.Delete, admissionv1.Connect)...)
	}
	if len(rule.Operations) > 1 && slices.Contains(rule.Operations, admissionv1.OperationAll) {
		errs = append(errs, field.Invalid(at.Child("operations"), rule.Operations,
			"if '*' is present, must not specify other operations"))
	}
	errs = append(errs, validateRuleResources(rule.Resources, at.Child("resources"))...)
	if rule.Scope != nil {
		errs = append(errs, supported(at.Child("scope"), *rule.Scope, admissionv1.ClusterScope,
			admissionv1.NamespacedScope, admissionv1.AllScopes)...)
	}
	return errs
}

// validateRuleResources requires that no resource stands beside a wildcard that includes it.
func validateRuleResources(resources []string, at *field.Path) field.ErrorList {
	if len(resources) > 1 && slices.Contains(resources, "*/*") {
		return field.ErrorList{field.Invalid(at, resources, "if '*/*' is present, must not specify other resources")}
	}
	var errs field.ErrorList
	for i, name := range resources {
		resource, sub, ok := strings.Cut(name, "/")
		before := resources[:i]
		if ok && (slices.Contains(before, resource+"/*") || slices.Contains(before, "*/"+sub)) {
			errs = append(errs, field.Invalid(at.Index(i), name, "is included in a wildcard"))
		}
	}
	// An API server looks at the last resource without a subresource.
	whole := slices.DeleteFunc(slices.Clone(resources), func(name string) bool {
		return name == "" || strings.Contains(name, "/")
	})
	if slices.Contains(whole, "*") && whole[len(whole)-1] != "*" {
		errs = append(errs, field.Invalid(at, resources,
			"if '*' is present, must not specify other resources without subresources"))
	}
	return errs
}

const maxConditions = 64

// validateMatchConditions requires expressions of the Common Expression Language, each under a name of its own.
func validateMatchConditions(conditions []admissionv1.MatchCondition, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(conditions) > maxConditions {
		errs = append(errs, field.TooMany(at, len(conditions), maxConditions))
	}
	for i, c := range conditions {
		path := at.Index(i)
		if c.Name == "" {
			errs = append(errs, field.Required(path.Child("name"), ""))
		} else {
			errs = append(errs, invalid(path.Child("name"), c.Name, validation.IsQualifiedName(c.Name))...)
		}
		if c.Name != "" && slices.ContainsFunc(conditions[:i], func(o admissionv1.MatchCondition) bool {
			return o.Name == c.Name
		}) {
			errs = append(errs, field.Duplicate(path.Child("name"), c.Name))
		}
		expression := strings.TrimSpace(c.Expression)
		if expression == "" {
			errs = append(errs, field.Required(path.Child("expression"), ""))
			continue
		}
		result := celCompiler().CompileCELExpression(&matchconditions.MatchCondition{Expression: expression},
			cel.OptionalVariableDeclarations{HasAuthorizer: true}, environment.NewExpressions)
		if result.Error != nil {
			errs = append(errs, field.Invalid(path.Child("expression"), c.Expression, result.Error.Error()))
		}
	}
	return errs
}

// celCompiler compiles conditions of admission.
var celCompiler = sync.OnceValue(func() cel.Compiler {
	return cel.NewCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
})
