package reconcilers_test

import (
	"context"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// wholeTree has a node of every sort.
func wholeTree(calls *trace) *widgetRoot {
	nothing := reconcilers.Result{}
	named := reflectingChild(calls)
	named.Name = "Settings"
	guarded := guardedShortForm()(calls).(*configMapNode)
	return &widgetRoot{
		Reconciler: widgetSequence{
			named,
			guarded,
			&widgetFinalizer{
				Finalizer:  ours,
				Reconciler: &widgetSync{Name: "Directory", Sync: func(context.Context, *resources.Widget) error { return nil }},
			},
			&widgetIfThen{
				Name: "Isolated",
				If:   func(context.Context, *resources.Widget) bool { return true },
				Then: widgetSequence{calls.step("a", nothing, nil), widgetSequence{}},
				Else: calls.step("b", nothing, nil),
			},
			calls.step("c", nothing, nil),
		},
	}
}

// A node that is not there, or not configured, can still be described, to find out what is missing.
func TestL7DescribeOfWhatIsNotThere(t *testing.T) {
	for name, node := range map[string]any{
		"nil":                nil,
		"nil sync":           (*widgetSync)(nil),
		"nil root":           (*widgetRoot)(nil),
		"nil sequence":       widgetSequence(nil),
		"sequence of nil":    widgetSequence{nil, (*widgetSync)(nil), (*widgetSequence)(nil)},
		"empty sync":         &widgetSync{},
		"empty child":        &configMapNode{},
		"empty root":         &widgetRoot{},
		"empty if":           &widgetIfThen{},
		"empty finalizer":    &widgetFinalizer{},
		"empty manager":      &configMaps{},
		"no node":            42,
		"function":           func() {},
		"interface generics": &reconcilers.ChildReconciler[client.Object, client.Object, client.ObjectList]{},
		"interface root":     &reconcilers.ResourceReconciler[client.Object]{},
		"unstructured root":  &reconcilers.ResourceReconciler[*unstructured.Unstructured]{},
	} {
		t.Run(name, func(t *testing.T) {
			d := reconcilers.Describe(node)
			if d.String() == "" {
				t.Error("the description is empty, want some text")
			}
			if _, err := d.PolicyRules(widgetScheme, nil); err != nil {
				t.Logf("no rules: %v", err)
			}
		})
	}
}
