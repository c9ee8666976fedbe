package health_test

import (
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/health"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

type kindTests map[string]struct {
	// manifest is what follows apiVersion and kind.
	manifest string
	want     apis.Health
}

// run looks at each object as it is unstructured, and if its kind is built-in, also as it is typed, without its kind.
func (tests kindTests) run(t *testing.T, apiVersion, kind string) {
	t.Helper()
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			object := parse(t, "apiVersion: "+apiVersion+"\nkind: "+kind+"\n"+tc.manifest)
			before := object.DeepCopy()
			if diff := cmp.Diff(tc.want, health.Of(object)); diff != "" {
				t.Errorf("Of (-want, +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, object); diff != "" {
				t.Errorf("Of changed the object:\n%s", diff)
			}
			if typed := typedOf(t, object); typed != nil {
				if diff := cmp.Diff(tc.want, health.Of(typed)); diff != "" {
					t.Errorf("Of the typed object (-want, +got):\n%s", diff)
				}
			}
		})
	}
}

func parse(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	encoded, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(encoded); err != nil {
		t.Fatal(err)
	}
	return object
}

// typedOf returns an object of the Go type of a kind, without its kind, or nil if there is no such type.
func typedOf(t *testing.T, object *unstructured.Unstructured) client.Object {
	t.Helper()
	typed, err := scheme.Scheme.New(object.GroupVersionKind())
	if err != nil {
		return nil
	}
	fields := object.DeepCopy().Object
	delete(fields, "apiVersion")
	delete(fields, "kind")
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, typed); err != nil {
		t.Fatal(err)
	}
	return typed.(client.Object)
}

func is(state, grade apis.State, reason, message string) apis.Health {
	return apis.Health{State: state, Grade: grade, Reason: reason, Message: message}
}

func blames(h apis.Health, attributes map[string]string) apis.Health {
	h.Attributes = attributes
	return h
}

const (
	creating = apis.StateCreating
	updating = apis.StateUpdating
	scaling  = apis.StateScaling
	failing  = apis.StateFailing
	degraded = apis.StateDegraded
	down     = apis.StateDown
)

var (
	healthy     = apis.Health{State: apis.StateHealthy}
	operational = apis.Health{State: apis.StateOperational}
	completed   = apis.Health{State: apis.StateCompleted}
)
