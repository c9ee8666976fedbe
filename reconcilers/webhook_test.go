package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// gauge is what the webhooks of these tests are about: it has defaults, optional structs and lists.
type gauge struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Unit              string      `json:"unit,omitempty"`
	Dial              *gaugeDial  `json:"dial,omitempty"`
	Parts             []gaugePart `json:"parts,omitempty"`
}

type gaugeDial struct {
	Color string `json:"color,omitempty"`
	Size  int    `json:"size,omitempty"`
}

type gaugePart struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels,omitempty"`
	Unit   string            `json:"unit,omitempty"`
}

func (g *gauge) DeepCopyObject() runtime.Object { return copyByJSON(g, &gauge{}) }

func (g *gauge) Default(context.Context) error {
	switch g.Unit {
	case "":
		g.Unit = "m"
	case "furlong":
		return errBoom
	}
	if g.Dial == nil {
		g.Dial = &gaugeDial{Color: "white"}
	}
	for i := range g.Parts {
		if g.Parts[i].Unit == "" {
			g.Parts[i].Unit = g.Unit
		}
	}
	return nil
}

type (
	gaugeHook = reconcilers.AdmissionWebhookAdapter[*gauge]
	gaugeSync = reconcilers.SyncReconciler[*gauge]
)

// gaugeTree returns a webhook that runs a function.
func gaugeTree(sync func(ctx context.Context, g *gauge) error) *gaugeHook {
	return &gaugeHook{Reconciler: &gaugeSync{Name: "Node", Sync: sync}}
}

const gaugeHead = `"apiVersion":"test.espalier.dev/v1","kind":"gauge","metadata":{"namespace":"default","name":"gadget"}`

// gaugeRequest is a request about a gauge, given as the members of its JSON that follow gaugeHead.
func gaugeRequest(operation admissionv1.Operation, members ...string) ctrladmission.Request {
	raw := runtime.RawExtension{Raw: []byte("{" + strings.Join(append([]string{gaugeHead}, members...), ",") + "}")}
	request := ctrladmission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID:       "request-uid",
		Kind:      metav1.GroupVersionKind{Group: "test.espalier.dev", Version: "v1", Kind: "gauge"},
		Resource:  metav1.GroupVersionResource{Group: "test.espalier.dev", Version: "v1", Resource: "gauges"},
		Namespace: "default",
		Name:      "gadget",
		Operation: operation,
	}}
	if operation == admissionv1.Delete {
		request.OldObject = raw
	} else {
		request.Object = raw
	}
	return request
}

// handle lets a webhook handle a request, and returns what it answers and logs.
func handle(t *testing.T, handler ctrladmission.Handler, req ctrladmission.Request) (ctrladmission.Response, string) {
	t.Helper()
	var heard strings.Builder
	logger := funcr.New(func(prefix, args string) { fmt.Fprintln(&heard, prefix, args) }, funcr.Options{Verbosity: 2})
	return handler.Handle(logr.NewContext(t.Context(), logger), req), heard.String()
}

func allowed(patches ...jsonpatch.JsonPatchOperation) ctrladmission.Response {
	return ctrladmission.Response{
		Patches:           patches,
		AdmissionResponse: admissionv1.AdmissionResponse{UID: "request-uid", Allowed: true},
	}
}

func refused(result metav1.Status) ctrladmission.Response {
	return ctrladmission.Response{AdmissionResponse: admissionv1.AdmissionResponse{UID: "request-uid", Result: &result}}
}

func failed(message string) ctrladmission.Response {
	return refused(metav1.Status{Code: http.StatusInternalServerError, Message: message})
}

func compareAnswers(t *testing.T, expected, actual ctrladmission.Response) {
	t.Helper()
	if diff := cmp.Diff(expected, actual); diff != "" {
		t.Errorf("the answer differs (-expected, +actual):\n%s", diff)
	}
}

