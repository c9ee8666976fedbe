package controllers

import (
	"bytes"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The annotations that say whose authority is injected, see "CA Injector" in the documentation of cert-manager.
const (
	injectFromCertificate = "cert-manager.io/inject-ca-from"
	injectFromSecret      = "cert-manager.io/inject-ca-from-secret"
	certificateName       = "cert-manager.io/certificate-name"
	allowInjection        = "cert-manager.io/allow-direct-injection"
)

// injectors sets the bundle of the authority in webhook configurations and definitions with an annotation, as the CA
// injector of cert-manager does. It is "ca.crt" of the Secret of a certificate, or of a Secret that allows it. If a
// certificate has no Secret it is the authority of the options, if there is one.
func injectors(options Options) *controller {
	return &controller{
		name: "cert-manager-cainjector", kinds: []schema.GroupKind{validatingKind, mutatingKind, definitionKind},
		decide: func(v *view, _ key, obj client.Object, _ time.Time) decision {
			namespace, name, certificate := injectedFrom(obj)
			if name == "" || obj.GetDeletionTimestamp() != nil {
				return decision{}
			}
			bundle := bundleIn(list[*corev1.Secret](v, secretKind, namespace), name, certificate)
			if bundle == nil && certificate {
				bundle = options.Authority
			}
			return inject(obj, bundle)
		},
		concerns: func(v *view, k key, obj client.Object) []key {
			if k.GroupKind != secretKind {
				return nil
			}
			all := slices.Concat(v.keys(validatingKind, ""), v.keys(mutatingKind, ""), v.keys(definitionKind, ""))
			return slices.DeleteFunc(all, func(k key) bool {
				namespace, _, _ := injectedFrom(v.find(k))
				return namespace != obj.GetNamespace()
			})
		},
	}
}

// injectedFrom returns the certificate or the Secret that an object names.
func injectedFrom(obj client.Object) (namespace, name string, certificate bool) {
	from, certificate := obj.GetAnnotations()[injectFromCertificate]
	if !certificate {
		from = obj.GetAnnotations()[injectFromSecret]
	}
	namespace, name, _ = strings.Cut(from, "/")
	return namespace, name, certificate
}

// bundleIn returns the bundle of a certificate, or of a Secret, nil if there is none.
func bundleIn(secrets []*corev1.Secret, name string, certificate bool) []byte {
	for _, secret := range secrets {
		if certificate && secret.Annotations[certificateName] == name ||
			!certificate && secret.Name == name && secret.Annotations[allowInjection] == "true" {
			return secret.Data["ca.crt"]
		}
	}
	return nil
}

// inject sets a bundle wherever an object has one.
func inject(obj client.Object, bundle []byte) decision {
	if len(bundle) == 0 {
		return decision{}
	}
	next := obj.DeepCopyObject().(client.Object)
	var places []*[]byte
	switch o := next.(type) {
	case *admissionv1.ValidatingWebhookConfiguration:
		for i := range o.Webhooks {
			places = append(places, &o.Webhooks[i].ClientConfig.CABundle)
		}
	case *admissionv1.MutatingWebhookConfiguration:
		for i := range o.Webhooks {
			places = append(places, &o.Webhooks[i].ClientConfig.CABundle)
		}
	case *apiextensionsv1.CustomResourceDefinition:
		if c := o.Spec.Conversion; c != nil && c.Webhook != nil && c.Webhook.ClientConfig != nil {
			places = append(places, &c.Webhook.ClientConfig.CABundle)
		}
	}
	for _, place := range places {
		if !bytes.Equal(*place, bundle) {
			*place = bundle
		}
	}
	return decision{writes: changed(update, next, obj)}
}
