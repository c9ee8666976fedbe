package testing_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rtesting "github.com/espalier-dev/espalier/testing"
)

func TestUnstructuredObjectsMeetTypedExpectations(t *testing.T) {
	for name, test := range map[string]struct {
		data     map[string]any
		extra    any
		expected client.Object
		differs  bool
	}{
		"the same":         {data: map[string]any{"k": "v"}, expected: settings},
		"another value":    {data: map[string]any{"k": "w"}, expected: settings, differs: true},
		"an unknown field": {data: map[string]any{"k": "v"}, extra: "x", expected: settings, differs: true},
		"another type":     {data: map[string]any{"k": "v"}, expected: pod, differs: true},
	} {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{Object: map[string]any{"data": test.data}}
			u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
			u.SetNamespace("default")
			u.SetName("settings")
			if test.extra != nil {
				u.Object["extra"] = test.extra
			}
			c := rtesting.ExpectConfig{Scheme: scheme, ExpectCreates: []client.Object{test.expected}}
			if err := c.Config().Create(context.Background(), u); err != nil && test.extra == nil {
				t.Fatal(err)
			}
			c.AssertClientCreateExpectations(nil)
			if differs := len(c.Failures()) > 0; differs != test.differs {
				t.Errorf("differs: %v, want %v: %v", differs, test.differs, c.Failures())
			}
		})
	}
}
