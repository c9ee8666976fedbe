package server

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// withoutEffect are the kinds that an API server reads with informers, which see no world.
var withoutEffect = map[schema.GroupKind]string{
	admissionKind("MutatingWebhookConfiguration"):     "webhooks are not called",
	admissionKind("ValidatingWebhookConfiguration"):   "webhooks are not called",
	admissionKind("MutatingAdmissionPolicy"):          "policies are not evaluated",
	admissionKind("MutatingAdmissionPolicyBinding"):   "policies are not evaluated",
	admissionKind("ValidatingAdmissionPolicy"):        "policies are not evaluated",
	admissionKind("ValidatingAdmissionPolicyBinding"): "policies are not evaluated",
}

func admissionKind(kind string) schema.GroupKind {
	return schema.GroupKind{Group: admissionregistrationv1.GroupName, Kind: kind}
}

// WithoutEffect says why an object of a kind is stored in a world but does not do there what it does in a cluster: it
// configures webhooks or policies of admission, or is a definition with a conversion webhook, instead of which only the
// apiVersion of objects is changed. It returns "" for any other object.
func WithoutEffect(kind schema.GroupKind, obj client.Object) string {
	why, ok := withoutEffect[kind]
	if kind == DefinitionKind {
		d, err := definitionOf(obj)
		why = "its conversion webhook is not called, only the apiVersion of objects is converted"
		ok = err == nil && d.Spec.Conversion != nil &&
			d.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
	}
	if !ok {
		return ""
	}
	return fmt.Sprintf("%s %s has no effect: %s; test it with testing/simulation", kind.Kind, obj.GetName(), why)
}
