package readiness_test

import (
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/component/readiness"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// parse reads an object as an API server would return it.
func parse(t testing.TB, manifest string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return object
}

// check compares what Of returns, and that the object is as it was.
func check(t *testing.T, object *unstructured.Unstructured, settings generator.Settings, want readiness.Result) {
	t.Helper()
	before := object.DeepCopy()
	got := readiness.Of(object, settings)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(before, object); diff != "" {
		t.Errorf("the object was changed (-before +after), want it unchanged\n%s", diff)
	}
}

var current = readiness.Result{Status: apis.ObjectCurrent}

func inProgress(message string) readiness.Result {
	return readiness.Result{Status: apis.ObjectInProgress, Message: message}
}

func failed(message string) readiness.Result {
	return readiness.Result{Status: apis.ObjectFailed, Message: message}
}

func unknown(message string) readiness.Result {
	return readiness.Result{Status: apis.ObjectUnknown, Message: message}
}
