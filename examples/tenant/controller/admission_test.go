package controller_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/tenant/controller"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
)

// creates, updates and removes are the requests of a user for tenants, as an API server asks about them.
func creates(user string, tenant rtesting.Fixture[*v1alpha1.Tenant]) *admission.Request {
	return asks(user, admissionv1.Create, nil, tenant.Object())
}

func updates(user string, before, tenant rtesting.Fixture[*v1alpha1.Tenant]) *admission.Request {
	return asks(user, admissionv1.Update, before.Object(), tenant.Object())
}

func removes(user string, tenant rtesting.Fixture[*v1alpha1.Tenant]) *admission.Request {
	return asks(user, admissionv1.Delete, tenant.Object(), nil)
}

func asks(user string, operation admissionv1.Operation, before, tenant *v1alpha1.Tenant) *admission.Request {
	request := &admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID:       "request",
		Kind:      metav1.GroupVersionKind{Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version, Kind: "Tenant"},
		Operation: operation,
		UserInfo:  authenticationv1.UserInfo{Username: user},
	}}
	for raw, tenant := range map[*runtime.RawExtension]*v1alpha1.Tenant{&request.OldObject: before, &request.Object: tenant} {
		if tenant == nil {
			continue
		}
		request.Name = tenant.Name
		tenant.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Tenant"))
		content, err := json.Marshal(tenant)
		if err != nil {
			panic(err)
		}
		raw.Raw = content
	}
	return request
}

func displayName(name string) func(*v1alpha1.Tenant) {
	return func(t *v1alpha1.Tenant) { t.Spec.DisplayName = name }
}

func annotated(key, value string) func(*v1alpha1.Tenant) {
	return func(t *v1alpha1.Tenant) {
		t.Annotations = reconcilers.MergeMaps(t.Annotations, map[string]string{key: value})
	}
}

func allowed(patches ...jsonpatch.Operation) admission.Response {
	return admission.Response{Patches: patches, AdmissionResponse: admissionv1.AdmissionResponse{Allowed: true}}
}

func TestDefaulting(t *testing.T) {
	const orderedBy = "/metadata/annotations/tenancy.example.com~1ordered-by"
	named := tenant.With(displayName("Acme Inc."))
	ordered := named.With(annotated(controller.OrderedByAnnotation, "ann"), annotated("theirs", "stays"))

	rtesting.AdmissionWebhookTests{
		"it has no display name": {
			Request: creates("ann", tenant),
			ExpectedResponse: allowed(
				jsonpatch.NewOperation("add", "/metadata/annotations", map[string]any{controller.OrderedByAnnotation: "ann"}),
				jsonpatch.NewOperation("add", "/spec/displayName", "acme"),
			),
		},
		"what this version does not know stays": {
			Request: withUnknownFields(creates("ann", tenant.With(annotated("theirs", "stays")))),
			ExpectedResponse: allowed(
				jsonpatch.NewOperation("add", orderedBy, "ann"),
				jsonpatch.NewOperation("add", "/spec/displayName", "acme"),
			),
		},
		"it is complete": {
			Request:          updates("ann", ordered, ordered.With(isolated)),
			ExpectedResponse: allowed(),
		},
		"somebody says that somebody else has ordered it": {
			Request:          creates("ann", named.With(annotated(controller.OrderedByAnnotation, "bob"))),
			ExpectedResponse: allowed(jsonpatch.NewOperation("replace", orderedBy, "ann")),
		},
		"somebody says so later": {
			Request:          updates("bob", ordered, ordered.With(annotated(controller.OrderedByAnnotation, "bob"))),
			ExpectedResponse: allowed(jsonpatch.NewOperation("replace", orderedBy, "ann")),
		},
		"somebody says that nobody has": {
			Request:          updates("bob", ordered, named.With(annotated("theirs", "stays"))),
			ExpectedResponse: allowed(jsonpatch.NewOperation("add", orderedBy, "ann")),
		},
		"it was there before the webhook": {
			Request: updates("bob", named, named.With(annotated(controller.OrderedByAnnotation, "bob"), annotated("theirs", "stays"))),
			ExpectedResponse: allowed(
				jsonpatch.NewOperation("remove", orderedBy, nil),
			),
		},
		"it cannot be read": {
			Request: with(updates("bob", named, named), func(r *admission.Request) { r.OldObject.Raw = []byte("{") }),
			ExpectedResponse: refused(metav1.Status{
				Code: http.StatusInternalServerError, Message: "unable to decode the old object: unexpected end of JSON input",
			}),
		},
	}.RunWithContext(t, scheme, func(
		_ *testing.T, ctx context.Context, _ *rtesting.AdmissionWebhookTestCase, _ reconcilers.Config,
	) (*admission.Webhook, error) {
		return controller.NewDefaulting().BuildWithContext(ctx)
	})
}

