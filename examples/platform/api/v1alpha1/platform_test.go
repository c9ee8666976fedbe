package v1alpha1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/espalier-dev/espalier/examples/platform/api/v1alpha1"
)

// TestToUnstructured: nothing of the spec is forgotten, or a change of it would be no other revision.
func TestToUnstructured(t *testing.T) {
	for name, spec := range map[string]v1alpha1.PlatformSpec{
		"empty":         {},
		"with features": {Version: "1.0", Features: []v1alpha1.Feature{v1alpha1.Portal, v1alpha1.Dashboards}},
	} {
		t.Run(name, func(t *testing.T) {
			want, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&spec)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, spec.ToUnstructured()); diff != "" {
				t.Errorf("the maps differ (-as JSON +got)\n%s", diff)
			}
		})
	}
}
