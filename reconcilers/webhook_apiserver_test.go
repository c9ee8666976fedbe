package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane/webhookserver"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// serveWidgets has the real API server ask a tree about the Widgets of a namespace of its own: one that may change them, or one
// that only sees them. It returns the namespace, and ends with the test.
func serveWidgets(t *testing.T, mutating bool, tree widgetNode) string {
	t.Helper()
	server, err := webhookserver.New()
	if err != nil {
		t.Fatal(err)
	}
	mgr := newManager(t, plane.Config(t), ctrl.Options{WebhookServer: server})
	// A client of its own does without the caches, which would have to be waited for.
	config := reconcilers.NewConfig(mgr, &resources.Widget{}, 0)
	config.Client = live(t)
	hook := &reconcilers.AdmissionWebhookAdapter[*resources.Widget]{Config: config}
	hook.Reconciler = widgetSequence{probed(), tree}
	webhook, err := hook.BuildWithContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	mgr.GetWebhookServer().Register("/widgets", webhook)

	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the manager failed: %v", err)
		}
	})
	eventually(t, "no webhook", func(context.Context) error { return server.StartedChecker()(nil) })
	namespace := plane.Namespace(t)
	register(t, server, namespace, mutating)
	return namespace
}

// probe is the name of Widgets that reports whether the API server knows of a webhook.
const probe = "probe"

var errProbed = errors.New("the webhook is called")

func probed() widgetNode {
	return &widgetSync{Name: "Probe", Sync: func(_ context.Context, widget *resources.Widget) error {
		if widget.Name == probe {
			return errProbed
		}
		return nil
	}}
}

// register returns once the API server asks for each request.
func register(t *testing.T, server *webhookserver.Server, namespace string, mutating bool) {
	t.Helper()
	hook := webhookserver.Hook{
		Path:       "/widgets",
		Namespaces: []string{namespace},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{"CREATE", "UPDATE", "DELETE"},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{"test.espalier.dev"}, APIVersions: []string{"v1"}, Resources: []string{"widgets"},
			},
		}},
	}
	var registered client.Object = server.Validating(namespace, hook)
	if mutating {
		registered = server.Mutating(namespace, hook)
	}
	c := live(t)
	if err := c.Create(t.Context(), registered); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Delete(context.Background(), registered); err != nil {
			t.Error(err)
		}
	})
	eventually(t, "the webhook is not called", func(ctx context.Context) error {
		err := c.Create(ctx, &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: probe}}, client.DryRunAll)
		if err == nil || !strings.HasSuffix(err.Error(), errProbed.Error()) {
			return fmt.Errorf("answered with %v", err)
		}
		return nil
	})
}

func newWidget(namespace, name string, fields map[string]string) *resources.Widget {
	return &resources.Widget{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       resources.WidgetSpec{Fields: fields},
	}
}

func TestWebhookKeepsWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	namespace := serveWidgets(t, true, &widgetSync{
		Sync: func(_ context.Context, widget *resources.Widget) error {
			widget.Labels = reconcilers.MergeMaps(widget.Labels, map[string]string{"seen": "yes"})
			widget.Spec.Fields = map[string]string{"color": "grey"}
			return nil
		},
	})
	c := live(t)
	newer := map[string]any{"deep": []any{map[string]any{"a": int64(1)}}}
	widget := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"newer": newer, "fields": map[string]any{"color": "gray", "size": "1"}},
	}}
	widget.SetGroupVersionKind(resources.GroupVersion.WithKind("Widget"))
	widget.SetNamespace(namespace)
	widget.SetName("gadget")
	if err := c.Create(t.Context(), widget); err != nil {
		t.Fatal(err)
	}
	expected := map[string]any{"newer": newer, "fields": map[string]any{"color": "grey"}}
	if diff := cmp.Diff(expected, widget.Object["spec"]); diff != "" {
		t.Errorf("what was stored differs (-expected, +actual):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"seen": "yes"}, widget.GetLabels()); diff != "" {
		t.Errorf("the labels differ (-expected, +actual):\n%s", diff)
	}
	// What a tree of both kinds of operations changes must not get in the way of a deletion.
	if err := c.Delete(t.Context(), widget); err != nil {
		t.Errorf("a deletion fails: %v", err)
	}
}

