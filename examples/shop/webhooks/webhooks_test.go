package webhooks_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	v1 "github.com/espalier-dev/espalier/examples/shop/api/v1"
	"github.com/espalier-dev/espalier/examples/shop/controller"
	"github.com/espalier-dev/espalier/examples/shop/webhooks"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
)

type change = func(*v1.Shop)

var shop = rtesting.NewFixture(&v1.Shop{
	ObjectMeta: metav1.ObjectMeta{Namespace: "market", Name: "web"},
	Spec:       v1.ShopSpec{Image: "shop:1", Replicas: 1, Host: "web.example.com"},
})

func annotated(key, value string) change {
	return func(s *v1.Shop) { s.Annotations = map[string]string{key: value} }
}

// asks returns what the API server asks about a request of Ann.
func asks(operation admissionv1.Operation, old, shop *v1.Shop) *admission.Request {
	request := &admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID:       "request",
		Kind:      metav1.GroupVersionKind{Group: v1.GroupVersion.Group, Version: v1.GroupVersion.Version, Kind: "Shop"},
		Namespace: "market", Name: "web", Operation: operation,
		UserInfo: authenticationv1.UserInfo{Username: "ann"},
	}}
	for raw, shop := range map[*runtime.RawExtension]*v1.Shop{&request.OldObject: old, &request.Object: shop} {
		if shop != nil {
			shop.SetGroupVersionKind(v1.GroupVersion.WithKind("Shop"))
			raw.Raw, _ = json.Marshal(shop) // it is one of these here
		}
	}
	return request
}

func creates(changes ...change) *admission.Request {
	return asks(admissionv1.Create, nil, shop.With(changes...).Object())
}

func allowed(patches ...jsonpatch.Operation) admission.Response {
	return admission.Response{Patches: patches, AdmissionResponse: admissionv1.AdmissionResponse{Allowed: true}}
}

func TestDefaulting(t *testing.T) {
	const orderedBy = "/metadata/annotations/shop.example.com~1ordered-by"
	ordered := func(by string) *v1.Shop { return shop.With(annotated(webhooks.OrderedByAnnotation, by)).Object() }
	rtesting.AdmissionWebhookTests{
		"a new shop": {
			Request: creates(func(s *v1.Shop) { s.Spec.Host = "Web.Example.COM" }),
			ExpectedResponse: allowed(
				jsonpatch.NewOperation("add", "/metadata/annotations", map[string]any{webhooks.OrderedByAnnotation: "ann"}),
				jsonpatch.NewOperation("replace", "/spec/host", "web.example.com")),
		},
		"a user says that somebody else has ordered it": {
			Request:          asks(admissionv1.Update, ordered("bob"), ordered("ann")),
			ExpectedResponse: allowed(jsonpatch.NewOperation("replace", orderedBy, "bob")),
		},
		"a shop that was there before the webhook": {
			Request:          asks(admissionv1.Update, shop.Object(), ordered("ann")),
			ExpectedResponse: allowed(jsonpatch.NewOperation("remove", "/metadata/annotations", nil)),
		},
	}.RunWithContext(t, scheme(t), built(webhooks.Defaulting))
}

func TestValidation(t *testing.T) {
	wrong := func(s *v1.Shop) {
		s.Spec.Host = "web_"
		s.Spec.Workers = []v1.Worker{{Name: "mail", Schedule: "@daily"}, {Name: "report", Schedule: "now and then"}}
	}
	protected := annotated(webhooks.ProtectedAnnotation, "true")
	causes := []metav1.StatusCause{
		{Type: metav1.CauseTypeFieldValueInvalid, Field: "spec.host", Message: host},
		{Type: metav1.CauseTypeFieldValueInvalid, Field: "spec.workers[1].schedule", Message: schedule},
	}
	idle := allowed()
	idle.Warnings = []string{"shop web has a host and no replicas: nobody answers there"}
	rtesting.AdmissionWebhookTests{
		"nothing is wrong":    {Request: creates(), ExpectedResponse: allowed()},
		"nobody would answer": {Request: creates(func(s *v1.Shop) { s.Spec.Replicas = 0 }), ExpectedResponse: idle},
		"what was wrong before": {
			Request:          asks(admissionv1.Update, shop.With(wrong).Object(), shop.With(wrong, protected).Object()),
			ExpectedResponse: allowed(),
		},
		"more than one mistake": {
			Request: asks(admissionv1.Update, shop.Object(), shop.With(wrong).Object()),
			ExpectedResponse: refused(metav1.Status{
				Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
				Message: `Shop.shop.example.com "web" is invalid: [spec.host: ` + host +
					`, spec.workers[1].schedule: ` + schedule + `]`,
				Details: &metav1.StatusDetails{Group: "shop.example.com", Kind: "Shop", Name: "web", Causes: causes},
			}),
		},
		"a shop may be deleted": {
			Request: asks(admissionv1.Delete, shop.Object(), nil), ExpectedResponse: allowed(),
		},
		"a shop that is protected": {
			Request: asks(admissionv1.Delete, shop.With(protected).Object(), nil),
			ExpectedResponse: refused(metav1.Status{
				Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
				Message: "shop web is protected: to delete it, remove the annotation shop.example.com/protected",
			}),
		},
	}.RunWithContext(t, scheme(t), built(webhooks.Validation))
}

// The texts of the mistakes.
const (
	host = `Invalid value: "web_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' ` +
		`or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is ` +
		`'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`
	schedule = `Invalid value: "now and then": must have five fields, as in "0 4 * * *"`
)

func refused(status metav1.Status) admission.Response {
	status.Status = metav1.StatusFailure
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &status}}
}

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme, err := controller.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	return scheme
}

func built(adapter func() *reconcilers.AdmissionWebhookAdapter[*v1.Shop]) rtesting.AdmissionWebhookFactoryWithContext {
	return func(
		_ *testing.T, ctx context.Context, _ *rtesting.AdmissionWebhookTestCase, _ reconcilers.Config,
	) (*admission.Webhook, error) {
		return adapter().BuildWithContext(ctx)
	}
}
