package reconcilers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
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
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
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
	return webhooks.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &metav1.Status{Code: code, Message: message}}}
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

func TestWebhookValidates(t *testing.T) {
	validationTests{
		"empty": {node: &widgetAdmission{}, shallow: `AdmissionWebhookAdapter "WidgetAdmissionWebhookAdapter" must define Reconciler`},
		"named": {node: &widgetAdmission{Name: "my"}, shallow: `AdmissionWebhookAdapter "my" must define Reconciler`},
		"valid": {node: &widgetAdmission{Reconciler: widgetSequence{}}},
		"invalid": {
			node:      &widgetAdmission{Reconciler: &widgetSync{}},
			recursive: `AdmissionWebhookAdapter "WidgetAdmissionWebhookAdapter" must have a valid Reconciler: ` + invalidSync,
		},
	}.run(t)
	if _, err := (&widgetAdmission{}).BuildWithContext(t.Context()); err == nil {
		t.Error("an invalid webhook was built")
	}
	defer func() {
		if recover() == nil {
			t.Error("an invalid webhook was built without a context")
		}
	}()
	(&widgetAdmission{}).Build()
}

func TestWebhookPatchesWhatTheTreeChanged(t *testing.T) {
	label := func(_ context.Context, w *resources.Widget) error {
		w.Labels = reconcilers.MergeMaps(w.Labels, map[string]string{"added": "yes"})
		return nil
	}
	add := jsonpatch.NewOperation("add", "/metadata/labels/added", "yes")
	noLabels := strings.Replace(rawWidget, `, "labels": {"team": "red"}`, "", 1)
	webhookTests{
		"nothing": {
			rtesting.AdmissionWebhookTestCase{ExpectedResponse: admitted()},
			nil,
			func(context.Context, *resources.Widget) error { return nil },
		},
		"a label": {rtesting.AdmissionWebhookTestCase{ExpectedResponse: admitted(add)}, nil, label},
		"in an update": {
			rtesting.AdmissionWebhookTestCase{Request: admits(admissionv1.Update, rawWidget), ExpectedResponse: admitted(add)},
			nil,
			label,
		},
		"not a deletion": {
			rtesting.AdmissionWebhookTestCase{Request: admits(admissionv1.Delete, rawWidget), ExpectedResponse: admitted()},
			nil,
			label,
		},
		"the first label": {
			rtesting.AdmissionWebhookTestCase{
				Request:          admits(admissionv1.Create, noLabels),
				ExpectedResponse: admitted(jsonpatch.NewOperation("add", "/metadata/labels", map[string]any{"added": "yes"})),
			}, nil, label,
		},
		"a removal, beside members that the type does not know": {
			rtesting.AdmissionWebhookTestCase{ExpectedResponse: admitted(jsonpatch.NewOperation("remove", "/spec/fields/color", nil))},
			nil, func(_ context.Context, w *resources.Widget) error { delete(w.Spec.Fields, "color"); return nil },
		},
		"all the same after a halt": {
			rtesting.AdmissionWebhookTestCase{ExpectedResponse: admitted(add)},
			nil, func(ctx context.Context, w *resources.Widget) error {
				return errors.Join(label(ctx, w), reconcilers.ErrHaltSubReconcilers)
			},
		},
		"unless the tree made a patch itself": {
			rtesting.AdmissionWebhookTestCase{ExpectedResponse: admitted(jsonpatch.NewOperation("add", "/own", true))},
			nil, func(ctx context.Context, w *resources.Widget) error {
				reconcilers.RetrieveAdmissionResponse(ctx).Patches = []jsonpatch.Operation{jsonpatch.NewOperation("add", "/own", true)}
				return label(ctx, w)
			},
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

func TestWebhookRefuses(t *testing.T) {
	returning := func(err error) func(context.Context, *resources.Widget) error {
		return func(context.Context, *resources.Widget) error { return err }
	}
	invalid := apierrs.NewInvalid(resources.GroupVersion.WithKind("Widget").GroupKind(), "gadget", field.ErrorList{
		field.Invalid(field.NewPath("spec", "fields"), "x", "is wrong"),
	})
	status := invalid.Status()
	invalidResponse := webhooks.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &status}}
	webhookTests{
		"with a plain error": {
			rtesting.AdmissionWebhookTestCase{ExpectedResponse: turnedDown(http.StatusInternalServerError, "boom")},
			nil,
			returning(errBoom),
		},
		"with a quiet error": {
			rtesting.AdmissionWebhookTestCase{ExpectedResponse: turnedDown(http.StatusInternalServerError, errQuiet.Error())},
			nil,
			returning(errQuiet),
		},
		"with a durable error, which also halts": {
			rtesting.AdmissionWebhookTestCase{ExpectedResponse: turnedDown(http.StatusInternalServerError, reconcilers.ErrDurable.Error())},
			nil, returning(reconcilers.ErrDurable),
		},
		"an object that is no JSON": {
			rtesting.AdmissionWebhookTestCase{
				Request:          admits(admissionv1.Create, "{"),
				ExpectedResponse: turnedDown(http.StatusInternalServerError, "unexpected end of JSON input"),
			},
			nil, returning(nil),
		},
		"with the status of an API error": {rtesting.AdmissionWebhookTestCase{ExpectedResponse: invalidResponse}, nil, returning(invalid)},
		"with that of one that is wrapped too": {
			rtesting.AdmissionWebhookTestCase{ExpectedResponse: invalidResponse},
			nil,
			returning(fmt.Errorf("wrapped: %w", invalid)),
		},
		"by the response": {
			rtesting.AdmissionWebhookTestCase{ExpectedResponse: turnedDown(http.StatusTeapot, "no")},
			nil, func(ctx context.Context, _ *resources.Widget) error {
				response := reconcilers.RetrieveAdmissionResponse(ctx)
				response.Allowed, response.Result = false, &metav1.Status{Code: http.StatusTeapot, Message: "no"}
				return nil
			},
		},
		"with the result of the author beside an error": {
			rtesting.AdmissionWebhookTestCase{ExpectedResponse: turnedDown(http.StatusTeapot, "no")},
			nil, func(ctx context.Context, _ *resources.Widget) error {
				reconcilers.RetrieveAdmissionResponse(ctx).Result = &metav1.Status{Code: http.StatusTeapot, Message: "no"}
				return errBoom
			},
		},
		"without a patch": {
			rtesting.AdmissionWebhookTestCase{ExpectedResponse: turnedDown(http.StatusInternalServerError, "boom")},
			nil, func(_ context.Context, w *resources.Widget) error { w.Labels = nil; return errBoom },
		},
	}.run(t)
}

func TestWebhookContextAndOrder(t *testing.T) {
	type key struct{}
	var calls *trace
	httpRequest := &http.Request{URL: &url.URL{Path: "/widgets"}}
	webhook := func() *widgetAdmission {
		return &widgetAdmission{
			BeforeHandle: func(ctx context.Context, req webhooks.Request, resp *webhooks.Response) context.Context {
				calls.add("before %s %t %s", req.Operation, resp.Allowed, resp.UID)
				resp.Warnings = []string{"mind"}
				return context.WithValue(ctx, key{}, "before")
			},
			AfterHandle: func(ctx context.Context, _ webhooks.Request, resp *webhooks.Response) {
				calls.add("after %v %t", ctx.Value(key{}), resp.Allowed)
				resp.Warnings = append(resp.Warnings, "after")
			},
		}
	}
	sync := func(err error) func(context.Context, *resources.Widget) error {
		return func(ctx context.Context, w *resources.Widget) error {
			config, original := reconcilers.RetrieveConfigOrDie(ctx), reconcilers.RetrieveOriginalConfigOrDie(ctx)
			_, typed := reconcilers.RetrieveResourceType(ctx).(*resources.Widget)
			_, originallyTyped := reconcilers.RetrieveOriginalResourceType(ctx).(*resources.Widget)
			reconcilers.StashValue(ctx, "stash", "is there")
			calls.add("tree %s %s %s %t %t", ctx.Value(key{}), reconcilers.RetrieveAdmissionRequest(ctx).Operation,
				reconcilers.RetrieveRequest(ctx), typed && originallyTyped, !config.IsEmpty() && config == original)
			calls.add("of %s, called at %s", w.Name, reconcilers.RetrieveHTTPRequest(ctx).URL.Path)
			return err
		}
	}
	for name, test := range map[string]struct {
		operation admissionv1.Operation
		err       error
		expected  webhooks.Response
		calls     []string
	}{
		"create": {admissionv1.Create, nil, admitted(), []string{
			"before CREATE true request-uid", "tree before CREATE default/gadget true true", "of gadget, called at /widgets", "after before true",
		}},
		"delete, of the old object": {admissionv1.Delete, nil, admitted(), []string{
			"before DELETE true request-uid", "tree before DELETE default/gadget true true", "of gadget, called at /widgets", "after before true",
		}},
		"an error": {admissionv1.Create, errBoom, turnedDown(http.StatusInternalServerError, "boom"), []string{
			"before CREATE true request-uid", "tree before CREATE default/gadget true true", "of gadget, called at /widgets", "after before false",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			calls = &trace{}
			test.expected.Warnings = []string{"mind", "after"}
			webhookTests{"": {
				rtesting.AdmissionWebhookTestCase{Request: admits(test.operation, rawWidget), HTTPRequest: httpRequest, ExpectedResponse: test.expected},
				webhook(), sync(test.err),
			}}.run(t)
			calls.compare(t, test.calls)
		})
	}
}

// defaultedWidget is a resource with a default.
type defaultedWidget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		Color string `json:"color,omitempty"`
		Size  int    `json:"size,omitempty"`
	} `json:"spec,omitempty"`
}