func TestAdmissionWebhookAdapterHandle(t *testing.T) {
	label := func(_ context.Context, g *gauge) error {
		g.Labels = map[string]string{"a": "b"}
		return nil
	}
	labelled := jsonpatch.NewOperation("add", "/metadata/labels", map[string]any{"a": "b"})
	nothing := func(context.Context, *gauge) error { return nil }
	tests := map[string]struct {
		request  ctrladmission.Request
		hook     *gaugeHook
		expected ctrladmission.Response
	}{
		"defaults alone are no patch": {
			request:  gaugeRequest(admissionv1.Create, `"parts":[{"name":"a"}]`),
			hook:     gaugeTree(nothing),
			expected: allowed(),
		},
		"what the type does not know survives a change, and defaults stay behind": {
			request: gaugeRequest(admissionv1.Update, `"newer":1`, `"dial":{"newer":{"x":1}}`,
				`"parts":[{"name":"a","newer":[1]},{"name":"b","newer":[2],"labels":{"c":"d","gone":"x"}}]`),
			hook: gaugeTree(func(_ context.Context, g *gauge) error {
				g.Dial.Size = 3
				g.Parts[1].Labels["c"] = "e"
				delete(g.Parts[1].Labels, "gone")
				g.Parts = append(g.Parts, gaugePart{Name: "z"})
				return nil
			}),
			expected: allowed(
				jsonpatch.NewOperation("add", "/dial/size", 3.0),
				jsonpatch.NewOperation("add", "/parts/2", map[string]any{"name": "z"}),
				jsonpatch.NewOperation("replace", "/parts/1/labels/c", "e"),
				jsonpatch.NewOperation("remove", "/parts/1/labels/gone", nil),
			),
		},
		"a change inside of a default brings it": {
			request: gaugeRequest(admissionv1.Create),
			hook: gaugeTree(func(_ context.Context, g *gauge) error {
				g.Dial.Size = 3
				return nil
			}),
			expected: allowed(jsonpatch.NewOperation("add", "/dial", map[string]any{"color": "white", "size": 3.0})),
		},
		"a client that takes off the kind is no change": {
			request: gaugeRequest(admissionv1.Create),
			hook: gaugeTree(func(ctx context.Context, g *gauge) error {
				g.TypeMeta = metav1.TypeMeta{}
				return label(ctx, g)
			}),
			expected: allowed(labelled),
		},
		"an empty list is as good as none": {
			request: gaugeRequest(admissionv1.Create),
			hook: gaugeTree(func(_ context.Context, g *gauge) error {
				g.Parts = []gaugePart{}
				return nil
			}),
			expected: allowed(),
		},
		"the tree runs over what is deleted": {
			request: gaugeRequest(admissionv1.Delete, `"unit":"km"`),
			hook: gaugeTree(func(_ context.Context, g *gauge) error {
				return fmt.Errorf("%s in %s", g.Name, g.Unit)
			}),
			expected: failed("gadget in km"),
		},
		"what is deleted cannot be changed": {
			request:  gaugeRequest(admissionv1.Delete),
			hook:     gaugeTree(label),
			expected: allowed(),
		},
		"a connection without an object": {
			request: ctrladmission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				UID: "request-uid", Operation: admissionv1.Connect, Namespace: "default", Name: "gadget",
			}},
			hook: gaugeTree(func(ctx context.Context, g *gauge) error {
				reconcilers.Warn(ctx, "%s/%s %s", g.Namespace, g.Name, g.Unit)
				return label(ctx, g)
			}),
			expected: ctrladmission.Response{AdmissionResponse: admissionv1.AdmissionResponse{
				UID: "request-uid", Allowed: true, Warnings: []string{"default/gadget m"},
			}},
		},
		"an object that breaks off": {
			request: ctrladmission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				UID: "request-uid", Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte("{")},
			}},
			hook:     gaugeTree(nothing),
			expected: failed("unexpected end of JSON input"),
		},
		"no object": {
			request:  ctrladmission.Request{AdmissionRequest: admissionv1.AdmissionRequest{UID: "request-uid", Operation: admissionv1.Update}},
			hook:     gaugeTree(nothing),
			expected: failed("unexpected end of JSON input"),
		},
		"an object that is null": {
			request: ctrladmission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				UID: "request-uid", Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte("null")},
			}},
			hook:     gaugeTree(label),
			expected: allowed(),
		},
		"an object of another shape": {
			request:  gaugeRequest(admissionv1.Create, `"parts":{}`),
			hook:     gaugeTree(nothing),
			expected: failed("json: cannot unmarshal object into Go struct field gauge.parts of type []reconcilers_test.gaugePart"),
		},
		"members of another case are others": {
			request: gaugeRequest(admissionv1.Create, `"UNIT":"km"`),
			hook: gaugeTree(func(_ context.Context, g *gauge) error {
				return errors.New(g.Unit)
			}),
			expected: failed("m"),
		},
		"defaults that fail": {
			request:  gaugeRequest(admissionv1.Create, `"unit":"furlong"`),
			hook:     gaugeTree(nothing),
			expected: failed("boom"),
		},
		"a tree that is missing": {
			request:  gaugeRequest(admissionv1.Create),
			hook:     &gaugeHook{},
			expected: failed(`AdmissionWebhookAdapter "gaugeAdmissionWebhookAdapter" must define Reconciler`),
		},
		"a patch of the author's stays": {
			request: gaugeRequest(admissionv1.Create),
			hook: gaugeTree(func(ctx context.Context, g *gauge) error {
				reconcilers.RetrieveAdmissionResponse(ctx).Patches = []jsonpatch.JsonPatchOperation{}
				return label(ctx, g)
			}),
			expected: ctrladmission.Response{
				Patches:           []jsonpatch.JsonPatchOperation{},
				AdmissionResponse: admissionv1.AdmissionResponse{UID: "request-uid", Allowed: true},
			},
		},
		"an encoded patch of the author's stays": {
			request: gaugeRequest(admissionv1.Create),
			hook: gaugeTree(func(ctx context.Context, g *gauge) error {
				reconcilers.RetrieveAdmissionResponse(ctx).Patch = []byte("[]")
				return label(ctx, g)
			}),
			expected: ctrladmission.Response{AdmissionResponse: admissionv1.AdmissionResponse{
				UID: "request-uid", Allowed: true, Patch: []byte("[]"),
			}},
		},
		"a type of patch of the author's stays": {
			request: gaugeRequest(admissionv1.Create),
			hook: gaugeTree(func(ctx context.Context, g *gauge) error {
				reconcilers.RetrieveAdmissionResponse(ctx).PatchType = new(admissionv1.PatchTypeJSONPatch)
				return label(ctx, g)
			}),
			expected: ctrladmission.Response{AdmissionResponse: admissionv1.AdmissionResponse{
				UID: "request-uid", Allowed: true, PatchType: new(admissionv1.PatchTypeJSONPatch),
			}},
		},
		"the author refuses by the response": {
			request: gaugeRequest(admissionv1.Create),
			hook: gaugeTree(func(ctx context.Context, _ *gauge) error {
				reconcilers.RetrieveAdmissionResponse(ctx).Allowed = false
				reconcilers.RetrieveAdmissionResponse(ctx).Result = &metav1.Status{Code: http.StatusTeapot}
				return reconcilers.ErrHaltSubReconcilers
			}),
			expected: refused(metav1.Status{Code: http.StatusTeapot}),
		},
		"hooks": {
			request: gaugeRequest(admissionv1.Create),
			hook: &gaugeHook{
				BeforeHandle: func(ctx context.Context, req ctrladmission.Request, resp *ctrladmission.Response) context.Context {
					resp.Warnings = append(resp.Warnings, "before "+req.Name)
					return context.WithValue(ctx, hookKey{}, "from before")
				},
				Reconciler: &gaugeSync{Sync: func(ctx context.Context, _ *gauge) error {
					reconcilers.Warn(ctx, "%v", ctx.Value(hookKey{}))
					return errBoom
				}},
				AfterHandle: func(ctx context.Context, req ctrladmission.Request, resp *ctrladmission.Response) {
					resp.Warnings = append(resp.Warnings, "after "+req.Name, fmt.Sprint(ctx.Value(hookKey{})))
					resp.Result.Message += " again"
				},
			},
			expected: ctrladmission.Response{AdmissionResponse: admissionv1.AdmissionResponse{
				UID:      "request-uid",
				Result:   &metav1.Status{Code: http.StatusInternalServerError, Message: "boom again"},
				Warnings: []string{"before gadget", "from before", "after gadget", "from before"},
			}},
		},
		"a hook that returns no context": {
			request: gaugeRequest(admissionv1.Create),
			hook: &gaugeHook{
				BeforeHandle: func(context.Context, ctrladmission.Request, *ctrladmission.Response) context.Context { return nil },
				Reconciler:   &gaugeSync{Sync: label},
			},
			expected: allowed(labelled),
		},
		"a hook that returns a context from elsewhere": {
			request: gaugeRequest(admissionv1.Create),
			hook: &gaugeHook{
				BeforeHandle: func(context.Context, ctrladmission.Request, *ctrladmission.Response) context.Context {
					return context.Background()
				},
				Reconciler: &gaugeSync{Sync: func(context.Context, *gauge) error { return errBoom }},
			},
			expected: failed("boom"),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			actual, _ := handle(t, test.hook, test.request)
			compareAnswers(t, test.expected, actual)
		})
	}
}

