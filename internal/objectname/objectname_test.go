package objectname_test

import (
	"testing"

	"github.com/espalier-dev/espalier/internal/objectname"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestOf(t *testing.T) {
	t.Parallel()
	widget := &unstructured.Unstructured{}
	widget.SetKind("Widget")
	widget.SetName("w")
	for want, object := range map[string]client.Object{
		"nil":             (*corev1.Secret)(nil),
		"Secret":          &corev1.Secret{},
		"Secret a/b":      &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b"}},
		"Namespace b":     &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "b"}},
		"Secret b-*":      &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "b-x1", GenerateName: "b-"}},
		"Widget w":        widget,
		"Unstructured":    &unstructured.Unstructured{},
		"PersistentPod x": &corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "PersistentPod"}, ObjectMeta: metav1.ObjectMeta{Name: "x"}},
	} {
		if got := objectname.Of(object); got != want {
			t.Errorf("the name is %q, not %q", got, want)
		}
	}
	if got := objectname.Of(nil); got != "nil" {
		t.Errorf(`the name of nil is %q, want "nil"`, got)
	}
}
