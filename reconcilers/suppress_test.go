package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/resourcestate"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
	rtime "github.com/espalier-dev/espalier/time"
)

type widgetSuppress = reconcilers.SuppressTransientErrors[*resources.Widget, *resources.WidgetList]

// fails is a node that returns these errors one after the other, and then the last one.
func fails(errs ...error) *widgetSync {
	return &widgetSync{SyncDuringFinalization: true, SyncWithResult: func(context.Context, *resources.Widget) (reconcilers.Result, error) {
		err := errs[0]
		if len(errs) > 1 {
			errs = errs[1:]
		}
		return minute, err
	}}
}

// suppressed checks that an error was returned, and that it is hidden; shown checks that it is to be seen.
func suppressed(expected error) rtesting.VerifyFunc {
	return func(t *testing.T, result reconcilers.Result, err error) {
		t.Helper()
		returnsBoth(expected, minute)(t, result, err)
		if !errors.Is(err, reconcilers.ErrQuiet) || !errors.Is(err, reconcilers.ErrSkipStatusUpdate) {
			t.Errorf("the error is %v, want it quiet and without a status update", err)
		}
	}
}

func shown(expected error) rtesting.VerifyFunc {
	return func(t *testing.T, result reconcilers.Result, err error) {
		t.Helper()
		if err != expected || result != minute {
			t.Errorf("it returned %v and %v, want %v and %v", result, err, minute, expected)
		}
	}
}

func TestSuppressTransientErrors(t *testing.T) {
	then := func(verify rtesting.VerifyFunc, changes ...func(*resources.Widget)) widgetCase {
		return widgetCase{Resource: widget.With(changes...).Object(), ShouldErr: true, Verify: verify}
	}
	fine := widgetCase{Resource: widget.Object(), ExpectedResult: minute}
	generation := func(w *resources.Widget) { w.Generation = 2 }
	another := func(w *resources.Widget) { w.UID = "another-uid" }
	loud, quiet := shown(errBoom), suppressed(errBoom)
	tests := map[string]struct {
		threshold uint8
		errs      []error
		requests  []widgetCase
	}{
		"no error":                        {errs: []error{nil}, requests: []widgetCase{fine}},
		"the third is seen, and the next": {errs: []error{errBoom}, requests: []widgetCase{then(quiet), then(quiet), then(loud), then(loud)}},
		"another threshold":               {threshold: 2, errs: []error{errBoom}, requests: []widgetCase{then(quiet), then(loud)}},
		"a threshold of one":              {threshold: 1, errs: []error{errBoom}, requests: []widgetCase{then(loud)}},
		"success starts anew": {
			errs:     []error{errBoom, errBoom, nil, errBoom},
			requests: []widgetCase{then(quiet), then(quiet), fine, then(quiet), then(quiet), then(loud)},
		},
		"a durable error is seen, and starts anew": {
			errs: []error{errBoom, errBoom, reconcilers.ErrDurable, errBoom},
			requests: []widgetCase{
				then(quiet), then(quiet), then(shown(reconcilers.ErrDurable)), then(quiet), then(quiet), then(loud),
			},
		},
		"a halt counts": {
			errs: []error{reconcilers.ErrHaltSubReconcilers},
			requests: []widgetCase{
				then(suppressed(reconcilers.ErrHaltSubReconcilers)), then(suppressed(reconcilers.ErrHaltSubReconcilers)),
				then(shown(reconcilers.ErrHaltSubReconcilers)),
			},
		},
		"a new generation starts anew": {
			errs:     []error{errBoom},
			requests: []widgetCase{then(quiet), then(quiet), then(quiet, generation), then(quiet, generation), then(loud, generation)},
		},
		"each resource has its own count": {
			errs:     []error{errBoom},
			requests: []widgetCase{then(quiet), then(quiet, another), then(quiet), then(quiet, another), then(loud), then(loud, another)},
		},
		"terminating": {
			errs: []error{errBoom},
			requests: []widgetCase{
				then(quiet, terminating(theirs)), then(quiet, terminating(theirs)), then(loud, terminating(theirs)),
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			node := &widgetSuppress{Threshold: test.threshold, Reconciler: fails(test.errs...)}
			suite := test.requests[0]
			for i, request := range test.requests[1:] {
				request.Name = fmt.Sprint("request ", i+2)
				suite.AdditionalReconciles = append(suite.AdditionalReconciles, request)
			}
			suite.Run(t, widgetScheme, func(*testing.T, *widgetCase, reconcilers.Config) widgetNode { return node })
		})
	}
}