type hookKey struct{}

func TestAdmissionWebhookAdapterTypes(t *testing.T) {
	raw := `{"apiVersion":"test.espalier.dev/v1","kind":"Widget","metadata":{"name":"gadget"},"spec":{"newer":1,"fields":{"a":"b"}}}`
	request := ctrladmission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: "request-uid", Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte(raw)},
	}}
	expected := allowed(jsonpatch.NewOperation("add", "/spec/fields/c", "d"))
	hooks := map[string]ctrladmission.Handler{
		"typed": &reconcilers.AdmissionWebhookAdapter[*resources.Widget]{
			Reconciler: &widgetSync{Sync: func(_ context.Context, w *resources.Widget) error {
				w.Spec.Fields["c"] = "d"
				return nil
			}},
		},
		"unstructured": &reconcilers.AdmissionWebhookAdapter[*unstructured.Unstructured]{
			Reconciler: &reconcilers.SyncReconciler[*unstructured.Unstructured]{
				Sync: func(_ context.Context, u *unstructured.Unstructured) error {
					return unstructured.SetNestedField(u.Object, "d", "spec", "fields", "c")
				},
			},
		},
		"an interface": &reconcilers.AdmissionWebhookAdapter[client.Object]{
			Type: &resources.Widget{},
			Reconciler: &reconcilers.SyncReconciler[client.Object]{Sync: func(_ context.Context, obj client.Object) error {
				obj.(*resources.Widget).Spec.Fields["c"] = "d"
				return nil
			}},
		},
		"duck": &reconcilers.AdmissionWebhookAdapter[*specDuck]{
			Reconciler: &reconcilers.SyncReconciler[*specDuck]{Sync: func(_ context.Context, duck *specDuck) error {
				duck.Spec.Fields["c"] = "d"
				return nil
			}},
		},
	}
	for name, hook := range hooks {
		t.Run(name, func(t *testing.T) {
			actual, _ := handle(t, hook, request)
			compareAnswers(t, expected, actual)
		})
	}
}

