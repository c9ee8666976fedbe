package simulation

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/reconcilers"
)

// guards is an operator with a webhook that labels ConfigMaps with the process that saw them, and refuses those with a
// key "bad".
func guards(ctx context.Context, mgr ctrl.Manager) error {
	hook := &reconcilers.AdmissionWebhookAdapter[*corev1.ConfigMap]{
		Reconciler: &reconcilers.SyncReconciler[*corev1.ConfigMap]{
			Name: "Guard",
			Sync: func(_ context.Context, obj *corev1.ConfigMap) error {
				if obj.Data["bad"] != "" {
					return reconcilers.Deny("it is bad")
				}
				metav1.SetMetaDataLabel(&obj.ObjectMeta, "seen", mgr.GetConfig().UserAgent)
				return nil
			},
		},
		Config: reconcilers.NewConfig(mgr, &corev1.ConfigMap{}, 0),
	}
	built, err := hook.BuildWithContext(ctx)
	if err == nil {
		mgr.GetWebhookServer().Register("/configmaps", built)
	}
	return err
}

// guarding returns a configuration of the webhook without a bundle.
func guarding(policy admissionregistrationv1.FailurePolicyType) *admissionregistrationv1.MutatingWebhookConfiguration {
	return &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "guard"},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "guard.example.com", AdmissionReviewVersions: []string{"v1"}, FailurePolicy: &policy,
			SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone),
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				Service: &admissionregistrationv1.ServiceReference{
					Namespace: "system", Name: "guard", Path: ptr.To("/configmaps"),
				},
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"},
				},
			}},
		}},
	}
}

// tryCreate creates an object as somebody who does not try again.
func tryCreate(w *World, obj client.Object) error { return w.Client.Create(context.Background(), obj) }

func refused(w *World, err error, text string) {
	w.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		w.Errorf("the error is %v, want %q", err, text)
	}
}

func TestWebhooks(t *testing.T) {
	t.Parallel()
	options := Options{
		Operator: guards, Replicas: 2, Objects: []client.Object{guarding(admissionregistrationv1.Fail)},
	}
	Run(t, options, func(w *World) {
		w.Pass(time.Minute)
		var by []string
		for _, name := range []string{"a", "b", "c", "d"} {
			obj := original(name, "")
			w.Create(obj)
			by = append(by, obj.Labels["seen"])
		}
		slices.Sort(by)
		if want := []string{"operator", "operator", "operator-2", "operator-2"}; !slices.Equal(by, want) {
			w.Errorf("the webhook was called in %v", by)
		}
		bad := original("bad", "")
		bad.Data["bad"] = "1"
		refused(w, tryCreate(w, bad), "it is bad")
		w.Stop("operator")
		for _, name := range []string{"e", "f"} {
			obj := original(name, "")
			w.Create(obj)
			if obj.Labels["seen"] != "operator-2" {
				w.Errorf("the webhook was called in %v", obj.Labels)
			}
		}
		w.Kill("operator-2")
		refused(w, tryCreate(w, original("g", "")), "connection refused")
		w.Pass(time.Minute)
		w.Create(original("g", ""))
	})
}

// TestIgnoredWebhook has a webhook whose process does not run, and which may fail.
func TestIgnoredWebhook(t *testing.T) {
	t.Parallel()
	options := Options{Operator: guards, Objects: []client.Object{guarding(admissionregistrationv1.Ignore)}}
	Run(t, options, func(w *World) {
		w.Stop()
		obj := original("a", "")
		w.Create(obj)
		w.Start()
		w.Pass(time.Minute)
		other := original("b", "")
		w.Create(other)
		if obj.Labels["seen"] != "" || other.Labels["seen"] != Operator {
			w.Errorf("the labels are %v and %v", obj.Labels, other.Labels)
		}
	})
}

// TestWebhookTrust has configurations that a story creates: they need a bundle, which may be injected.
func TestWebhookTrust(t *testing.T) {
	t.Parallel()
	Run(t, Options{Operator: guards}, func(w *World) {
		configuration := guarding(admissionregistrationv1.Fail)
		w.Create(configuration)
		w.Pass(time.Second)
		refused(w, tryCreate(w, original("a", "")), "unknown authority")
		w.Update(configuration, func() {
			configuration.Annotations = map[string]string{"cert-manager.io/inject-ca-from": "system/guard"}
		})
		w.Pass(time.Second)
		w.Create(original("a", ""))
	})
}
