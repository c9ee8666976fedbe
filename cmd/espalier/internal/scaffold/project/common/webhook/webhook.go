// Package webhook has the webhooks of the operator: trees that answer admission requests.
package webhook

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
)

// What "make manifests" makes the configurations of the webhooks of:
//
//scaffold:if defaulting
// +kubebuilder:webhookconfiguration:mutating=true,name=placeholder-operator
// +kubebuilder:webhook:path=/default-placeholders,mutating=true,failurePolicy=fail,sideEffects=None,groups=group.example.test,resources=placeholders,verbs=create;update,versions=v9alpha9,name=default.group.example.test,admissionReviewVersions=v1,serviceName=placeholder-operator-webhook,serviceNamespace=placeholder-operator-system
//scaffold:end
//scaffold:if validating
// +kubebuilder:webhookconfiguration:mutating=false,name=placeholder-operator
// +kubebuilder:webhook:path=/validate-placeholders,mutating=false,failurePolicy=fail,sideEffects=None,groups=group.example.test,resources=placeholders,verbs=create;update,versions=v9alpha9,name=validate.group.example.test,admissionReviewVersions=v1,serviceName=placeholder-operator-webhook,serviceNamespace=placeholder-operator-system
//scaffold:end

// SetUp has the manager serve the webhooks.
func SetUp(ctx context.Context, mgr ctrl.Manager) error {
	//scaffold:if defaulting
	defaulting, err := Defaulting().BuildWithContext(ctx)
	if err != nil {
		return err
	}
	mgr.GetWebhookServer().Register("/default-placeholders", defaulting)
	//scaffold:end
	//scaffold:if validating
	validating, err := Validating().BuildWithContext(ctx)
	if err != nil {
		return err
	}
	mgr.GetWebhookServer().Register("/validate-placeholders", validating)
	//scaffold:end
	return nil
}