func (w *defaultedWidget) DeepCopyObject() runtime.Object {
	out := *w
	w.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

func (w *defaultedWidget) Default(context.Context) error {
	switch w.Spec.Color {
	case "":
		w.Spec.Color = "white"
	case "none":
		return errBoom
	}
	return nil
}

func TestWebhookDefaultsInMemory(t *testing.T) {
	const bare, colored, bad = `{"spec":{"newer":1}}`, `{"spec":{"color":"red"}}`, `{"spec":{"color":"none"}}`
	raw := func(text string) *webhooks.Request { return admits(admissionv1.Create, text) }
	for name, test := range map[string]struct {
		raw      string
		size     int
		expected webhooks.Response
		seen     string
	}{
		"defaults alone are no patch":       {bare, 0, admitted(), "white"},
		"defaults do not come with a patch": {bare, 3, admitted(jsonpatch.NewOperation("add", "/spec/size", json.Number("3"))), "white"},
		"what is set stays":                 {colored, 0, admitted(), "red"},
		"an error":                          {bad, 3, turnedDown(http.StatusInternalServerError, "boom"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			seen := ""
			test.expected.Patches = asSent(t, test.expected.Patches)
			testCase := rtesting.AdmissionWebhookTestCase{Request: raw(test.raw), ExpectedResponse: test.expected}
			testCase.RunWithContext(t, widgetScheme, func(
				_ *testing.T, ctx context.Context, _ *rtesting.AdmissionWebhookTestCase, c reconcilers.Config,
			) (*webhooks.Webhook, error) {
				return (&reconcilers.AdmissionWebhookAdapter[*defaultedWidget]{
					Config: c,
					Reconciler: &reconcilers.SyncReconciler[*defaultedWidget]{Sync: func(_ context.Context, w *defaultedWidget) error {
						seen, w.Spec.Size = w.Spec.Color, test.size
						return nil
					}},
				}).BuildWithContext(ctx)
			})
			if seen != test.seen {
				t.Errorf("the tree saw the color %q, expected %q", seen, test.seen)
			}
		})
	}
}

// asSent are operations as they look when they were read from JSON, as those of a webhook are.
func asSent(t *testing.T, operations []jsonpatch.Operation) (out []jsonpatch.Operation) {
	t.Helper()
	data, err := json.Marshal(operations)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
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
			logger := funcr.New(func(_, args string) { logged = logged || strings.Contains(args, "reconcile error") }, funcr.Options{})
			webhook := &widgetAdmission{
				Reconciler: &hooks{reconcile: func(context.Context, *resources.Widget) (reconcilers.Result, error) { return nothing, test.err }},
				Config:     expectWidget().Config(),
			}
			ctx := logr.NewContext(testContext(t, webhook.Config), logger)
			webhook.Handle(ctx, *admits(admissionv1.Create, rawWidget))
			if logged != test.logged {
				t.Errorf("logged %t", logged)
			}
		})
	}
}
