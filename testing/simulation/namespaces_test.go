package simulation

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestNamespaceWaitsForContent deletes a namespace at once after an object with a finalizer was created in it.
func TestNamespaceWaitsForContent(t *testing.T) {
	Run(t, Options{}, func(w *World) {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
		held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: "a", Name: "held", Finalizers: []string{"example.com/wait"},
		}}
		w.Create(namespace)
		w.Create(held)
		w.Delete(namespace)
		w.Pass(time.Minute)
		if !w.Exists(namespace) || !w.Exists(held) {
			w.Fatalf("the namespace is there: %t, the object in it: %t, want both", w.Exists(namespace), w.Exists(held))
		}
		w.Update(held, func() { held.Finalizers = nil })
		w.Rest()
		if w.Exists(namespace) || w.Exists(held) {
			w.Errorf("the namespace is there: %t, the object in it: %t, want neither",
				w.Exists(namespace), w.Exists(held))
		}
	})
}
