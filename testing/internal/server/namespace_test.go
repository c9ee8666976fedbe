package server_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/server"
)

func TestNamespace(t *testing.T) {
	run(t, server.Options{}, func(c cluster) {
		elsewhere := func() *corev1.ConfigMap {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "a"}}
		}
		c.refused(c.Create(c.ctx, elsewhere()), apierrors.IsNotFound)
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
		c.create(namespace)
		c.create(elsewhere())
		c.must(c.Delete(c.ctx, namespace))
		c.get(namespace)
		if namespace.Status.Phase != corev1.NamespaceTerminating || namespace.DeletionTimestamp == nil {
			c.Errorf("the namespace is %v", namespace)
		}
		obj := elsewhere()
		obj.Name = "b"
		err := c.Create(c.ctx, obj)
		c.refused(err, apierrors.IsForbidden)
		c.refused(err, func(err error) bool { return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) })
		namespace.Spec.Finalizers = nil
		c.must(c.SubResource("finalize").Update(c.ctx, namespace))
		c.refused(c.Get(c.ctx, client.ObjectKeyFromObject(namespace), namespace), apierrors.IsNotFound)
		c.refused(c.Delete(c.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}),
			apierrors.IsForbidden)
	})
}
