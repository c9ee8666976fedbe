package testing_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"testing"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/stash"
	rtesting "github.com/espalier-dev/espalier/testing"
	rtime "github.com/espalier-dev/espalier/time"
	"github.com/espalier-dev/espalier/validation"
)

type (
	webhookCase  = rtesting.AdmissionWebhookTestCase
	webhookTests = rtesting.AdmissionWebhookTests
	handle       = func(ctx context.Context, c reconcilers.Config, req admission.Request) admission.Response
)

// asked is a request to admit the object of settings.
func asked() *admission.Request {
	raw, err := json.Marshal(settings)
	if err != nil {
		panic(err)
	}
	return &admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: "one", Namespace: "default", Name: "settings", Object: runtime.RawExtension{Raw: raw},
	}}
}

var allowed = admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Allowed: true}}

// answers is the metadata of a case whose webhook answers by f.
func answers(f handle) map[string]any { return map[string]any{"handle": f} }

func allows(context.Context, reconcilers.Config, admission.Request) admission.Response {
	return admission.Allowed("")
}

func newWebhook(
	_ *testing.T, _ context.Context, tc *webhookCase, c reconcilers.Config,
) (*admission.Webhook, error) {
	f, ok := tc.Metadata["handle"].(handle)
	if !ok {
		return nil, errors.New("no handler")
	}
	return &admission.Webhook{Handler: admission.HandlerFunc(func(ctx context.Context, req admission.Request) admission.Response {
		return f(ctx, c, req)
	})}, nil
}

type pathKey struct{}

func TestAdmissionWebhookTests(t *testing.T) {
	now := time.Unix(1000, 0)
	mine := asked()
	webhookTests{
		"allowed": {Request: asked(), ExpectedResponse: allowed, Metadata: answers(allows)},
		"denied": {
			Request:          asked(),
			ExpectedResponse: admission.Denied("no"),
			Metadata: answers(func(context.Context, reconcilers.Config, admission.Request) admission.Response {
				return admission.Denied("no")
			}),
		},
		"patched": {
			Request: mine,
			ExpectedResponse: admission.Response{
				Patches: []jsonpatch.Operation{
					// The Go types of the values do not matter.
					{Operation: "add", Path: "/data/n", Value: map[string]string{"a": "b"}},
					{Operation: "remove", Path: "/data/k"},
				},
				AdmissionResponse: allowed.AdmissionResponse,
			},
			Metadata: answers(func(_ context.Context, _ reconcilers.Config, req admission.Request) admission.Response {
				req.Object.Raw[0] = 'x'
				return admission.Patched("",
					jsonpatch.NewOperation("add", "/data/n", map[string]any{"a": "b"}), jsonpatch.NewOperation("remove", "/data/k", nil))
			}),
			Verify: func(t *testing.T, response admission.Response) {
				if mine.Object.Raw[0] != '{' {
					t.Error("the handler changed the request of the table")
				}
				if response.UID != "one" || len(response.Patches) != 2 {
					t.Errorf("the response is not completed: %#v", response)
				}
			},
		},
		"patched in bytes": {
			Request: asked(),
			ExpectedResponse: admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{
				Allowed: true, Patch: []byte(`[{"op":"remove","path":"/data/k"}]`),
			}},
			Metadata: answers(func(context.Context, reconcilers.Config, admission.Request) admission.Response {
				return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{
					Allowed: true, Patch: []byte(`[{"path":"/data/k","op":"remove"}]`),
				}}
			}),
		},
		"panics": {
			Request:       asked(),
			ShouldPanic:   true,
			ExpectUpdates: []client.Object{changed},
			GivenObjects:  []client.Object{settings},
			Verify:        func(t *testing.T, _ admission.Response) { t.Error("there is no response to verify") },
			Metadata: answers(func(ctx context.Context, c reconcilers.Config, _ admission.Request) admission.Response {
				if err := c.Update(ctx, changed.Object()); err != nil {
					return admission.Errored(http.StatusInternalServerError, err)
				}
				panic("expected")
			}),
		},
		"recovers": {
			Request:          asked(),
			ExpectedResponse: admission.Errored(http.StatusInternalServerError, errors.New("panic: oops [recovered]")),
			Metadata: answers(func(context.Context, reconcilers.Config, admission.Request) admission.Response {
				panic("oops")
			}),
		},
		"writes": {
			Request:           asked(),
			ExpectedResponse:  allowed,
			GivenObjects:      []client.Object{settings, pod},
			AdditionalConfigs: map[string]rtesting.ExpectConfig{"elsewhere": {ExpectCreates: []client.Object{settings}}},
			ExpectEvents:      []rtesting.Event{event},
			ExpectTracks:      []rtesting.TrackRequest{track},
			ExpectUpdates:     []client.Object{changed},
			ExpectOrder: []string{
				"track ConfigMap default/settings", "event Seen ConfigMap default/settings", "update ConfigMap default/settings",
			},
			Metadata: answers(func(ctx context.Context, c reconcilers.Config, _ admission.Request) admission.Response {
				elsewhere := reconcilers.RetrieveAdditionalConfigs(ctx)["elsewhere"]
				if err := errors.Join(
					kinds["Track"].do(ctx, c), kinds["Event"].do(ctx, c), kinds["Update"].do(ctx, c),
					elsewhere.Create(ctx, settings.Object()),
				); err != nil {
					return admission.Errored(http.StatusInternalServerError, err)
				}
				return admission.Allowed("")
			}),
		},
		"prepared and cleaned up": {
			Now:              now,
			ExpectedResponse: allowed,
			Prepare: func(_ *testing.T, ctx context.Context, tc *webhookCase) (context.Context, error) {
				tc.Request = asked()
				tc.Metadata["handle"] = handle(func(ctx context.Context, _ reconcilers.Config, _ admission.Request) admission.Response {
					if ctx.Value(preparedKey{}) == nil || !rtime.RetrieveNow(ctx).Equal(now) || !validation.IsRecursive(ctx) {
						return admission.Denied("the context is not that of the case")
					}
					stash.StoreValue(ctx, "a", "b")
					return admission.Allowed("")
				})
				tc.CleanUp = func(_ *testing.T, ctx context.Context, _ *webhookCase) error {
					if ctx.Value(preparedKey{}) == nil || stash.RetrieveValue(ctx, "a") != "b" {
						return errors.New("the context is not that of the case")
					}
					return nil
				}
				return context.WithValue(ctx, preparedKey{}, true), nil
			},
		},
		"skipped": {Skip: true},
	}.RunWithContext(t, scheme, newWebhook)
}