func TestWebhookAnswersReachTheClient(t *testing.T) {
	t.Parallel()
	namespace := serveWidgets(t, false, &widgetSync{
		Sync: func(ctx context.Context, widget *resources.Widget) error {
			req := reconcilers.RetrieveAdmissionRequest(ctx)
			if req.Operation == admissionv1.Delete {
				return reconcilers.Deny("%s stays", widget.Name)
			}
			old, err := reconcilers.RetrieveOldResource[*resources.Widget](ctx)
			if err != nil {
				return err
			}
			reconcilers.Warn(ctx, "mind the\ngap")
			at := field.NewPath("spec", "fields")
			var invalid field.ErrorList
			if widget.Spec.Fields["color"] == "" {
				invalid = append(invalid, field.Required(at.Key("color"), "it has to be visible"))
			}
			if old != nil && old.Spec.Fields["size"] != widget.Spec.Fields["size"] {
				invalid = append(invalid, field.Forbidden(at.Key("size"), "it stays as it is"))
			}
			return reconcilers.InvalidFields(ctx, widget, invalid)
		},
	})
	config := plane.Config(t)
	warned := &warnings{}
	config.WarningHandler = warned
	c, err := client.New(config, client.Options{Scheme: resources.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	denied := func(message string) string {
		return fmt.Sprintf("admission webhook %q denied the request: %s", "widgets."+namespace+".espalier.dev", message)
	}

	widget := newWidget(namespace, "gadget", map[string]string{"size": "1"})
	err = c.Create(t.Context(), widget)
	const noColor = "spec.fields[color]: Required value: it has to be visible"
	checkError(t, "creating it", err, denied(`Widget.test.espalier.dev "gadget" is invalid: `+noColor))
	if !apierrs.IsInvalid(err) {
		t.Errorf("the error is %v, want it invalid", err)
	}
	widget.Spec.Fields["color"] = "grey"
	if err := c.Create(t.Context(), widget); err != nil {
		t.Fatal(err)
	}
	widget.Spec.Fields = nil
	err = c.Update(t.Context(), widget)
	var status apierrs.APIStatus
	if !errors.As(err, &status) || !apierrs.IsInvalid(err) {
		t.Fatalf("the update was answered with %v, want it invalid", err)
	}
	expected := &metav1.StatusDetails{Group: "test.espalier.dev", Kind: "Widget", Name: "gadget", Causes: []metav1.StatusCause{
		{Type: metav1.CauseTypeFieldValueRequired, Field: "spec.fields[color]", Message: "Required value: it has to be visible"},
		{Type: metav1.CauseTypeForbidden, Field: "spec.fields[size]", Message: "Forbidden: it stays as it is"},
	}}
	if diff := cmp.Diff(expected, status.Status().Details); diff != "" {
		t.Errorf("the details differ (-expected, +actual):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"mind the gap", "mind the gap", "mind the gap"}, warned.texts()); diff != "" {
		t.Errorf("the warnings differ (-expected, +actual):\n%s", diff)
	}
	err = c.Delete(t.Context(), widget)
	checkError(t, "deleting it", err, denied("gadget stays"))
	if !apierrs.IsForbidden(err) {
		t.Errorf("the error is %v, want it forbidden", err)
	}
}

// warnings are what an API server warned a client of.
type warnings struct {
	mu    sync.Mutex
	heard []string
}

var _ rest.WarningHandler = (*warnings)(nil)

func (w *warnings) HandleWarningHeader(_ int, _ string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heard = append(w.heard, text)
}

func (w *warnings) texts() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.heard)
}

func TestWebhookDryRunWritesNothing(t *testing.T) {
	t.Parallel()
	namespace := serveWidgets(t, true, &widgetSync{
		Sync: func(ctx context.Context, widget *resources.Widget) error {
			made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: widget.Namespace, Name: widget.Name}}
			return reconcilers.RetrieveConfigOrDie(ctx).Create(ctx, made)
		},
	})
	c := live(t)
	made := func() error {
		return c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "gadget"}, &corev1.ConfigMap{})
	}
	if err := c.Create(t.Context(), newWidget(namespace, "gadget", nil), client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	if err := made(); !apierrs.IsNotFound(err) {
		t.Errorf("the read after a dry run ends with %v, want it not found", err)
	}
	if err := c.Create(t.Context(), newWidget(namespace, "gadget", nil)); err != nil {
		t.Fatal(err)
	}
	if err := made(); err != nil {
		t.Errorf("a real request has left nothing: %v", err)
	}
}
