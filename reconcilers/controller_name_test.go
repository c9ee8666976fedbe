package reconcilers_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// idleManager is a manager that is never started, and so needs no API server. It wants the names of controllers to be unique.
func idleManager(t *testing.T) ctrl.Manager {
	t.Helper()
	mgr, err := ctrl.NewManager(&rest.Config{Host: "https://localhost:1"}, ctrl.Options{
		Scheme:  resources.NewScheme(),
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return mgr
}

// controllerNameRuns counts the runs of the test, as names are taken for as long as the program runs.
var controllerNameRuns atomic.Int64

// Two roots for one kind are told apart by the name of the controller, and a forgotten name is an error.
func TestControllerName(t *testing.T) {
	mgr := idleManager(t)
	run := fmt.Sprintf("controller-name-test-%d-", controllerNameRuns.Add(1))
	setUp := func(root *widgetRoot) error {
		root.Reconciler = widgetSequence{}
		root.Config = expectWidget().Config()
		return root.SetupWithManager(t.Context(), mgr)
	}
	if err := setUp(&widgetRoot{ControllerName: run + "a"}); err != nil {
		t.Errorf("the first: %v", err)
	}
	if err := setUp(&widgetRoot{ControllerName: run + "b"}); err != nil {
		t.Errorf("the second: %v", err)
	}
	err := setUp(&widgetRoot{Name: "third", ControllerName: run + "a"})
	expected := `ResourceReconciler "third" must define another ControllerName, which tells two controllers for one kind apart: ` +
		`controller with name ` + run + `a already exists.`
	if err == nil || !strings.HasPrefix(err.Error(), expected) {
		t.Errorf("the error of the third is %v, want it to begin with %q", err, expected)
	}
	// Who names the controller in Setup has the last word, as ever.
	err = setUp(&widgetRoot{
		ControllerName: run + "a",
		Setup: func(_ context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
			bldr.Named(run + "c")
			return nil
		},
	})
	if err != nil {
		t.Errorf("the fourth: %v", err)
	}
}

func TestControllerThatCannotBeBuilt(t *testing.T) {
	root := &reconcilers.ResourceReconciler[*statusless]{Reconciler: reconcilers.Sequence[*statusless]{}, Config: expectWidget().Config()}
	err := root.SetupWithManager(t.Context(), idleManager(t))
	if err == nil || !strings.HasPrefix(err.Error(), `ResourceReconciler "statuslessResourceReconciler" is unable to build its controller: `) {
		t.Errorf("set-up returned %v, want an error of the controller of statuslessResourceReconciler", err)
	}
}

// The aggregate takes all options that its watch may have.
func TestAggregateControllers(t *testing.T) {
	mgr := idleManager(t)
	run := fmt.Sprintf("aggregate-controllers-test-%d-", controllerNameRuns.Add(1))
	setUp := func(name string, options ...builder.ForOption) error {
		return (&widgetAggregate{
			ControllerName: run + name, Request: widgetRequest, MergeBeforeUpdate: mergeWidget,
			SetupForOptions: options, Config: expectWidget().Config(),
		}).SetupWithManager(t.Context(), mgr)
	}
	for name, options := range map[string][]builder.ForOption{
		"plain":      nil,
		"metadata":   {builder.OnlyMetadata},
		"predicates": {builder.WithPredicates(predicate.GenerationChangedPredicate{}), builder.OnlyMetadata},
		"composed":   {composed{builder.OnlyMetadata}},
	} {
		if err := setUp(name, options...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	err := setUp("plain")
	if err == nil || !strings.HasPrefix(err.Error(), `AggregateReconciler "WidgetAggregateReconciler" must define another ControllerName`) {
		t.Errorf("the error of the second of a name is %v, want one that asks for another ControllerName", err)
	}
}
