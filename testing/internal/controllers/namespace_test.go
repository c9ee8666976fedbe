package controllers_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/testing/internal/controllers"
)

// TestNamespace deletes a namespace with objects, one of which has a finalizer.
func TestNamespace(t *testing.T) {
	run(t, controllers.Options{}, func(c cluster) {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
		c.create(namespace)
		plain, held := configMap("plain"), configMap("held")
		plain.Namespace, held.Namespace = "a", "a"
		held.Finalizers = []string{"example.com/wait"}
		c.create(plain)
		c.create(held)
		c.must(c.Delete(c.ctx, namespace))
		time.Sleep(time.Second)
		c.gone(plain)
		c.get(held)
		c.get(namespace)
		got := map[corev1.NamespaceConditionType]string{}
		for _, condition := range namespace.Status.Conditions {
			got[condition.Type] = string(condition.Status) + " " + condition.Reason + ": " + condition.Message
		}
		for kind, want := range map[corev1.NamespaceConditionType]string{
			corev1.NamespaceDeletionContentFailure: "False ContentDeleted: " +
				"All content successfully deleted, may be waiting on finalization",
			corev1.NamespaceContentRemaining: "True SomeResourcesRemain: " +
				"Some resources are remaining: configmaps. has 1 resource instances",
			corev1.NamespaceFinalizersRemaining: "True SomeFinalizersRemain: " +
				"Some content in the namespace has finalizers remaining: example.com/wait in 1 resource instances",
		} {
			if got[kind] != want {
				c.Errorf("%s is %q, not %q", kind, got[kind], want)
			}
		}
		c.idle()
		held.Finalizers = nil
		c.must(c.Update(c.ctx, held))
		time.Sleep(time.Second)
		c.gone(namespace, held)
		c.idle()
	})
}