func with(request *admission.Request, changes ...func(*admission.Request)) *admission.Request {
	for _, change := range changes {
		change(request)
	}
	return request
}

// withUnknownFields makes a request one from a client that knows more than this operator.
func withUnknownFields(request *admission.Request) *admission.Request {
	text := string(request.Object.Raw)
	for known, unknown := range map[string]string{
		`"spec":{`:        `"spec":{"newer":{"deep":[1,{"a":null}]},`,
		`"defaultsRef":{`: `"defaultsRef":{"newer":1.50,`,
	} {
		text = strings.Replace(text, known, unknown, 1)
	}
	request.Object.Raw = []byte(text)
	return request
}

func refused(status metav1.Status) admission.Response {
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &status}}
}

func warned(warnings ...string) admission.Response {
	response := allowed()
	response.Warnings = warnings
	return response
}

func TestValidation(t *testing.T) {
	staffed := tenant.With(func(t *v1alpha1.Tenant) {
		t.Spec.Members = []v1alpha1.Member{{Kind: "User", Name: "ann", Role: "guest"}}
	})
	named := func(name string) func(*v1alpha1.Tenant) { return func(t *v1alpha1.Tenant) { t.Name = name } }
	negative := func(t *v1alpha1.Tenant) {
		t.Spec.Quota = corev1.ResourceList{
			"pods": resource.MustParse("-1"), "limits.cpu": resource.MustParse("2"), "requests.cpu": resource.MustParse("-500m"),
		}
	}
	nobody := "tenant acme has no members: nobody can work in its namespace"
	reserved := func(name string) metav1.StatusCause {
		return metav1.StatusCause{
			Type: metav1.CauseTypeFieldValueInvalid, Field: "metadata.name", Message: `Invalid value: "` + name + `": is reserved`,
		}
	}
	badQuota := []metav1.StatusCause{
		{Type: metav1.CauseTypeFieldValueInvalid, Field: "spec.quota[pods]", Message: `Invalid value: "-1": must not be negative`},
		{Type: metav1.CauseTypeFieldValueInvalid, Field: "spec.quota[requests.cpu]", Message: `Invalid value: "-500m": must not be negative`},
	}
	quotaText := `spec.quota[pods]: Invalid value: "-1": must not be negative, ` +
		`spec.quota[requests.cpu]: Invalid value: "-500m": must not be negative`

	rtesting.AdmissionWebhookTests{
		"nothing is wrong": {
			Request: creates("ann", staffed), ExpectedResponse: allowed(),
		},
		"it has no members": {
			Request: creates("ann", tenant), ExpectedResponse: warned(nobody),
		},
		"the name is Kubernetes' own": {
			Request:          creates("ann", staffed.With(named("kube-acme"))),
			ExpectedResponse: refused(invalid("kube-acme", `metadata.name: Invalid value: "kube-acme": is reserved`, reserved("kube-acme"))),
		},
		"the name is reserved by an option": {
			Request:          creates("ann", staffed.With(named("platform"))),
			ExpectedResponse: refused(invalid("platform", `metadata.name: Invalid value: "platform": is reserved`, reserved("platform"))),
		},
		"there is more than one mistake": {
			Request: creates("ann", staffed.With(named("default"), negative)),
			ExpectedResponse: refused(invalid("default",
				`[metadata.name: Invalid value: "default": is reserved, `+quotaText+`]`, append([]metav1.StatusCause{reserved("default")}, badQuota...)...)),
		},
		"a quota becomes negative": {
			Request:          updates("ann", staffed, staffed.With(negative)),
			ExpectedResponse: refused(invalid("acme", "["+quotaText+"]", badQuota...)),
		},
		"the last member leaves": {
			Request: updates("ann", staffed, tenant), ExpectedResponse: warned(nobody),
		},
		"what was wrong before is not held against the operator": {
			Request:          updates("tenant-operator", tenant.With(negative), tenant.With(negative, guarded)),
			ExpectedResponse: allowed(),
		},
		"the name was not reserved when it was given": {
			Request:          updates("ann", staffed.With(named("platform")), staffed.With(named("platform"), isolated)),
			ExpectedResponse: allowed(),
		},
		"it is being deleted": {
			Request:          updates("tenant-operator", staffed.With(terminating), staffed.With(terminating, negative)),
			ExpectedResponse: allowed(),
		},
		"it may be deleted": {
			Request: removes("ann", staffed.With(annotated(controller.ProtectedAnnotation, "false"))), ExpectedResponse: allowed(),
		},
		"it is protected": {
			Request: removes("ann", staffed.With(annotated(controller.ProtectedAnnotation, "true"))),
			ExpectedResponse: refused(metav1.Status{
				Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
				Message: "tenant acme is protected: to delete it, remove the annotation tenancy.example.com/protected",
			}),
		},
		"it was protected, and is being deleted": {
			Request:          removes("ann", staffed.With(annotated(controller.ProtectedAnnotation, "true"), terminating)),
			ExpectedResponse: allowed(),
		},
		"it cannot be compared": {
			Request: with(updates("bob", staffed, staffed), func(r *admission.Request) { r.OldObject.Raw = []byte("{") }),
			ExpectedResponse: refused(metav1.Status{
				Code: http.StatusInternalServerError, Message: "unable to decode the old object: unexpected end of JSON input",
			}),
		},
	}.RunWithContext(t, scheme, func(
		_ *testing.T, ctx context.Context, _ *rtesting.AdmissionWebhookTestCase, _ reconcilers.Config,
	) (*admission.Webhook, error) {
		return controller.NewValidation(controller.Options{ReservedNames: []string{"platform"}}).BuildWithContext(ctx)
	})
}

