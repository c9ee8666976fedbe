package kinds_test

import (
	"testing"

	"github.com/espalier-dev/espalier/internal/kinds"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestKindsAreThoseOfThePublishedTypes(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	for want, obj := range map[schema.GroupKind]runtime.Object{
		kinds.ConfigMap:                &corev1.ConfigMap{},
		kinds.CustomResourceDefinition: &apiextensionsv1.CustomResourceDefinition{},
		kinds.Namespace:                &corev1.Namespace{},
		kinds.Secret:                   &corev1.Secret{},
		kinds.Service:                  &corev1.Service{},
	} {
		known, _, err := scheme.ObjectKinds(obj)
		if err != nil || known[0].GroupKind() != want {
			t.Errorf("%T is of kind %v (%v), want %v", obj, known, err, want)
		}
	}
}

func TestDefinesTypes(t *testing.T) {
	for kind, want := range map[schema.GroupKind]bool{
		kinds.CustomResourceDefinition: true,
		kinds.APIService:               true,
		kinds.Namespace:                false,
		{Kind: "APIService"}:           false,
	} {
		if got := kinds.DefinesTypes(kind); got != want {
			t.Errorf("DefinesTypes(%v) is %v, want %v", kind, got, want)
		}
	}
}

func TestHoldsData(t *testing.T) {
	for kind, want := range map[schema.GroupKind]bool{
		kinds.PersistentVolumeClaim:    true,
		kinds.StatefulSet:              true,
		kinds.Namespace:                true,
		kinds.CustomResourceDefinition: true,
		kinds.Deployment:               false,
		kinds.Secret:                   false,
		{Kind: "StatefulSet"}:          false,
	} {
		if got := kinds.HoldsData(kind); got != want {
			t.Errorf("HoldsData(%v) is %v, want %v", kind, got, want)
		}
	}
}
