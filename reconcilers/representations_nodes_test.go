package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
	rtime "github.com/espalier-dev/espalier/time"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	webhooks "sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// blueWidget has what the scenarios read.
var blueWidget = widget.With(seenBefore, func(w *resources.Widget) { w.Spec.Fields = map[string]string{"color": "blue"} })

// markedBlue is what marks leaves on blueWidget.
var markedBlue = statusField("mark", "blue")

func (r representation[T, TL]) writesStatus(t *testing.T) {
	writes := func(c rtesting.ReconcilerTestCase) rtesting.ReconcilerTestCase {
		if r.patched {
			patch := finalizersPatch(`{"status":{"fields":{"mark":"blue"}}}`)
			patch.SubResource = "status"
			c.ExpectStatusPatches = []rtesting.PatchRef{patch}
			c.ExpectEvents = []rtesting.Event{normal("StatusPatched", "Patched status")}
			return c
		}
		c.ExpectStatusUpdates = []client.Object{r.of(blueWidget.With(markedBlue).Object())}
		c.ExpectEvents = []rtesting.Event{normal("StatusUpdated", "Updated status")}
		return c
	}
	given := func(objs ...client.Object) rtesting.ReconcilerTestCase {
		return rtesting.ReconcilerTestCase{GivenObjects: objs}
	}
	fails := func(c rtesting.ReconcilerTestCase) rtesting.ReconcilerTestCase { c.ExpectedErr = errBoom; return c }
	steady := given(blueWidget.With(markedBlue))
	steady.ExpectedResult = minute
	written := []string{"sync", "update Widget/status"}
	if r.patched {
		written[1] = "patch Widget/status"
	}
	rows := map[string]rootRow{}
	for name, test := range map[string]struct {
		rtesting.ReconcilerTestCase
		err   error
		calls []string
	}{
		"writes":                 {writes(given(blueWidget)), nil, written},
		"writes beside an error": {fails(writes(given(blueWidget))), errBoom, written},
		"is steady":              {steady, nil, []string{"sync"}},
		"skips the status":       {fails(given(blueWidget)), errors.Join(errBoom, reconcilers.ErrSkipStatusUpdate), []string{"sync"}},
		"terminating":            {given(blueWidget.With(terminating("f.io/f"))), nil, []string{"finalize"}},
		"gone":                   {given(), nil, []string{}},
	} {
		if test.ExpectedErr != nil {
			test.ExpectedErr = test.err
		}
		rows[name] = rootRow{test.ReconcilerTestCase, func(calls *trace, c reconcilers.Config) reconcile.Reconciler {
			return &reconcilers.ResourceReconciler[T]{
				Type: r.empty(), Config: c, Reconciler: r.marks(calls, minute, test.err),
			}
		}, test.calls}
	}
	runRoots(t, rows)
}

func (r representation[T, TL]) hasFinalizer(t *testing.T) {
	node := func(calls *trace) reconcilers.SubReconciler[T] {
		return &reconcilers.WithFinalizer[T]{Finalizer: "f.io/f", Reconciler: &reconcilers.SyncReconciler[T]{
			Sync:     func(context.Context, T) error { calls.add("sync"); return nil },
			Finalize: func(context.Context, T) error { calls.add("finalize"); return nil },
		}}
	}
	patched := []rtesting.Event{normal("FinalizerPatched", `Patched finalizer "f.io/f"`)}
	runNodes(t, map[string]nodeRow[T]{
		"is added first": {
			SubReconcilerTestCase: rtesting.SubReconcilerTestCase[T]{
				Resource:       r.of(blueWidget.Object()),
				ExpectResource: r.of(blueWidget.With(patchedBy("f.io/f")).Object()),
				ExpectPatches:  finalizersPatches("f.io/f"),
				ExpectEvents:   patched,
			},
			node: node, calls: []string{"patch Widget", "sync"},
		},
		"is there": {
			SubReconcilerTestCase: rtesting.SubReconcilerTestCase[T]{
				Resource: r.of(blueWidget.With(func(w *resources.Widget) { w.Finalizers = []string{"f.io/f"} }).Object()),
			},
			node: node, calls: []string{"sync"},
		},
		"is cleared last": {
			SubReconcilerTestCase: rtesting.SubReconcilerTestCase[T]{
				Resource:       r.of(blueWidget.With(terminating("f.io/f", "g.io/g")).Object()),
				ExpectResource: r.of(blueWidget.With(terminating(), patchedBy("g.io/g")).Object()),
				ExpectPatches:  []rtesting.PatchRef{finalizersPatch(`{"metadata":{"finalizers":["g.io/g"],"resourceVersion":"999"}}`)},
				ExpectEvents:   patched,
			},
			node: node, calls: []string{"finalize", "patch Widget"},
		},
	})
}

