package testing

import (
	"context"
	"net/http"
	"net/url"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/stash"
	"github.com/espalier-dev/espalier/testing/internal/words"
	"github.com/espalier-dev/espalier/validation"
)

// AdmissionWebhookTestCase is one request to an admission webhook: the given objects, the request, and the
// expectations. All writes of the webhook must be expected.
type AdmissionWebhookTestCase struct {
	// Name of the subtest. In a map of cases the key takes its place.
	Name string
	// Focus runs only this case and others with a focus. The suite then fails in any case.
	Focus bool
	// Skip skips this case.
	Skip bool
	// Metadata is for the factory and for Prepare. The harness ignores it.
	Metadata map[string]interface{}

	// Request is the request to the webhook. Required; Prepare may set it.
	Request *admission.Request
	// HTTPRequest is the HTTP request with it, for the WithContextFunc of the webhook. Default: a request for the path
	// /.
	HTTPRequest *http.Request

	// The given state: the fields of ExpectConfig of these names.

	WithReactors           []ReactionFunc
	WithClientBuilder      func(*fake.ClientBuilder) *fake.ClientBuilder
	UseFake                bool
	WithoutNamespaces      bool
	StatusSubResourceTypes []client.Object
	GivenObjects           []client.Object
	APIGivenObjects        []client.Object
	GivenAPIResources      []*metav1.APIResourceList
	GivenIndexes           []Index
	GivenTracks            []TrackRequest

	// The expectations: the fields of ExpectConfig of these names.

	ExpectTracks            []TrackRequest
	ExpectEvents            []Event
	ExpectApplies           []ApplyRef
	ExpectCreates           []client.Object
	ExpectUpdates           []client.Object
	ExpectPatches           []PatchRef
	ExpectDeletes           []DeleteRef
	ExpectDeleteCollections []DeleteCollectionRef
	ExpectStatusUpdates     []client.Object
	ExpectStatusPatches     []PatchRef
	ExpectStatusApplies     []ApplyRef

	// ShouldPanic says that the handler must panic. The webhook does not recover from it then, and the response is not
	// compared.
	ShouldPanic bool
	// ExpectedResponse is the response. It is completed as the webhook does it, with the UID of the request, the status
	// code 200, and the bytes of its patches.
	ExpectedResponse admission.Response

	// Prepare runs first. It may change the case. The context that it returns, unless nil, replaces the context of the
	// case.
	Prepare func(t *testing.T, ctx context.Context, tc *AdmissionWebhookTestCase) (context.Context, error)
	// CleanUp runs last, with the context of Prepare, also if the case failed.
	CleanUp func(t *testing.T, ctx context.Context, tc *AdmissionWebhookTestCase) error
	// Now is the time of the request; zero is the time the test runs.
	Now time.Time
	// Differ compares; nil is DefaultDiffer.
	Differ Differ

	// AdditionalConfigs are configs for other clusters or identities, by the name under which
	// reconcilers.RetrieveAdditionalConfigs has them. Unset Schemes and Differs are set to those of the case.
	AdditionalConfigs map[string]ExpectConfig
	// Verify checks the response further. It is not called for a handler that must panic.
	Verify VerifyResponseFunc
	// Server runs the case against a real API server, see ExpectConfig.Server. The objects of the case are deleted
	// there at its end. Nil runs it in memory. Prepare may set it.
	Server client.WithWatch
	// ExpectOrder is the order of all writes, see ExpectConfig.ExpectOrder; nil for any.
	ExpectOrder []string

	mark mark
}

// VerifyResponseFunc checks the response of a webhook where the fields of a test case are not enough.
type VerifyResponseFunc func(t *testing.T, response admission.Response)

// AdmissionWebhookTests are cases by name. They run in no particular order.
type AdmissionWebhookTests map[string]AdmissionWebhookTestCase

// AdmissionWebhookTestSuite are cases that run in their order.
type AdmissionWebhookTestSuite []AdmissionWebhookTestCase

// AdmissionWebhookFactory returns the webhook to test.
//
// Deprecated: use AdmissionWebhookFactoryWithContext.
type AdmissionWebhookFactory func(t *testing.T, wtc *AdmissionWebhookTestCase, c reconcilers.Config) *admission.Webhook

// AdmissionWebhookFactoryWithContext returns the webhook to test, which works with c. It is called once per case, after
// Prepare. The context requests recursive validation: a webhook that is built with it is validated with all nested
// reconcilers. An error ends the case.
type AdmissionWebhookFactoryWithContext func(
	t *testing.T, ctx context.Context, wtc *AdmissionWebhookTestCase, c reconcilers.Config,
) (*admission.Webhook, error)

// withContext returns the factory as one that takes a context.
func (f AdmissionWebhookFactory) withContext() AdmissionWebhookFactoryWithContext {
	return func(
		t *testing.T, _ context.Context, wtc *AdmissionWebhookTestCase, c reconcilers.Config,
	) (*admission.Webhook, error) {
		return f(t, wtc, c), nil
	}
}

