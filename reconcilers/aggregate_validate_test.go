package reconcilers_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestAggregateReconcilerValidate(t *testing.T) {
	merge := mergeWidget
	validationTests{
		"empty": {node: &widgetAggregate{}, shallow: `AggregateReconciler "WidgetAggregateReconciler" must define Request`},
		"without a name": {
			node:    &widgetAggregate{Name: "mine", Request: reconcilers.Request{NamespacedName: types.NamespacedName{Namespace: "default"}}, MergeBeforeUpdate: merge},
			shallow: `AggregateReconciler "mine" must define Request`,
		},
		"without a manager": {
			node:    &widgetAggregate{Request: widgetRequest},
			shallow: `AggregateReconciler "WidgetAggregateReconciler" must define MergeBeforeUpdate or AggregateObjectManager`,
		},
		"with a nil manager": {
			node:    &widgetAggregate{Request: widgetRequest, AggregateObjectManager: (*widgetManager)(nil)},
			shallow: `AggregateReconciler "WidgetAggregateReconciler" must define MergeBeforeUpdate or AggregateObjectManager`,
		},
		"with Sanitize only": {
			node:    &widgetAggregate{Request: widgetRequest, Sanitize: func(*resources.Widget) any { return nil }},
			shallow: `AggregateReconciler "WidgetAggregateReconciler" must define MergeBeforeUpdate or AggregateObjectManager`,
		},
		"short form": {node: &widgetAggregate{Request: widgetRequest, MergeBeforeUpdate: merge}},
		// Compatibility pins that the manager is not validated with the tree.
		"with an empty manager": {node: &widgetAggregate{Request: widgetRequest, AggregateObjectManager: &widgetManager{}}},
		"with both forms": {
			node:    &widgetAggregate{Request: widgetRequest, AggregateObjectManager: &widgetManager{}, MergeBeforeUpdate: merge},
			shallow: `AggregateReconciler "WidgetAggregateReconciler" may not define both AggregateObjectManager and MergeBeforeUpdate or Sanitize`,
		},
		"with a manager and Sanitize": {
			node:    &widgetAggregate{Request: widgetRequest, AggregateObjectManager: &widgetManager{}, Sanitize: func(*resources.Widget) any { return nil }},
			shallow: `AggregateReconciler "WidgetAggregateReconciler" may not define both AggregateObjectManager and MergeBeforeUpdate or Sanitize`,
		},
		"a nil tree": {
			node:    &widgetAggregate{Request: widgetRequest, MergeBeforeUpdate: merge, Reconciler: (*widgetSync)(nil)},
			shallow: `AggregateReconciler "WidgetAggregateReconciler" must have a valid Reconciler: must not be nil`,
		},
		"a bad node": {
			node: &widgetAggregate{Request: widgetRequest, MergeBeforeUpdate: merge, Reconciler: widgetSequence{&widgetSync{}}},
			recursive: `AggregateReconciler "WidgetAggregateReconciler" must have a valid Reconciler: ` +
				`Sequence must have a valid Sequence[0]: SyncReconciler "SyncReconciler" must implement Sync or SyncWithResult`,
		},
		"no type": {
			node:    &reconcilers.AggregateReconciler[client.Object]{Name: "mine", Request: widgetRequest, MergeBeforeUpdate: func(_, _ client.Object) {}},
			shallow: `AggregateReconciler "mine" must define Type since none can be made of ` + reflect.TypeFor[client.Object]().String(),
		},
		"no kind": {
			node: &reconcilers.AggregateReconciler[*unstructured.Unstructured]{
				Name: "mine", Request: widgetRequest, MergeBeforeUpdate: func(_, _ *unstructured.Unstructured) {},
			},
			shallow: `AggregateReconciler "mine" must define Type with apiVersion and kind since it is unstructured`,
		},
	}.run(t)
	if _, err := (&widgetAggregate{Request: widgetRequest, MergeBeforeUpdate: merge}).Reconcile(t.Context(), widgetRequest); err == nil {
		t.Error("the root reconciles without a config, want an error")
	} else {
		checkError(t, "without a config", err, `AggregateReconciler "WidgetAggregateReconciler" must define Config to reconcile`)
	}
	_, err := (&widgetAggregate{}).Reconcile(t.Context(), widgetRequest)
	checkError(t, "empty,", err, `AggregateReconciler "WidgetAggregateReconciler" must define Request`)
}

// Set-up validates the whole tree, and the object manager too.
func TestAggregateReconcilerSetupValidatesTheTree(t *testing.T) {
	config := expectWidget().Config()
	root := &widgetAggregate{Request: widgetRequest, MergeBeforeUpdate: mergeWidget, Reconciler: widgetSequence{&widgetSync{Name: "bad"}}, Config: config}
	checkError(t, "set-up", root.SetupWithManager(t.Context(), nil), `AggregateReconciler "WidgetAggregateReconciler" must have a valid Reconciler: `+
		`Sequence must have a valid Sequence[0]: SyncReconciler "bad" must implement Sync or SyncWithResult`)
	root = &widgetAggregate{Request: widgetRequest, AggregateObjectManager: &widgetManager{Name: "bad"}, Config: config}
	checkError(t, "set-up", root.SetupWithManager(t.Context(), nil), `AggregateReconciler "WidgetAggregateReconciler" must have a valid AggregateObjectManager: `+
		`UpdatingObjectManager "bad" must define MergeBeforeUpdate`)
}

func TestAggregateReconcilerDescribe(t *testing.T) {
	root := &widgetAggregate{Request: widgetRequest, MergeBeforeUpdate: mergeWidget, Reconciler: widgetSequence{reflectingChild(&trace{})}}
	description := reconcilers.Describe(root)
	const expected = `AggregateReconciler "WidgetAggregateReconciler" Widget
└─ Sequence
   └─ ChildReconciler "ConfigMapChildReconciler" ConfigMap
`
	if description.String() != expected {
		t.Errorf("it is described as\n%s\nwant\n%s", description, expected)
	}
	verbs := func(root *widgetAggregate) map[string][]string {
		t.Helper()
		rules, err := reconcilers.Describe(root).PolicyRules(widgetScheme, nil)
		if err != nil {
			t.Fatal(err)
		}
		verbs := map[string][]string{}
		for _, rule := range rules {
			verbs[rule.Resources[0]] = rule.Verbs
		}
		return verbs
	}
	alone := &widgetAggregate{Request: widgetRequest, MergeBeforeUpdate: mergeWidget}
	if got := fmt.Sprint(verbs(alone)); got != "map[events:[create patch] widgets:[get list watch create update delete]]" {
		t.Errorf("the short form uses %s, want others", got)
	}
	alone = &widgetAggregate{Request: widgetRequest, AggregateObjectManager: &recordingManager{}}
	if got := fmt.Sprint(verbs(alone)); got != "map[events:[create patch] widgets:[get list watch create update patch delete]]" {
		t.Errorf("with a manager that does not say it uses %s, want others", got)
	}
	if got := fmt.Sprint(verbs(&widgetAggregate{AggregateObjectManager: (*widgetManager)(nil)})); got == "" {
		t.Error("the description is empty, want the verbs")
	}
}