func (r representation[T, TL]) isCast(t *testing.T) {
	runCast(t, r, typedWidgets, "typed")
	runCast(t, r, unstructuredWidgets, "unstructured")
	runCast(t, r, duckWidgets, "duck")
	runNodes(t, map[string]nodeRow[T]{"to an interface": {
		SubReconcilerTestCase: rtesting.SubReconcilerTestCase[T]{
			Resource:       r.of(blueWidget.Object()),
			ExpectResource: r.of(blueWidget.With(markedBlue).Object()),
		},
		node: func(*trace) reconcilers.SubReconciler[T] {
			return &reconcilers.CastResource[T, client.Object]{Reconciler: &reconcilers.SyncReconciler[client.Object]{
				Sync: func(_ context.Context, obj client.Object) error {
					resource, ok := obj.(T)
					if !ok {
						return fmt.Errorf("got a %T", obj)
					}
					r.mark(resource, r.color(resource))
					return nil
				},
			}}
		},
	}})
}

// runCast casts from one representation to another: what is markedBlue there is markedBlue here, and the finalizer is that of the Widget.
func runCast[T client.Object, TL client.ObjectList, C client.Object, CL client.ObjectList](
	t *testing.T, from representation[T, TL], to representation[C, CL], name string,
) {
	cast := func(node reconcilers.SubReconciler[C]) reconcilers.SubReconciler[T] {
		return &reconcilers.CastResource[T, C]{Reconciler: node}
	}
	runNodes(t, map[string]nodeRow[T]{
		"to " + name: {
			SubReconcilerTestCase: rtesting.SubReconcilerTestCase[T]{
				Resource:       from.of(blueWidget.Object()),
				ExpectResource: from.of(blueWidget.With(markedBlue).Object()),
				ShouldErr:      true,
				Verify:         returnsBoth(errBoom, minute),
			},
			node:  func(calls *trace) reconcilers.SubReconciler[T] { return cast(to.marks(calls, minute, errBoom)) },
			calls: []string{"sync"},
		},
		"to " + name + ", with a finalizer": {
			SubReconcilerTestCase: rtesting.SubReconcilerTestCase[T]{
				Resource:       from.of(blueWidget.Object()),
				ExpectResource: from.of(blueWidget.With(markedBlue, patchedBy("f.io/f")).Object()),
				ExpectPatches:  finalizersPatches("f.io/f"),
				ExpectEvents:   []rtesting.Event{normal("FinalizerPatched", `Patched finalizer "f.io/f"`)},
			},
			node: func(calls *trace) reconcilers.SubReconciler[T] {
				return cast(&reconcilers.WithFinalizer[C]{Finalizer: "f.io/f", Reconciler: to.marks(calls, nothing, nil)})
			},
			calls: []string{"patch Widget", "sync"},
		},
	})
}

