package registry

import (
	"net/url"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
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
}

func validateValidating(c, _ *admissionv1.ValidatingWebhookConfiguration) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i := range c.Webhooks {
		w := &c.Webhooks[i]
		errs = append(errs, validateWebhook(&webhook{
			w.Name, &w.ClientConfig, w.Rules, w.FailurePolicy, w.MatchPolicy, w.SideEffects, w.TimeoutSeconds,
			w.AdmissionReviewVersions, selectors(w.NamespaceSelector, w.ObjectSelector),
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
			w.AdmissionReviewVersions, selectors(w.NamespaceSelector, w.ObjectSelector),
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
	for name, selector := range w.selectors {
		errs = append(errs, validateSelector(selector, at.Child(name))...)
	}
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
	return nil
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
	if service.Path != nil && !strings.HasPrefix(*service.Path, "/") {
		errs = append(errs, field.Invalid(path.Child("path"), *service.Path, "must start with a '/'"))
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
	if rule.Scope != nil {
		errs = append(errs, supported(at.Child("scope"), *rule.Scope, admissionv1.ClusterScope,
			admissionv1.NamespacedScope, admissionv1.AllScopes)...)
	}
	return errs
}
