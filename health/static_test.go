package health_test

import (
	"reflect"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/health"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// What the types of the API say: no status, or one in which no rule finds anything. So an object is ready as it is.
func TestStaticKindsHaveNoStatusToWaitFor(t *testing.T) {
	for _, kind := range health.StaticKinds() {
		versions := 0
		for _, gv := range scheme.Scheme.VersionsForGroupKind(kind) {
			object, err := scheme.Scheme.New(gv.WithKind(kind.Kind))
			if err != nil {
				t.Fatal(err)
			}
			versions++
			made := &unstructured.Unstructured{}
			made.SetGroupVersionKind(gv.WithKind(kind.Kind))
			if got := health.ReadinessOf(made); got.Status != apis.ObjectCurrent {
				t.Errorf("%s %s is %v, want it Current", gv, kind.Kind, got)
			}
			status, ok := reflect.TypeOf(object).Elem().FieldByName("Status")
			if !ok {
				continue
			}
			for _, name := range []string{"Conditions", "ObservedGeneration"} {
				if _, ok := status.Type.FieldByName(name); ok {
					t.Errorf("%s %s has the status field %s, want none", gv, kind.Kind, name)
				}
			}
		}
		if versions == 0 {
			t.Errorf("there is no kind %s, want one version at least", kind)
		}
	}
}

func TestOtherKindsAreNotStatic(t *testing.T) {
	for _, kind := range []schema.GroupKind{
		{Group: "apps", Kind: "Deployment"},
		{Group: "policy", Kind: "PodDisruptionBudget"},
		{Group: "", Kind: "Service"},
		{Group: "", Kind: "Namespace"},
		{Group: "", Kind: "PersistentVolumeClaim"},
		{Group: "example.com", Kind: "Secret"},
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"},
	} {
		if health.Static(kind) {
			t.Errorf("%s is static, want that it is not", kind)
		}
	}
}
