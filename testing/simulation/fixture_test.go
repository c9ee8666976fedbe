package simulation

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// copies runs an operator that copies each ConfigMap with the label "copy" to a Secret.
func copies(_ context.Context, mgr ctrl.Manager) error {
	c := mgr.GetClient()
	return ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).Complete(reconcile.Func(
		func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			original := &corev1.ConfigMap{}
			if err := c.Get(ctx, r.NamespacedName, original); err != nil {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			if original.Labels["copy"] == "" {
				return reconcile.Result{}, nil
			}
			copied := secret(r.Name)
			copied.Namespace = r.Namespace
			_, err := controllerutil.CreateOrUpdate(ctx, c, copied, func() error {
				copied.Data = map[string][]byte{}
				for key, value := range original.Data {
					copied.Data[key] = []byte(value)
				}
				return controllerutil.SetControllerReference(original, copied, mgr.GetScheme())
			})
			return reconcile.Result{}, err
		}))
}

func original(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"copy": "yes"}},
		Data:       map[string]string{"key": value},
	}
}

func secret(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

// isCopied fails the story if there is no copy with a value.
func isCopied(w *World, name, value string) {
	w.Helper()
	copied := secret(name)
	if !w.Exists(copied) {
		w.Errorf("there is no copy of %s", name)
		return
	}
	w.Get(copied)
	if got := string(copied.Data["key"]); got != value {
		w.Errorf("the copy of %s has %q, want %q", name, got, value)
	}
}

// fails tells a story that has to fail, with a report that has all texts in their order.
func fails(t *testing.T, options Options, story func(w *World), texts ...string) {
	t.Helper()
	o := attempt(t, options, story)
	report := o.report()
	if !o.failed {
		t.Errorf("the story does not fail:\n%s", report)
	}
	rest := report
	for _, text := range texts {
		_, after, ok := strings.Cut(rest, text)
		if !ok {
			t.Fatalf("the report does not have %q, or not in this order:\n%s", text, report)
		}
		rest = after
	}
}
