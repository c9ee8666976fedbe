package reconcilers_test

import (
	"context"

	"github.com/espalier-dev/espalier/internal/resources"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reflectingChild keeps configMap as the child of widget, and records what it is asked.
func reflectingChild(calls *trace) *configMapNode {
	return &configMapNode{
		DesiredChild: func(_ context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
			calls.add("desired child")
			return &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name},
				Data:       map[string]string{"color": "blue"},
			}, nil
		},
		ReflectChildStatusOnParent: func(_ context.Context, w *resources.Widget, child *corev1.ConfigMap, err error) {
			name := "nothing"
			if child != nil {
				name = child.Name
			}
			calls.add("reflect %s, %v", name, err)
			w.Status.AddField("child", name)
		},
		ChildObjectManager: &configMaps{MergeBeforeUpdate: mergeConfigMap},
	}
}