// invalid is the answer to a request for a tenant that is not as it has to be.
func invalid(name, problems string, causes ...metav1.StatusCause) metav1.Status {
	return metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
		Message: `Tenant.tenancy.example.com "` + name + `" is invalid: ` + problems,
		Details: &metav1.StatusDetails{Group: "tenancy.example.com", Kind: "Tenant", Name: name, Causes: causes},
	}
}

// served is a webhook server that notes what is to be served.
type served struct {
	webhook.Server
	hooks map[string]http.Handler
}

func (s *served) Register(path string, hook http.Handler) { s.hooks[path] = hook }

func TestSetupWebhooks(t *testing.T) {
	server := &served{hooks: map[string]http.Handler{}}
	if err := controller.SetupWebhooks(t.Context(), server, controller.Options{}); err != nil {
		t.Fatal(err)
	}
	for path, mutates := range map[string]bool{
		"/mutate-tenancy-example-com-v1alpha1-tenant":   true,
		"/validate-tenancy-example-com-v1alpha1-tenant": false,
	} {
		hook, ok := server.hooks[path].(*admission.Webhook)
		if !ok {
			t.Errorf("nothing is served at %s", path)
			continue
		}
		response := hook.Handle(t.Context(), *creates("ann", tenant))
		if !response.Allowed || (len(response.Patch) > 0) != mutates {
			t.Errorf("%s answers %v", path, response)
		}
	}
}
