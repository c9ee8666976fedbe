package component_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/component"

	"k8s.io/apimachinery/pkg/runtime"
)

// TestG30aLargeValues: what a component refers to is not looked for in the values of its spec, so a large one costs no more than to be
// written once (pitfall G-30a).
func TestG30aLargeValues(t *testing.T) {
	raw, err := json.Marshal(strings.Repeat("x", 100_000))
	if err != nil {
		t.Fatal(err)
	}
	spec := struct {
		Values runtime.RawExtension `json:"values"`
		Bytes  []byte               `json:"bytes"`
	}{runtime.RawExtension{Raw: raw}, raw}
	allocations := testing.AllocsPerRun(3, func() {
		if _, err := component.ComponentDigest(spec, nil, prefix, nil); err != nil {
			t.Fatal(err)
		}
	})
	if allocations > 200 {
		t.Errorf("%v allocations", allocations)
	}
}
