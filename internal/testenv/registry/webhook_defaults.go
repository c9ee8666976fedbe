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