func (r representation[T, TL]) isAdmitted(t *testing.T) {
	invalid := field.ErrorList{field.Invalid(field.NewPath("spec", "fields", "color"), "blue", "is not red")}
	status := metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
		Message: `Widget.test.espalier.dev "gadget" is invalid: spec.fields.color: Invalid value: "blue": is not red`,
		Details: &metav1.StatusDetails{Group: "test.espalier.dev", Kind: "Widget", Name: "gadget", Causes: []metav1.StatusCause{
			{Type: metav1.CauseTypeFieldValueInvalid, Field: "spec.fields.color", Message: `Invalid value: "blue": is not red`},
		}},
	}
	forbidden := turnedDown(http.StatusForbidden, "not today")
	forbidden.Result.Reason = metav1.StatusReasonForbidden
	for name, test := range map[string]struct {
		sync     func(ctx context.Context, resource T) error
		expected webhooks.Response
	}{
		"unchanged": {func(context.Context, T) error { return nil }, admitted()},
		"with a label": {
			func(_ context.Context, resource T) error {
				resource.SetLabels(reconcilers.MergeMaps(resource.GetLabels(), map[string]string{"added": r.color(resource)}))
				return nil
			},
			admitted(jsonpatch.NewOperation("add", "/metadata/labels/added", "blue")),
		},
		"denied": {func(context.Context, T) error { return reconcilers.Deny("not %s", "today") }, forbidden},
		"invalid": {
			func(ctx context.Context, resource T) error { return reconcilers.InvalidFields(ctx, resource, invalid) },
			webhooks.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &status}},
		},
		"failed": {func(context.Context, T) error { return errBoom }, turnedDown(http.StatusInternalServerError, "boom")},
	} {
		t.Run(name, func(t *testing.T) {
			tc := rtesting.AdmissionWebhookTestCase{
				Request: admits(admissionv1.Update, rawWidget), ExpectedResponse: test.expected,
				Differ: statusStatusIgnored{rtesting.DefaultDiffer},
			}
			tc.RunWithContext(t, widgetScheme, func(
				_ *testing.T, ctx context.Context, _ *rtesting.AdmissionWebhookTestCase, c reconcilers.Config,
			) (*webhooks.Webhook, error) {
				return (&reconcilers.AdmissionWebhookAdapter[T]{
					Type: r.empty(), Config: c, Reconciler: &reconcilers.SyncReconciler[T]{Sync: test.sync},
				}).BuildWithContext(ctx)
			})
		})
	}
}

// statusStatusIgnored compares what a webhook answers but for the word Failure, which only answers with a reason have.
type statusStatusIgnored struct{ rtesting.Differ }

func (d statusStatusIgnored) WebhookResponse(expected, actual webhooks.Response) string {
	for _, response := range []*webhooks.Response{&expected, &actual} {
		if response.Result != nil {
			response.Result = response.Result.DeepCopy()
			response.Result.Status = ""
		}
	}
	return d.Differ.WebhookResponse(expected, actual)
}

func (r representation[T, TL]) hasTransientErrors(t *testing.T) {
	calls := &trace{reads: true}
	config := &rtesting.ExpectConfig{
		Scheme: widgetScheme, WithReactors: []rtesting.ReactionFunc{calls.observe},
		// What the cache may not have is looked for past it.
		GivenObjects: []client.Object{blueWidget}, APIGivenObjects: []client.Object{blueWidget},
	}
	node := &reconcilers.SuppressTransientErrors[T, TL]{ListType: r.list(), Reconciler: &reconcilers.SyncReconciler[T]{
		Sync: func(context.Context, T) error { return errBoom },
	}}
	other := widget.With(func(w *resources.Widget) { w.UID, w.Name = "other-uid", "other" })
	for _, pass := range []struct {
		resource rtesting.Fixture[*resources.Widget]
		at       time.Duration
		shown    bool
	}{
		{blueWidget, 0, false}, {other, 0, false}, {blueWidget, time.Hour, false}, {other, time.Hour, false},
		{blueWidget, 25 * time.Hour, true}, // and then the other one, which is not in the cluster, is forgotten
		{other, 25 * time.Hour, false}, {blueWidget, 26 * time.Hour, true},
	} {
		ctx := rtime.StashNow(t.Context(), requestTime.Add(pass.at))
		ctx = reconcilers.StashConfig(reconcilers.WithStash(ctx), config.Config())
		_, err := node.Reconcile(ctx, r.of(pass.resource.Object()))
		if !errors.Is(err, errBoom) || errors.Is(err, reconcilers.ErrQuiet) == pass.shown {
			t.Errorf("%s at %s returned %v, want %v, shown: %t", pass.resource.Object().Name, pass.at, err, errBoom, pass.shown)
		}
	}
	calls.compare(t, []string{"list WidgetList"})
}

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