// Run runs the cases as subtests.
//
// Deprecated: use RunWithContext.
func (wt AdmissionWebhookTests) Run(t *testing.T, scheme *runtime.Scheme, factory AdmissionWebhookFactory) {
	t.Helper()
	wt.RunWithContext(t, scheme, factory.withContext())
}

// RunWithContext runs the cases as subtests.
func (wt AdmissionWebhookTests) RunWithContext(
	t *testing.T, scheme *runtime.Scheme, factory AdmissionWebhookFactoryWithContext,
) {
	t.Helper()
	runTests(t, wt, func(t *testing.T, tc *AdmissionWebhookTestCase) {
		t.Helper()
		tc.RunWithContext(t, scheme, factory)
	})
}

// Run runs the cases as subtests.
//
// Deprecated: use RunWithContext.
func (ts AdmissionWebhookTestSuite) Run(t *testing.T, scheme *runtime.Scheme, factory AdmissionWebhookFactory) {
	t.Helper()
	ts.RunWithContext(t, scheme, factory.withContext())
}

// RunWithContext runs the cases as subtests.
func (ts AdmissionWebhookTestSuite) RunWithContext(
	t *testing.T, scheme *runtime.Scheme, factory AdmissionWebhookFactoryWithContext,
) {
	t.Helper()
	runSuite(t, ts, func(t *testing.T, tc *AdmissionWebhookTestCase) {
		t.Helper()
		tc.RunWithContext(t, scheme, factory)
	})
}

// Run runs the case.
//
// Deprecated: use RunWithContext.
func (tc *AdmissionWebhookTestCase) Run(t *testing.T, scheme *runtime.Scheme, factory AdmissionWebhookFactory) {
	t.Helper()
	tc.RunWithContext(t, scheme, factory.withContext())
}

// RunWithContext runs the case.
func (tc *AdmissionWebhookTestCase) RunWithContext(
	t *testing.T, scheme *runtime.Scheme, factory AdmissionWebhookFactoryWithContext,
) {
	t.Helper()
	defer words.FailOnPanic(t)
	run := begin(t, tc, scheme, stash.WithContext, validation.WithRecursive)
	defer run.end(t)
	run.check(t)
	if tc.HTTPRequest == nil {
		tc.HTTPRequest = &http.Request{URL: &url.URL{Path: "/"}}
	}
	ctx := run.stashAdditional(run.ctx)
	webhook, err := factory(t, ctx, tc, run.expect.Config())
	if err != nil {
		t.Fatalf("Webhook factory failed: %s", err)
	}
	if webhook == nil || webhook.Handler == nil {
		t.Fatal("Webhook factory returned no webhook with a handler")
	}
	if tc.Request == nil {
		t.Fatal("Request field is required")
	}
	tc.handle(t, ctx, run.expect, webhook)
	run.assert(t)
}

func (tc *AdmissionWebhookTestCase) row() row {
	return row{
		mark: &tc.mark, name: &tc.Name, metadata: &tc.Metadata, now: &tc.Now, focus: tc.Focus, skip: tc.Skip,
		of: tc, builder: tc.WithClientBuilder,
		additional: tc.AdditionalConfigs, prepare: preparing(tc, tc.Prepare), cleanUp: cleaning(tc, tc.CleanUp),
	}
}

// handle calls the webhook once and asserts its response.
func (tc *AdmissionWebhookTestCase) handle(
	t *testing.T, ctx context.Context, c *ExpectConfig, webhook *admission.Webhook,
) {
	t.Helper()
	// The handler may change the request. The expected response is completed for the unchanged one.
	asked := admission.Request{AdmissionRequest: *tc.Request.DeepCopy()}
	if webhook.WithContextFunc != nil {
		ctx = webhook.WithContextFunc(ctx, tc.HTTPRequest)
	}
	if tc.ShouldPanic {
		tc.mustPanic(t, ctx, webhook, asked)
		return
	}
	response := webhook.Handle(ctx, asked)

	expected := admission.Response{
		Patches: tc.ExpectedResponse.Patches, AdmissionResponse: *tc.ExpectedResponse.DeepCopy(),
	}
	if err := expected.Complete(*tc.Request); err != nil {
		t.Fatalf("ExpectedResponse cannot be completed: %s", err)
	}
	tc.assertResponse(t, c, expected, response)
	if tc.Verify != nil {
		tc.Verify(t, response)
	}
}

// mustPanic calls a webhook that must panic, without its recovery from panics.
func (tc *AdmissionWebhookTestCase) mustPanic(
	t *testing.T, ctx context.Context, webhook *admission.Webhook, asked admission.Request,
) {
	t.Helper()
	recovers := webhook.RecoverPanic
	defer func() { webhook.RecoverPanic = recovers }()
	defer expectPanic(t, "Handle()")
	webhook.RecoverPanic = new(false)
	webhook.Handle(ctx, asked)
}