func TestAdmissionWebhooksGetTheHTTPRequest(t *testing.T) {
	webhook := &admission.Webhook{
		WithContextFunc: func(ctx context.Context, r *http.Request) context.Context {
			return context.WithValue(ctx, pathKey{}, r.URL.Path)
		},
		Handler: admission.HandlerFunc(func(ctx context.Context, _ admission.Request) admission.Response {
			return admission.Allowed(ctx.Value(pathKey{}).(string))
		}),
	}
	factory := func(*testing.T, *webhookCase, reconcilers.Config) *admission.Webhook { return webhook }
	webhookTests{"default": {Request: asked(), ExpectedResponse: admission.Allowed("/")}}.Run(t, scheme, factory)
	rtesting.AdmissionWebhookTestSuite{{
		Name: "given", Request: asked(), ExpectedResponse: admission.Allowed("/admit"),
		HTTPRequest: &http.Request{URL: &url.URL{Path: "/admit"}},
	}}.Run(t, scheme, factory)
	(&webhookCase{Request: asked(), ExpectedResponse: admission.Allowed("/")}).Run(t, scheme, factory)
}

// A webhook that several cases share recovers again after a case in which it must not.
func TestAWebhookThatMustPanicIsLeftAsItWas(t *testing.T) {
	webhook := (&admission.Webhook{Handler: admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
		panic("expected")
	})}).WithRecoverPanic(true)
	webhookTests{"panics": {Request: asked(), ShouldPanic: true}}.Run(t, scheme,
		func(*testing.T, *webhookCase, reconcilers.Config) *admission.Webhook { return webhook })
	if webhook.RecoverPanic == nil || !*webhook.RecoverPanic {
		t.Error("the webhook does not recover any more")
	}
}

