package simulation

import (
	"context"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// careless panics for an app without data.
func careless(_ context.Context, _ client.Client, app *corev1.ConfigMap) error {
	app.Data["seen"] = "yes"
	return nil
}

func TestPanic(t *testing.T) {
	t.Parallel()
	o := attempt(t, reconciles(careless), func(w *World) {
		w.Create(newApp("one"))
		w.Rest()
		w.Error("the story goes on")
	})
	o.mustFail(t, "operator panics: assignment to entry in nil map", "simulation.careless(",
		"= the story fails: operator panics: assignment to entry in nil map =")
	if strings.Contains(o.said, "the story goes on") || strings.Count(o.said, "operator panics") != 1 {
		t.Errorf("the story goes on:\n%s", o.said)
	}
}

// TestPanicOfRunnable has something panic that is added to the manager.
func TestPanicOfRunnable(t *testing.T) {
	t.Parallel()
	attempt(t, Options{Operator: func(_ context.Context, mgr ctrl.Manager) error {
		return mgr.Add(runnable(func(ctx context.Context) error { return careless(ctx, nil, &corev1.ConfigMap{}) }))
	}}, func(w *World) { w.Rest() }).mustFail(t, "operator panics: assignment to entry in nil map", "simulation.careless(")
}

func TestAllowPanics(t *testing.T) {
	t.Parallel()
	options := reconciles(careless)
	options.AllowPanics = true
	o := attempt(t, options, func(w *World) {
		w.Create(newApp("one"))
		w.Rest()
	})
	o.must(t)
	if !strings.Contains(o.log.String(), "= operator panics: assignment to entry in nil map =") {
		t.Errorf("the log does not say it:\n%s", o.log)
	}
}

// TestPanicOfDeadProcess lets a process panic after its death: nobody would see that.
func TestPanicOfDeadProcess(t *testing.T) {
	t.Parallel()
	options := reconciles(func(ctx context.Context, c client.Client, app *corev1.ConfigMap) error {
		if app.Data["go"] == "" {
			time.Sleep(time.Minute)
			if ctx.Err() != nil {
				panic("too late")
			}
		}
		return nil
	})
	attempt(t, options, func(w *World) {
		app := newApp("one")
		w.Create(app)
		w.Pass(30 * time.Second)
		w.Update(app, func() { app.Data = map[string]string{"go": "on"} })
		w.Kill()
		w.Pass(time.Hour)
	}).must(t)
}

func TestPanicOfWebhook(t *testing.T) {
	t.Parallel()
	bundle, _, err := cert.GenerateSelfSignedCertKey("hooks.example.com", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	options := Options{Operator: func(_ context.Context, mgr ctrl.Manager) error {
		mgr.GetWebhookServer().Register("/check", &admission.Webhook{Handler: admission.HandlerFunc(
			func(context.Context, admission.Request) admission.Response { panic("unlucky") },
		)})
		return nil
	}}
	attempt(t, options, func(w *World) {
		w.Create(&admissionv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "check"},
			Webhooks: []admissionv1.ValidatingWebhook{{
				Name: "check.example.com", AdmissionReviewVersions: []string{"v1"},
				SideEffects: ptr.To(admissionv1.SideEffectClassNone),
				ClientConfig: admissionv1.WebhookClientConfig{
					URL: ptr.To("https://hooks.example.com/check"), CABundle: bundle,
				},
				Rules: []admissionv1.RuleWithOperations{{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule: admissionv1.Rule{
						APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"},
					},
				}},
			}},
		})
		w.Pass(time.Minute)
		if err := w.Client.Create(w.Context(), newApp("one")); err == nil {
			w.Error("the object is created")
		}
	}).mustFail(t, "operator panics: unlucky", "admission.HandlerFunc")
}
