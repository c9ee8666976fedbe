package reconcilers_test

import (
	"context"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	webhooks "sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

type widgetAdmission = reconcilers.AdmissionWebhookAdapter[*resources.Widget]

const rawWidget = `{
	"apiVersion": "test.espalier.dev/v1", "kind": "Widget",
	"metadata": {"namespace": "default", "name": "gadget", "labels": {"team": "red"}},
	"spec": {"fields": {"color": "blue", "size": "big"}, "newer": {"kept": true}}, "newest": [1, 2]
}`

// admits is a request of an operation about the raw object.
func admits(operation admissionv1.Operation, raw string) *webhooks.Request {
	request := &webhooks.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: "request-uid", Operation: operation, Namespace: widgetKey.Namespace, Name: widgetKey.Name,
	}}
	if operation == admissionv1.Delete {
		request.OldObject.Raw = []byte(raw)
	} else {
		request.Object.Raw = []byte(raw)
	}
	return request
}

func admitted(patches ...jsonpatch.Operation) webhooks.Response {
	return webhooks.Response{AdmissionResponse: admissionv1.AdmissionResponse{Allowed: true}, Patches: patches}
}

func turnedDown(code int32, message string) webhooks.Response {
	return webhooks.Response{
		AdmissionResponse: admissionv1.AdmissionResponse{Result: &metav1.Status{Code: code, Message: message}},
	}
}

type webhookTest struct {
	rtesting.AdmissionWebhookTestCase
	webhook *widgetAdmission
	sync    func(context.Context, *resources.Widget) error
}

type webhookTests map[string]webhookTest

func (tests webhookTests) run(t *testing.T) {
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.Request == nil {
				test.Request = admits(admissionv1.Create, rawWidget)
			}
			webhook := test.webhook
			if webhook == nil {
				webhook = &widgetAdmission{}
			}
			webhook.Reconciler = &widgetSync{Sync: test.sync}
			test.RunWithContext(t, widgetScheme, func(
				_ *testing.T, ctx context.Context, _ *rtesting.AdmissionWebhookTestCase, c reconcilers.Config,
			) (*webhooks.Webhook, error) {
				webhook.Config = c
				return webhook.BuildWithContext(ctx)
			})
		})
	}
}

func TestWebhookPatchesWhatTheTreeChanged(t *testing.T) {
	label := func(_ context.Context, w *resources.Widget) error {
		w.Labels = reconcilers.MergeMaps(w.Labels, map[string]string{"added": "yes"})
		return nil
	}
	add := jsonpatch.NewOperation("add", "/metadata/labels/added", "yes")
	noLabels := strings.Replace(rawWidget, `, "labels": {"team": "red"}`, "", 1)
	webhookTests{
		"a label": {rtesting.AdmissionWebhookTestCase{ExpectedResponse: admitted(add)}, nil, label},
		"in an update": {
			rtesting.AdmissionWebhookTestCase{
				Request:          admits(admissionv1.Update, rawWidget),
				ExpectedResponse: admitted(add),
			},
			nil,
			label,
		},
		"the first label": {
			rtesting.AdmissionWebhookTestCase{
				Request: admits(admissionv1.Create, noLabels),
				ExpectedResponse: admitted(
					jsonpatch.NewOperation("add", "/metadata/labels", map[string]any{"added": "yes"}),
				),
			}, nil, label,
		},
		"a removal, beside members that the type does not know": {
			rtesting.AdmissionWebhookTestCase{
				ExpectedResponse: admitted(jsonpatch.NewOperation("remove", "/spec/fields/color", nil)),
			},
			nil, func(_ context.Context, w *resources.Widget) error { delete(w.Spec.Fields, "color"); return nil },
		},
	}.run(t)
}