// specDuck is any object with fields in its spec.
type specDuck struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Fields map[string]string `json:"fields,omitempty"`
	} `json:"spec,omitempty"`
}

func (d *specDuck) DeepCopyObject() runtime.Object { return copyByJSON(d, &specDuck{}) }

func TestAdmissionWebhookAdapterLeavesPanicsToTheWebhook(t *testing.T) {
	webhook, err := gaugeTree(func(context.Context, *gauge) error { panic("ouch") }).BuildWithContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	resp := webhook.Handle(t.Context(), gaugeRequest(admissionv1.Create))
	if resp.Allowed || resp.Result == nil || resp.Result.Message != "panic: ouch [recovered]" {
		t.Errorf("the answer is %v, want a denial that names the panic", resp)
	}
}

func TestAdmissionWebhookAdapterValidate(t *testing.T) {
	validationTests{
		"valid": {node: gaugeTree(func(context.Context, *gauge) error { return nil })},
		"no tree": {
			node:    &gaugeHook{},
			shallow: `AdmissionWebhookAdapter "gaugeAdmissionWebhookAdapter" must define Reconciler`,
		},
		"no type": {
			node: &reconcilers.AdmissionWebhookAdapter[client.Object]{
				Reconciler: &reconcilers.SyncReconciler[client.Object]{Sync: func(context.Context, client.Object) error { return nil }},
			},
			shallow: `AdmissionWebhookAdapter "AdmissionWebhookAdapter" must define Type since none can be made of cacheapi.Object`,
		},
		"a tree that is not valid": {
			node: &gaugeHook{Name: "hook", Reconciler: &gaugeSync{Name: "node"}},
			recursive: `AdmissionWebhookAdapter "hook" must have a valid Reconciler: ` +
				`SyncReconciler "node" must implement Sync or SyncWithResult`,
		},
	}.run(t)
}