func TestSuppressTransientErrorsCountsNoFurtherThanItCan(t *testing.T) {
	node := &widgetSuppress{Threshold: 255, Reconciler: fails(errBoom)}
	ctx := resourcestate.NewContext(testContext(t, expectWidget().Config()), &resourcestate.State{})
	for i := range 600 {
		_, err := node.Reconcile(ctx, widget.Object())
		if quiet := errors.Is(err, reconcilers.ErrQuiet); quiet != (i < 254) {
			t.Fatalf("error %d is suppressed: %t, want %t", i+1, quiet, i < 254)
		}
	}
}

func TestSuppressTransientErrorsValidate(t *testing.T) {
	validationTests{
		"empty": {node: &widgetSuppress{}, shallow: `SuppressTransientErrors "SuppressTransientErrors" must implement Reconciler`},
		"nil":   {node: &widgetSuppress{Name: "mine", Reconciler: (*widgetSync)(nil)}, shallow: `SuppressTransientErrors "mine" must implement Reconciler`},
		"valid": {node: &widgetSuppress{Reconciler: fails(nil)}},
		"invalid": {
			node: &widgetSuppress{Reconciler: &widgetSync{}},
			recursive: `SuppressTransientErrors "SuppressTransientErrors" must have a valid Reconciler: ` +
				`SyncReconciler "SyncReconciler" must implement Sync or SyncWithResult`,
		},
	}.run(t)
	_, err := (&widgetSuppress{}).Reconcile(t.Context(), widget.Object())
	checkError(t, "in a request", err, `SuppressTransientErrors "SuppressTransientErrors" must implement Reconciler`)
}

func TestSuppressTransientErrorsSetup(t *testing.T) {
	calls := &trace{}
	node := &widgetSuppress{
		Reconciler: calls.step("nested", reconcilers.Result{}, nil),
		Setup: func(ctx context.Context, _ reconcilers.Manager, _ *reconcilers.Builder) error {
			calls.add("set up %s", reconcilers.RetrievePath(ctx))
			return errBoom
		},
	}
	if err := node.SetupWithManager(t.Context(), nil, nil); err != errBoom {
		t.Errorf("the error is %v, want %v", err, errBoom)
	}
	calls.compare(t, []string{"set up nested", "set up SuppressTransientErrors"})
	if err := (&widgetSuppress{}).SetupWithManager(t.Context(), nil, nil); err == nil {
		t.Error("an invalid node was set up, want an error")
	}
	expected := "SuppressTransientErrors \"SuppressTransientErrors\" up to 2\n└─ step\n"
	if described := reconcilers.Describe(node).String(); described != expected {
		t.Errorf("it is described as\n%s\nwant\n%s", described, expected)
	}
}

// runsOfSuppress are the runs of TestSuppressTransientErrorsByItself.
var runsOfSuppress atomic.Int32

// A node that was not set up or validated, and a context that has nothing, are no reason to panic. The log says once
// that nothing is counted.
func TestSuppressTransientErrorsByItself(t *testing.T) {
	// The log is of the process, which may run the test twice.
	name := fmt.Sprint(t.Name(), runsOfSuppress.Add(1))
	node := &widgetSuppress{Name: name, Reconciler: fails(errBoom)}
	l := &listener{}
	for i := range 4 {
		err := neverPanics(t, "Reconcile", func() error {
			_, err := node.Reconcile(contextWithLogger(t, l), widget.Object())
			return err
		})
		if !errors.Is(err, errBoom) || errors.Is(err, reconcilers.ErrQuiet) {
			t.Errorf("request %d returned %v, want %v, not quiet", i+1, err, errBoom)
		}
	}
	heard := strings.Join(l.heard, "\n")
	if strings.Count(heard, "run it by Embed") != 1 || !strings.Contains(heard, `"node"="`+name+`"`) {
		t.Errorf("the log is\n%s\nwant the way out once, with the name of the node", heard)
	}
}

// The counters go with the resource.
func TestSuppressTransientErrorsBelowARoot(t *testing.T) {
	config := expectWidget(widget).Config()
	root := &widgetRoot{Config: config, SkipStatusUpdate: true, Reconciler: &widgetSuppress{Reconciler: fails(errBoom)}}
	for i := range 4 {
		ctx := rtime.StashNow(t.Context(), requestTime.Add(time.Duration(i)*25*time.Hour))
		result, err := root.Reconcile(ctx, widgetRequest)
		//lint:ignore SA1019 deprecated, not gone
		if suppressed := err == nil && result.Requeue; suppressed != (i < 2) {
			t.Errorf("request %d returned %v and %v, want it suppressed: %t", i+1, result, err, i < 2)
		}
	}
	if err := config.Delete(t.Context(), widget.Object()); err != nil {
		t.Fatal(err)
	}
	if _, err := root.Reconcile(t.Context(), widgetRequest); err != nil || root.Remembered() != 0 {
		t.Errorf("%d resources are remembered and the error is %v, want neither", root.Remembered(), err)
	}
}