func asks(tc webhookCase) func(t *testing.T) {
	return func(t *testing.T) {
		if tc.Metadata == nil {
			tc.Metadata = answers(allows)
		}
		webhookTests{"case": tc}.RunWithContext(t, scheme, newWebhook)
	}
}

func init() {
	for name, failing := range map[string]scenario{
		"response": {
			run:  asks(webhookCase{Request: asked(), ExpectedResponse: admission.Denied("no")}),
			want: []string{"ExpectedResponse differs (-expected, +actual):\n"},
		},
		"operations": {
			run: asks(webhookCase{
				Request:          asked(),
				ExpectedResponse: admission.Patched("", jsonpatch.NewOperation("add", "/a", 1)),
				Metadata: answers(func(context.Context, reconcilers.Config, admission.Request) admission.Response {
					return admission.Patched("", jsonpatch.NewOperation("add", "/a", 2))
				}),
			}),
			want: []string{"ExpectedResponse differs (-expected, +actual):\n", "int64(1)", "int64(2)"},
		},
		"webhook does not panic": {
			run:      asks(webhookCase{Request: asked(), ShouldPanic: true}),
			want:     []string{"expected Handle() to panic"},
			unwanted: []string{"ExpectedResponse"},
		},
		"webhook fails": {
			run:  asks(webhookCase{Request: asked(), Metadata: map[string]any{"handle": nil}}),
			want: []string{"Webhook factory failed: no handler"},
		},
		"no webhook": {
			run: func(t *testing.T) {
				webhookTests{"case": {Request: asked()}}.Run(t, scheme,
					func(*testing.T, *webhookCase, reconcilers.Config) *admission.Webhook { return nil })
			},
			want: []string{"Webhook factory returned no webhook with a handler"},
		},
		"request missing": {run: asks(webhookCase{}), want: []string{"Request field is required"}},
		"webhook prepare": {
			run: asks(webhookCase{
				Request: asked(), ExpectedResponse: admission.Denied("no"),
				Prepare: func(*testing.T, context.Context, *webhookCase) (context.Context, error) { return nil, errOops },
			}),
			want:     []string{"error during prepare: oops"},
			unwanted: []string{"ExpectedResponse"},
		},
		"webhook clean up": {
			run: asks(webhookCase{
				Request: asked(), ExpectedResponse: allowed,
				CleanUp: func(*testing.T, context.Context, *webhookCase) error { return errOops },
			}),
			want: []string{"error during clean up: oops"},
		},
		"webhook verify": {
			run: asks(webhookCase{
				Request: asked(), ExpectedResponse: allowed,
				Verify: func(t *testing.T, response admission.Response) { t.Errorf("verified %s", response.UID) },
			}),
			want: []string{"verified one"},
		},
		"webhook writes": {
			run: asks(webhookCase{
				Request: asked(), ExpectedResponse: allowed, GivenObjects: []client.Object{settings},
				AdditionalConfigs: map[string]rtesting.ExpectConfig{"elsewhere": {ExpectUpdates: []client.Object{changed}}},
				Metadata: answers(func(ctx context.Context, c reconcilers.Config, _ admission.Request) admission.Response {
					if err := c.Delete(ctx, settings.Object()); err != nil {
						return admission.Errored(http.StatusInternalServerError, err)
					}
					return admission.Allowed("")
				}),
			}),
			want: []string{"Unexpected Delete observed: ", `ExpectUpdates[0] not observed for config "elsewhere": `},
		},
		"webhook focus": {
			run: func(t *testing.T) {
				rtesting.AdmissionWebhookTestSuite{
					{Name: "first", Focus: true, Request: asked(), ExpectedResponse: allowed, Metadata: answers(allows)},
					{Name: "second"},
				}.RunWithContext(t, scheme, newWebhook)
			},
			want:     []string{"PASS: " + "%s/first", "1 tests out of 2 are still focused, so the test suite fails"},
			unwanted: []string{"/second"},
		},
	} {
		scenarios[name] = failing
	}
}