func TestAdmissionWebhookAdapterBuild(t *testing.T) {
	invalid := &gaugeHook{Name: "hook", Reconciler: reconcilers.Sequence[*gauge]{&gaugeSync{Name: "node"}}}
	_, err := invalid.BuildWithContext(t.Context())
	checkError(t, "building", err, `AdmissionWebhookAdapter "hook" must have a valid Reconciler: `+
		`Sequence must have a valid Sequence[0]: SyncReconciler "node" must implement Sync or SyncWithResult`)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("Build did not panic, want it to")
			}
		}()
		invalid.Build()
	}()
	if webhook := gaugeTree(func(context.Context, *gauge) error { return nil }).Build(); webhook.Handler == nil {
		t.Error("Build returned no webhook, want one with a handler")
	}
}

func TestAdmissionWebhookAdapterDescribe(t *testing.T) {
	hook := &reconcilers.AdmissionWebhookAdapter[*resources.Widget]{
		Reconciler: widgetSequence{&widgetSync{Name: "Check"}, configMapChild("settings")},
	}
	const expected = `AdmissionWebhookAdapter "WidgetAdmissionWebhookAdapter" Widget
└─ Sequence
   ├─ SyncReconciler "Check"
   └─ ChildReconciler "settings" ConfigMap
`
	if diff := cmp.Diff(expected, reconcilers.Describe(hook).String()); diff != "" {
		t.Errorf("the tree differs (-expected, +actual):\n%s", diff)
	}
	rules, err := reconcilers.Describe(hook).PolicyRules(widgetScheme, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range rules {
		if rule.Resources[0] == "widgets" {
			t.Errorf("there is the rule %v, want none of what the webhook itself is asked about", rule)
		}
	}
}

func TestAdmissionWebhookAdapterWithAChild(t *testing.T) {
	expect := expectWidget()
	expect.ExpectCreates = []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "gadget-settings", Labels: map[string]string{"part": "settings"},
		OwnerReferences: []metav1.OwnerReference{controlledBy(widget.Object())},
	}, Data: map[string]string{"image": "app:1"}}}
	expect.ExpectEvents = []rtesting.Event{normal("Created", `Created ConfigMap "gadget-settings"`)}
	hook := &reconcilers.AdmissionWebhookAdapter[*resources.Widget]{Reconciler: configMapChild("settings"), Config: expect.Config()}
	raw := widget.With(func(w *resources.Widget) { w.Spec.Fields = map[string]string{"image": "app:1"} }).Object()
	raw.TypeMeta = metav1.TypeMeta{APIVersion: "test.espalier.dev/v1", Kind: "Widget"}
	actual, _ := handle(t, hook, ctrladmission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: "request-uid", Operation: admissionv1.Update, Namespace: "default", Name: "gadget",
		Object: runtime.RawExtension{Raw: []byte(encode(t, raw))},
	}})
	compareAnswers(t, allowed(jsonpatch.NewOperation("add", "/status/fields", map[string]any{"settings": "gadget-settings"})), actual)
	expect.AssertExpectations(t)
}
