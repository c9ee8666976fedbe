package v1alpha1_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-dev/espalier/examples/platform/delivery/api/v1alpha1"
)

// TestValuesAreTheParameters: nothing else of the spec is, and they are not shared.
func TestValuesAreTheParameters(t *testing.T) {
	var spec v1alpha1.DeliverySpec
	manifest := `{"serviceAccountName":"courier","values":{"retention":"30d","jobs":{"managedBy":"somebody"}}}`
	if err := json.Unmarshal([]byte(manifest), &spec); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"retention": "30d", "jobs": map[string]any{"managedBy": "somebody"}}
	parameters := spec.ToUnstructured()
	if diff := cmp.Diff(want, parameters); diff != "" {
		t.Errorf("the parameters differ (-want +got)\n%s", diff)
	}
	parameters["jobs"].(map[string]any)["managedBy"] = "another"
	copied := spec.DeepCopy()
	copied.Values["jobs"].(map[string]any)["managedBy"] = "another"
	if diff := cmp.Diff(want, map[string]any(spec.Values)); diff != "" {
		t.Errorf("a copy is shared: the values differ (-before +after)\n%s", diff)
	}
}

func TestNoValues(t *testing.T) {
	spec := &v1alpha1.DeliverySpec{}
	if copied := spec.DeepCopy(); copied.Values != nil {
		t.Errorf("the copy has the values %v", copied.Values)
	}
	if parameters := spec.ToUnstructured(); parameters == nil || len(parameters) > 0 {
		t.Errorf("the parameters are %#v", parameters)
	}
}
