package registry

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// completeValidating sets the defaults of the Kubernetes API reference, ValidatingWebhook v1
// admissionregistration.k8s.io.
func completeValidating(c, _ *admissionv1.ValidatingWebhookConfiguration) {
	for i := range c.Webhooks {
		w := &c.Webhooks[i]
		setDefault(&w.FailurePolicy, admissionv1.Fail)
		setDefault(&w.MatchPolicy, admissionv1.Equivalent)
		setDefault(&w.NamespaceSelector, metav1.LabelSelector{})
		setDefault(&w.ObjectSelector, metav1.LabelSelector{})
		setDefault(&w.TimeoutSeconds, 10)
		completeWebhook(&w.ClientConfig, w.Rules)
	}
}

// completeMutating sets the defaults of the Kubernetes API reference, MutatingWebhook v1 admissionregistration.k8s.io.
func completeMutating(c, _ *admissionv1.MutatingWebhookConfiguration) {
	for i := range c.Webhooks {
		w := &c.Webhooks[i]
		setDefault(&w.FailurePolicy, admissionv1.Fail)
		setDefault(&w.MatchPolicy, admissionv1.Equivalent)
		setDefault(&w.NamespaceSelector, metav1.LabelSelector{})
		setDefault(&w.ObjectSelector, metav1.LabelSelector{})
		setDefault(&w.TimeoutSeconds, 10)
		setDefault(&w.ReinvocationPolicy, admissionv1.NeverReinvocationPolicy)
		completeWebhook(&w.ClientConfig, w.Rules)
	}
}

func completeWebhook(c *admissionv1.WebhookClientConfig, rules []admissionv1.RuleWithOperations) {
	if c.Service != nil {
		setDefault(&c.Service.Port, 443)
	}
	for i := range rules {
		setDefault(&rules[i].Scope, admissionv1.AllScopes)
	}
}

// completeValidatingPolicy sets the defaults of the Kubernetes API reference, ValidatingAdmissionPolicy v1
// admissionregistration.k8s.io.
func completeValidatingPolicy(p, _ *admissionv1.ValidatingAdmissionPolicy) {
	setDefault(&p.Spec.FailurePolicy, admissionv1.Fail)
	completeMatch(p.Spec.MatchConstraints)
}

func completeValidatingPolicyBinding(b, _ *admissionv1.ValidatingAdmissionPolicyBinding) {
	completeMatch(b.Spec.MatchResources)
}

// completeMutatingPolicy sets the defaults of the Kubernetes API reference, MutatingAdmissionPolicy v1
// admissionregistration.k8s.io.
func completeMutatingPolicy(p, _ *admissionv1.MutatingAdmissionPolicy) {
	setDefault(&p.Spec.FailurePolicy, admissionv1.Fail)
	completeMatch(p.Spec.MatchConstraints)
}

func completeMutatingPolicyBinding(b, _ *admissionv1.MutatingAdmissionPolicyBinding) {
	completeMatch(b.Spec.MatchResources)
}

// completeMatch sets the defaults of what a policy concerns, which may be nil.
func completeMatch(m *admissionv1.MatchResources) {
	if m == nil {
		return
	}
	setDefault(&m.MatchPolicy, admissionv1.Equivalent)
	setDefault(&m.NamespaceSelector, metav1.LabelSelector{})
	setDefault(&m.ObjectSelector, metav1.LabelSelector{})
	for _, rules := range [][]admissionv1.NamedRuleWithOperations{m.ResourceRules, m.ExcludeResourceRules} {
		for i := range rules {
			setDefault(&rules[i].Scope, admissionv1.AllScopes)
		}
	}
}
