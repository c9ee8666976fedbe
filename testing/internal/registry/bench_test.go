package registry_test

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/registry/registrytest"
)

func BenchmarkDeployment(b *testing.B) {
	given := registrytest.Decode(b, []byte(`apiVersion: apps/v1
kind: Deployment
metadata: {name: a, namespace: ns}
spec:
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec: {containers: [{name: a, image: "a:v1", ports: [{containerPort: 80}]}]}
`))
	_, s := builtIn(b, given)
	stored := given.DeepCopyObject().(client.Object)
	s.PrepareForCreate(stored)
	stored.SetResourceVersion("1")

	b.Run("copy", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = given.DeepCopyObject()
		}
	})
	b.Run("create", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			obj := given.DeepCopyObject().(client.Object)
			s.PrepareForCreate(obj)
			if errs := s.Validate(obj); len(errs) > 0 {
				b.Fatal(errs)
			}
		}
	})
	b.Run("update", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			obj := stored.DeepCopyObject().(client.Object)
			obj.SetLabels(map[string]string{"a": "b"})
			s.PrepareForUpdate(obj, stored, "")
			if errs := s.ValidateUpdate(obj, stored, ""); len(errs) > 0 {
				b.Fatal(errs)
			}
		}
	})
}
