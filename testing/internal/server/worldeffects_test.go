package server_test

import (
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/espalier-dev/espalier/testing/internal/server"
)

// converted is a definition of two versions with a conversion webhook that nobody serves.
func converted() *apiextensionsv1.CustomResourceDefinition {
	d := widgets()
	second := *d.Spec.Versions[0].DeepCopy()
	second.Name, second.Storage = "v2", false
	d.Spec.Versions = append(d.Spec.Versions, second)
	d.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: ptr.To("https://nowhere.example.com")},
			ConversionReviewVersions: []string{"v1"},
		},
	}
	return d
}

func TestWithoutEffect(t *testing.T) {
	named := metav1.ObjectMeta{Name: "a"}
	for obj, want := range map[client.Object]string{
		&admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: named}: "ValidatingAdmissionPolicy a has no effect",
		&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: named}: "webhooks are not called; " +
			"test it with testing/simulation",
		converted():    "widgets.example.com has no effect: its conversion webhook is not called",
		widgets():      "",
		configMap("a"): "",
	} {
		gvk, err := apiutil.GVKForObject(obj, worldScheme())
		if err != nil {
			t.Fatal(err)
		}
		if got := server.WithoutEffect(gvk.GroupKind(), obj); (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("of a %s it says %q, want %q", gvk.Kind, got, want)
		}
	}
}

// TestWorldConversion reads an object in another version than it was written in. Nothing calls the webhook.
func TestWorldConversion(t *testing.T) {
	w := newWorld(t)
	w.create(converted(), widget("a", 3))
	obj := widget("a", 0)
	obj.SetAPIVersion("example.com/v2")
	w.get(obj)
	if size, _, _ := unstructured.NestedInt64(obj.Object, "spec", "size"); size != 3 {
		t.Errorf("it is read as %v", obj.Object)
	}
}
