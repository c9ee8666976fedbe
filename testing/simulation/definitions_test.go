package simulation

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// TestDefinitions has a definition created in a story, with and without the option that says so.
func TestDefinitions(t *testing.T) {
	definition := ReadDefinitions(t, "testdata/volumes.yaml")[0]
	created := func(w *World) {
		obj := definition.DeepCopy()
		w.Create(obj)
		w.Until("the definition is established", func() bool {
			w.Get(obj)
			for _, c := range obj.Status.Conditions {
				if c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue {
					return true
				}
			}
			return false
		})
	}
	Run(t, Options{ChangingDefinitions: true}, created)
	o := attempt(t, Options{}, created)
	if !o.failed || !strings.Contains(o.said, "set ChangingDefinitions in the options") {
		t.Errorf("without the option: %s", o.said)
	}
}
