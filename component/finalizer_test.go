package component_test

import (
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
)

// The finalizer of a component is one that the API server accepts, and no other node of the tree has it.
func TestSetupRefusesTheFinalizerOfAComponent(t *testing.T) {
	for finalizer, want := range map[string]string{
		"a.example.com/component": "",
		// The default of component-operator-runtime, the name of the reconciler, is accepted.
		"pair-operator.example.com": "",
		"clean up": `ResourceReconciler "pairResourceReconciler" must have a finalizer with a domain at pairResourceReconciler/0/A, ` +
			`such as "example.com/cleanup", not "clean up"`,
		"b.example.com/component": `ResourceReconciler "pairResourceReconciler" must have different finalizers at pairResourceReconciler/0/A and ` +
			`pairResourceReconciler/1/WithFinalizer, not "b.example.com/component" for both: each would remove that of the other`,
	} {
		t.Run(finalizer, func(t *testing.T) {
			component := &component.ComponentReconciler[*pair]{
				Name: "A", Prefix: "a.example.com", Generator: resources.AssemblyGenerator(), Finalizer: finalizer,
				Status: func(p *pair) *apis.ComponentStatus { return &p.Status.First },
			}
			guarded := &reconcilers.WithFinalizer[*pair]{Finalizer: "b.example.com/component", Reconciler: reconcilers.Sequence[*pair]{}}
			err := setUpTree(t, &pair{}, reconcilers.SubReconciler[*pair](component), guarded)
			if want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
				t.Errorf("set-up returned %v, want %q", err, want)
			}
		})
	}
}
