package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	evanphx "github.com/evanphx/json-patch/v5"
	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
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

// The patch of a list is compared by what becomes of the object: there are several ways to say it.
func TestWebhookKeepsUnknownMembersOfListItems(t *testing.T) {
	const (
		a, b    = `{"name":"a","image":"i:1","newer":{"in":"a"}}`, `{"name":"b","image":"i:1","newer":{"in":"b"},"resources":{}}`
		changed = `{"name":"b","image":"i:2","newer":{"in":"b"},"resources":{}}`
		pod     = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"newer":[1],"containers":[%s]},"status":{"newer":1}}`
	)
	added := `{"name":"c","image":"i:3","resources":{}}`
	change := func(p *corev1.Pod) { p.Spec.Containers[len(p.Spec.Containers)-1].Image = "i:2" }
	remove := func(p *corev1.Pod) { p.Spec.Containers = p.Spec.Containers[1:] }
	for name, test := range map[string]struct {
		tree     []func(*corev1.Pod)
		expected string
	}{
		"a change":               {[]func(*corev1.Pod){change}, a + "," + changed},
		"a removal":              {[]func(*corev1.Pod){remove}, b},
		"a removal and a change": {[]func(*corev1.Pod){change, remove}, changed},
		"an addition in front": {[]func(*corev1.Pod){func(p *corev1.Pod) {
			p.Spec.Containers = append([]corev1.Container{{Name: "c", Image: "i:3"}}, p.Spec.Containers...)
		}}, added + "," + a + "," + b},
		"another order": {[]func(*corev1.Pod){func(p *corev1.Pod) { slices.Reverse(p.Spec.Containers) }}, b + "," + a},
	} {
		t.Run(name, func(t *testing.T) {
			raw := fmt.Sprintf(pod, a+","+b)
			webhook := &reconcilers.AdmissionWebhookAdapter[*corev1.Pod]{
				Config: expectWidget().Config(),
				Reconciler: &reconcilers.SyncReconciler[*corev1.Pod]{Sync: func(_ context.Context, p *corev1.Pod) error {
					for _, f := range test.tree {
						f(p)
					}
					return nil
				}},
			}
			response := webhook.Handle(testContext(t, webhook.Config), *admits(admissionv1.Create, raw))
			if err := response.Complete(*admits(admissionv1.Create, raw)); err != nil {
				t.Fatal(err)
			}
			patch, err := evanphx.DecodePatch(response.Patch)
			if err != nil {
				t.Fatal(err)
			}
			patched, err := patch.Apply([]byte(raw))
			if err != nil {
				t.Fatalf("%s: %v", response.Patch, err)
			}
			if expected := fmt.Sprintf(pod, test.expected); !evanphx.Equal([]byte(expected), patched) {
				t.Errorf("expected\n%s\nactual\n%s\nby %s", expected, patched, response.Patch)
			}
		})
	}
}

func TestWebhookLogsErrorsUnlessTheyAreQuietOrMeant(t *testing.T) {
	for name, test := range map[string]struct {
		err    error
		logged bool
	}{
		"an error":       {errBoom, true},
		"a quiet error":  {errQuiet, false},
		"a halt":         {reconcilers.ErrHaltSubReconcilers, false},
		"no error":       {nil, false},
		"a refusal":      {reconcilers.Deny("no"), false},
		"a quiet joined": {errors.Join(errBoom, reconcilers.ErrQuiet), false},
	} {
		t.Run(name, func(t *testing.T) {
			logged := false
			logger := funcr.New(
				func(_, args string) { logged = logged || strings.Contains(args, "reconcile error") }, funcr.Options{},
			)
			webhook := &widgetAdmission{
				Reconciler: &hooks{
					reconcile: func(context.Context, *resources.Widget) (reconcilers.Result, error) {
						return nothing, test.err
					},
				},
				Config: expectWidget().Config(),
			}
			ctx := logr.NewContext(testContext(t, webhook.Config), logger)
			webhook.Handle(ctx, *admits(admissionv1.Create, rawWidget))
			if logged != test.logged {
				t.Errorf("logged %t", logged)
			}
		})
	}
}
